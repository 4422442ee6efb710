"""``paceline plan``: how a model's variables would lie over the parameter servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from paceline.errors import InvalidInput
from paceline.surfaces.cli import job_files, options, printing, sessions

if TYPE_CHECKING:
    from paceline.services.variable_plans import Alternative


@options.verb("plan")
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--variables",
    metavar="FILE",
    required=True,
    type=click.Path(),
    help="The model's variables; a training writes variables.json into its run's folder.",
)
@options.output_option("table", "json", "yaml")
def command(session: sessions.Session, file: str, variables: str, output: str) -> None:
    """Show how the variables of a model would lie over the PS of the job in FILE.

    Beside what the job file asks for: round-robin and greedy, as TensorFlow does them, tables cut into
    ranges, and parts placed by measured traffic. Size is not traffic: a part with hot ids may be small.
    """
    from paceline import specs
    from paceline.services import variable_plans
    from paceline.surfaces import documents
    from paceline.surfaces.views import variable_plans as views

    job, _ = job_files.read(file)
    try:
        found = variable_plans.alternatives(job.spec, specs.load_variables(variables))
    except ValueError as error:
        raise InvalidInput(f"{file}: {error}", "add a role ps to the job file") from error
    if output == "table":
        printing.show(views.alternatives(found, width=printing.width()))
        session.suggest(f"paceline plan {file} --variables {variables} -o json", f"paceline run {file}")
    else:
        items = [_item(one) for one in found]
        printing.emit(documents.document("VariablePlanList", {"items": items}), output)


def _item(one: Alternative) -> dict[str, Any]:
    if one.plan is None:
        return {"name": one.name, "missing": one.missing}
    traffic = one.plan.step_bytes()
    return {
        "name": one.name,
        "memory_bytes": list(one.plan.memory_bytes()),
        "memory_max_over_mean": one.plan.memory_imbalance(),
        "step_bytes": None if traffic is None else list(traffic),
        "traffic_max_over_mean": one.plan.traffic_imbalance(),
        "shards": [
            {
                "variable": shard.variable.name,
                "shard": shard.index,
                "shards": shard.layout.shards,
                "rows": shard.rows,
                "order": shard.layout.order.value,
                "ps": shard.server,
                "memory_bytes": shard.memory_bytes,
                "step_bytes": shard.step_bytes,
            }
            for shard in one.plan.shards
        ],
    }
