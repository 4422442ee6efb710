"""``paceline get``: one job and its replicas."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paceline.model.jobs.runs import Run

WATCH_SECONDS = 1.0


@options.verb("get")
@options.engine_options
@options.name_argument
@options.watch_option
@options.output_option("table", "wide", "name", "json", "yaml")
def command(session: sessions.CliSession, name: str, watch: bool, output: str) -> None:
    """Show the job NAME and its replicas."""
    from paceline.surfaces import documents
    from paceline.surfaces.views import job_tables

    wide = output == "wide"
    with session.jobs() as jobs:

        def page() -> RenderableType:
            run = jobs.get(name)
            return job_tables.job(
                run, jobs.replicas(name), lost=jobs.is_lost(run), now=time.time(),
                width=printing.width(wide=wide), wide=wide,
            )  # fmt: skip

        if watch and output in ("table", "wide") and printing.is_terminal():
            with contextlib.suppress(KeyboardInterrupt), printing.screen(whole=True) as screen:
                while not jobs.get(name).phase.is_final:
                    screen.show(page())
                    time.sleep(WATCH_SECONDS)
        run = jobs.get(name)
        lost = jobs.is_lost(run)
        if output == "name":
            click.echo(run.name)
        elif output in ("json", "yaml"):
            replicas, pids = jobs.replicas(name), jobs.supervisor_pids(run)
            printing.emit(documents.run_document(run, replicas, lost=lost, supervisor_pids=pids), output)
        else:
            printing.show(page())
    suggest(session, run, lost=lost)


def suggest(session: sessions.CliSession, run: Run, *, lost: bool) -> None:
    """Suggest commands that are useful for a job in its phase."""
    from paceline.model.jobs.statuses import JobPhase

    name = run.name
    if lost:
        session.say(f"{name} is lost: its supervisor died")
        session.suggest(f"paceline resume {name}")
    elif not run.phase.is_final and run.phase is not JobPhase.RUNNING:
        session.suggest(f"paceline why {name}", f"paceline logs -f {name}", f"paceline stop {name}")
    elif not run.phase.is_final:
        session.suggest(f"paceline top {name}", f"paceline logs -f {name}", f"paceline stop {name}")
    elif run.phase is JobPhase.SUCCEEDED:
        session.suggest(f"paceline top {name}", f"paceline logs {name}", f"paceline delete {name}")
    else:
        session.suggest(f"paceline why {name}", f"paceline logs {name}", f"paceline resume {name}")
