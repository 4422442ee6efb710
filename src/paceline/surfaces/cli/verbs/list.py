"""``paceline list``: the jobs, the newest first."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paceline.model.jobs.runs import RunSummary
    from paceline.model.jobs.selectors import Selector

WATCH_SECONDS = 1.0
PHASES = ("pending", "starting", "running", "restarting", "stopping", "succeeded", "failed", "stopped")


@options.verb("list")
@options.engine_options
@click.option(
    "--phase", "phases", type=click.Choice((*PHASES, "lost")), multiple=True, help="Only jobs in this phase."
)
@options.selector_option
@click.option(
    "--search", default="", metavar="TEXT",
    help="Only jobs with it in the name, the model, a label, the finding or the code of a cause.",
)  # fmt: skip
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces of the cluster.")
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@options.watch_option
@options.output_option("table", "wide", "name", "json", "yaml")
def command(
    session: sessions.CliSession,
    phases: tuple[str, ...],
    labels: tuple[Selector, ...],
    search: str,
    everywhere: bool,
    limit: int | None,
    watch: bool,
    output: str,
) -> None:
    """List the jobs, the newest first.

    What was found is known of jobs that have ended, and of those that a server looks at.
    """
    from paceline.model.jobs.run_queries import RunQuery

    wanted = RunQuery(search=search)

    def found(read: Callable[[], tuple[list[RunSummary], set[str]]]) -> tuple[list[RunSummary], set[str]]:
        runs, lost = read()
        runs = [run for run in runs if wanted.selects(run) and all(x.matches(run.labels) for x in labels)]
        if phases:
            runs = [run for run in runs if ("lost" if run.name in lost else run.phase) in phases]
        return runs[:limit], lost

    with session.listing(everywhere=everywhere) as read:
        if watch and output in ("table", "wide") and printing.is_terminal():
            with contextlib.suppress(KeyboardInterrupt), printing.screen(whole=True) as screen:
                while True:
                    screen.show(_table(*found(read), output, everywhere=everywhere))
                    time.sleep(WATCH_SECONDS)
        runs, lost = found(read)
    if output == "name":
        for run in runs:
            click.echo(f"{run.namespace}/{run.name}" if everywhere else run.name)
    elif output in ("json", "yaml"):
        from paceline.surfaces import documents

        printing.emit(documents.run_list(runs, lost=lost), output)
    elif runs:
        printing.show(_table(runs, lost, output, everywhere=everywhere))
        _suggest(session, runs, lost, everywhere=everywhere)
    else:
        session.say("no jobs" if not (phases or labels or search) else "no such jobs")
        session.suggest("paceline init job.yaml", "paceline run job.yaml")


def _table(runs: list[RunSummary], lost: set[str], output: str, *, everywhere: bool) -> RenderableType:
    from paceline.surfaces.views import job_tables

    wide = output == "wide"
    return job_tables.job_list(
        runs, lost=lost, now=time.time(), width=printing.width(wide=wide), wide=wide, namespaces=everywhere
    )


def _suggest(
    session: sessions.CliSession, runs: list[RunSummary], lost: set[str], *, everywhere: bool
) -> None:
    for name in sorted(lost):
        session.say(f"{name} is lost: its supervisor died; bring it back: paceline resume {name}")
    where = f"-n {runs[0].namespace} " if everywhere else ""
    session.suggest(f"paceline get {where}{runs[0].name}", f"paceline top {where}{runs[0].name}")
