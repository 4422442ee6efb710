"""``paceline experiment``: variants of a job, run in turn and compared."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.errors import PacelineError
from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from paceline.model.studies.experiments import Experiment


@options.verb("experiment")
@options.engine_options
@click.argument("action", type=click.Choice(["run", "status", "report"]))
@click.argument("target", metavar="FILE|NAME")
@click.option(
    "--like",
    metavar="NAME",
    help="With run: simulate the variants, from what steps of this job cost, and run nothing.",
)
@click.option("--apart", is_flag=True, help="With --like: each host is a machine, not a part of this one.")
@click.option("--again", is_flag=True, help="With run: begin anew, whatever was measured before.")
@options.output_option("table", "json", "yaml")
def command(
    session: sessions.CliSession,
    action: str,
    target: str,
    like: str | None,
    apart: bool,
    again: bool,
    output: str,
) -> None:
    """Compare variants of a job: run an experiment file, say how far it is, write its page.

    `run FILE` makes every run that is not made yet, the variants in turn and every other round backwards, and
    shows each beside the baseline: how many times as fast, with an interval; "no difference" and "not enough
    data" are answers. It goes on where it was stopped. `status NAME` shows what there is so far, and `report
    NAME` writes NAME-experiment.html, with all that was measured in NAME-experiment.json beside it.
    """
    session.without_server("an experiment", "make it, and look at it, on a machine where its jobs run")
    if action == "run":
        experiment = _run(session, target, like, apart=apart, again=again)
    else:
        with session.studies() as store:
            experiment = store.experiment(target)
    if action == "report":
        _report(session, experiment)
    if output != "table":
        from paceline.surfaces import documents

        printing.emit(documents.experiment(experiment), output)
    elif action != "report":
        from paceline.surfaces.views import experiments as views

        printing.show(views.page(experiment, width=printing.width()))
    if action != "report":
        session.suggest(f"paceline experiment report {experiment.name}")


def _run(
    session: sessions.CliSession, file: str, like: str | None, *, apart: bool, again: bool
) -> Experiment:
    from paceline.services.studying import experiments, studies
    from paceline.specs.job_file import experiment_files

    read = experiment_files.load_experiment(file)
    imitated = None if like is None else session.measured(like)
    if imitated is not None:
        read = experiments.as_simulated(read, imitated, apart=apart)
    with contextlib.ExitStack() as stack:
        jobs, store = stack.enter_context(session.jobs()), stack.enter_context(session.studies())
        stack.enter_context(studies.alone(session.home.path, read.name))
        experiment = experiments.begun(store, read, anew=again)
        if imitated is None:
            measure = experiments.on_engine(jobs, experiment)
        else:
            measure = experiments.simulated(imitated, experiment, apart=apart)

        def tell(now: Experiment, doing: str) -> None:
            if not doing:
                last = now.done[-1]
                speed = (
                    f"{last.outcome.speed:,.0f} examples/s" if last.outcome.speed else last.outcome.failure
                )
                session.say(f"{last.variant}, {last.number + 1} of {now.repeats}: {speed}")

        return experiments.Runner(store=store, measure=measure, tell=tell).run(experiment)


def _report(session: sessions.CliSession, experiment: Experiment) -> None:
    from paceline.surfaces import documents

    with sessions.needing("a report", "report", "jinja2"):
        from paceline.surfaces.reports import experiments as pages
    page = Path(f"{experiment.name}-experiment.html")
    raw = page.with_suffix(".json")
    try:
        page.write_text(pages.page(experiment, say=session.addressed), encoding="utf-8", errors="replace")
        text = json.dumps(documents.experiment(experiment), indent=2, ensure_ascii=False)
        raw.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise PacelineError(f"{error.filename} cannot be written: {error.strerror}") from error
    session.say(f"{page} written, and {raw}")
