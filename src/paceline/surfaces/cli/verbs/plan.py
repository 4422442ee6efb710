"""``paceline plan``: shows how a model's variables would be placed on the parameter servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.errors import InvalidInput
from paceline.surfaces.cli import job_files, options, printing, sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paceline.model.measures.recordings import Recording
    from paceline.model.variables.plan_comparisons import VariableDifference
    from paceline.model.variables.variable_plans import Plan
    from paceline.model.variables.variables import Shard
    from paceline.services.variable_plans import Alternative

#: As in `services.variable_plans`; written out, so that the help need not load it.
NAMES = ("job-file", "round-robin", "greedy", "partitioned", "balanced", "by-traffic")


@options.verb("plan")
@options.engine_options
@click.argument("target", metavar="TARGET", shell_complete=options.complete_job_names)
@click.option(
    "--variables",
    metavar="FILE",
    type=click.Path(),
    help="The model's variables; a training writes variables.json into its run's folder. A job has its own.",
)
@click.option("--choose", type=click.Choice(NAMES), help="Show this one, shard by shard.")
@click.option(
    "--save",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write the chosen one, or else the job file's; variable_plan: FILE in a job file obeys it.",
)
@click.option(
    "--diff",
    metavar="FILE",
    type=click.Path(),
    help="Show what would move from this saved plan to the chosen one, or else to the job file's.",
)
@options.output_option("table", "json", "yaml")
def command(
    session: sessions.CliSession,
    target: str,
    variables: str | None,
    choose: str | None,
    save: str | None,
    diff: str | None,
    output: str,
) -> None:
    """Show how the variables of a model would lie over the PS of a job.

    TARGET is a job whose trainers have counted their variables, or a job file; then --variables says which.
    Of a script without the training library it is where its variables are, and where cures would have them.
    Beside what the job file asks for: round-robin and greedy, as TensorFlow does them, tables cut into
    ranges, the default of a job, and parts placed by measured traffic. Size is not traffic: a part with
    hot ids may be small.
    """
    from paceline import specs

    is_job = target != "-" and sessions.is_job(target)
    found = _of_job(session, target, variables) if is_job else _of_file(target, variables)
    if save is not None:
        _save(_chosen(found, choose), save)
        session.say(f"saved: {save}; a job obeys it with training: {{variable_plan: {save}}}")
    if diff is not None:
        _show_differences(specs.load_plan(diff), _chosen(found, choose), output)
    elif choose is not None or (save is not None and output != "table"):
        _show_plan(choose or found[0].name, _chosen(found, choose), output)
    elif save is None:
        _show_all(found, output)
        session.suggest(f"paceline {'tune' if is_job else 'run'} {target}")


def _of_file(file: str, variables: str | None) -> Sequence[Alternative]:
    from paceline import specs
    from paceline.services import variable_plans

    if variables is None:
        raise InvalidInput(
            f"the variables of the model in {file} are not known",
            "--variables FILE; a training writes variables.json into its run's folder",
        )
    job, base = job_files.read(file)
    return variable_plans.alternatives(job.spec, specs.load_variables(variables), base=base)


def _of_job(session: sessions.CliSession, name: str, variables: str | None) -> Sequence[Alternative]:
    from paceline import specs
    from paceline.diagnosing import trainings
    from paceline.diagnosing.cases import Case
    from paceline.services import variable_plans

    recording = _recorded(session, name)
    spec, plan = recording.run.spec, recording.plan
    base = Path(spec.working_dir or ".")
    if variables is not None:
        return variable_plans.alternatives(spec, specs.load_variables(variables), base=base)
    if plan is None or not plan.variables:
        raise InvalidInput(
            f"the variables of {name} are not known",
            f"paceline describe {name} says what is seen of its scripts; else: --variables FILE",
        )
    if trainings.is_seen(Case.of(recording)):
        return variable_plans.of_script(spec, plan, base=base)
    return variable_plans.alternatives(spec, plan.variables, base=base)


def _recorded(session: sessions.CliSession, name: str) -> Recording:
    """Return a job's recording without the earlier measurements."""
    from paceline.services.observing import recordings

    with session.jobs() as jobs:
        return recordings.whole(jobs, name, since=jobs.clock())


def _chosen(found: Sequence[Alternative], name: str | None) -> Plan:
    one = next(one for one in found if one.name == (name or found[0].name))
    if one.plan is None:
        raise InvalidInput(f"there is no plan {one.name}: {one.missing}", "choose another one")
    return one.plan


def _save(plan: Plan, path: str) -> None:
    from paceline.model.variables import saved_plans

    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(_lines(saved_plans.write(plan)))
    except OSError as error:
        raise InvalidInput(
            f"{path}: the plan cannot be written: {error.strerror}", "choose another file"
        ) from error


def _lines(document: dict[str, Any]) -> str:
    """Return a saved plan as JSON with one line for each variable."""
    head = json.dumps({key: value for key, value in document.items() if key != "variables"})
    variables = ",\n".join(json.dumps(each) for each in document["variables"])
    return f'{head[:-1]}, "variables": [\n{variables}\n]}}\n'


def _show_all(found: Sequence[Alternative], output: str) -> None:
    from paceline.surfaces import documents
    from paceline.surfaces.views import variable_plans as views

    if output == "table":
        printing.show(views.alternatives(found, width=printing.width()))
    else:
        items = [_item(one) for one in found]
        printing.emit(documents.document("VariablePlanList", {"items": items}), output)


def _show_plan(name: str, plan: Plan, output: str) -> None:
    from paceline.surfaces import documents
    from paceline.surfaces.views import variable_plans as views

    if output == "table":
        printing.show(views.shards(plan, width=printing.width()))
    else:
        printing.emit(documents.document("VariablePlanDetails", {"name": name, **_details(plan)}), output)


def _show_differences(before: Plan, after: Plan, output: str) -> None:
    from paceline.model.variables import plan_comparisons
    from paceline.surfaces import documents
    from paceline.surfaces.views import variable_plans as views

    found = plan_comparisons.differences(before, after)
    if output == "table":
        printing.show(views.differences(found, width=printing.width()))
    else:
        items = [_difference(one) for one in found]
        printing.emit(documents.document("VariablePlanDifferences", {"items": items}), output)


def _item(one: Alternative) -> dict[str, Any]:
    found = {"missing": one.missing} if one.plan is None else _details(one.plan)
    return {"name": one.name, **found}


def _details(plan: Plan) -> dict[str, Any]:
    traffic = plan.step_bytes()
    return {
        "memory_bytes": list(plan.memory_bytes()),
        "memory_max_over_mean": plan.memory_imbalance(),
        "step_bytes": None if traffic is None else list(traffic),
        "traffic_max_over_mean": plan.traffic_imbalance(),
        "shards": [_shard(shard) for shard in plan.shards],
    }


def _shard(shard: Shard) -> dict[str, Any]:
    return {
        "variable": shard.variable.name,
        "shard": shard.index,
        "shards": shard.layout.shards,
        "rows": shard.rows,
        "order": shard.layout.order.value,
        "ps": shard.server,
        "memory_bytes": shard.memory_bytes,
        "step_bytes": shard.step_bytes,
    }


def _difference(one: VariableDifference) -> dict[str, Any]:
    return {
        "variable": one.variable,
        "ps_before": [shard.server for shard in one.before],
        "ps_after": [shard.server for shard in one.after],
        "reordered": one.is_reordered,
        "moved_bytes": one.moved_bytes,
    }
