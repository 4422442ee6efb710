"""``paceline describe``: shows everything about one job."""

from __future__ import annotations

import time

import click

from paceline.surfaces.cli import options, printing, sessions
from paceline.surfaces.cli.verbs import get


@options.verb("describe")
@options.engine_options
@options.name_argument
@click.option(
    "--events", type=click.IntRange(0), default=20, show_default=True, help="So many of the last events."
)
@options.output_option("table", "wide", "json", "yaml")
def command(session: sessions.CliSession, name: str, events: int, output: str) -> None:
    """Show all about the job NAME: spec, replicas, events, what is not measured, and where its files are."""
    from paceline.surfaces import documents, scripts
    from paceline.surfaces.views import job_pages

    with session.jobs() as jobs:
        run = jobs.get(name)
        lost = jobs.is_lost(run)
        replicas = jobs.replicas(name)
        happened = scripts.events(jobs, run)
        pids = jobs.supervisor_pids(run)
    if output in ("json", "yaml"):
        document = documents.run_document(run, replicas, lost=lost, supervisor_pids=pids, events=happened)
        printing.emit(document, output)
        return
    wide = output == "wide"
    printing.show(
        job_pages.page(
            run, replicas, happened, lost=lost, now=time.time(),
            width=printing.width(wide=wide), wide=wide, last_events=events,
        )
    )  # fmt: skip
    get.suggest(session, run, lost=lost)
