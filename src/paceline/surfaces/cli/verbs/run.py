"""``paceline run``: submits a job and follows it to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.errors import JobFailed
from paceline.surfaces.cli import following, options, printing, sessions
from paceline.surfaces.cli.verbs import submit

if TYPE_CHECKING:
    from paceline.model.jobs.runs import Run
    from paceline.services.life_cycles import JobReader

LAST_LINES = 8


@options.verb("run")
@options.engine_options
@options.file_argument
@submit.name_option
@options.dry_run_option
@options.output_option("table", "name", "json", "yaml")
def command(session: sessions.CliSession, file: str, name: str | None, dry_run: bool, output: str) -> None:
    """Submit the job in FILE and follow it to its end; '-' reads it from stdin.

    Ctrl-C detaches: the job goes on, and `paceline top` and `paceline logs -f` show it again. Exits with 6
    when the job ends but does not succeed.
    """
    if dry_run:
        submit.show_plan(session, file, name, output)
        return
    from paceline.model.jobs.statuses import JobPhase

    with session.jobs() as jobs:
        with sessions.late_interrupts() as interrupted:
            run = submit.submit(session, file, name)
        session.say(f"{run.name} submitted; Ctrl-C detaches, the job goes on")
        with following.detaching(session, run.name):
            if interrupted():
                raise KeyboardInterrupt
            run = following.Follower(session, jobs, run.name).follow()
        if output == "name":
            click.echo(run.name)
        else:
            _show(jobs, run, output)
        _say_last_words(session, jobs, run)
    if run.phase is not JobPhase.SUCCEEDED:
        raise JobFailed(
            f"{run.name} {run.phase}{following.said_of(run)}",
            f"see why: paceline why {run.name}; go on: paceline resume {run.name}",
        )
    session.suggest(f"paceline top {run.name}", f"paceline describe {run.name}", f"paceline logs {run.name}")


def _show(jobs: JobReader, run: Run, output: str) -> None:
    """Print the result: measurements if they are at hand, else the replicas."""
    from paceline.services.observing import diagnosis_runs, diagnosis_summaries
    from paceline.surfaces import documents
    from paceline.surfaces.views import job_tables, summaries

    width = printing.width()
    if jobs.IS_MEASURED_AT_HAND:
        snapshot = jobs.snapshot(run.name)
        if output == "table":
            printing.show(summaries.summary(snapshot, width=width))
        look = diagnosis_runs.Looker(jobs, run.name).look()
        if output != "table":
            printing.emit(documents.snapshot(snapshot, look), output)
        diagnosis_summaries.remember(jobs, look)
        return
    replicas = jobs.replicas(run.name)
    if output == "table":
        printing.show(job_tables.job(run, replicas, lost=False, now=jobs.clock(), width=width))
    else:
        printing.emit(documents.run_document(run, replicas, lost=False), output)


def _say_last_words(session: sessions.CliSession, jobs: JobReader, run: Run) -> None:
    """Print the last lines of the replicas that failed for good: most often they give the reason."""
    from paceline.model.jobs.statuses import ReplicaPhase
    from paceline.services.logs import LogSelection
    from paceline.surfaces.views import cells

    for row in jobs.replicas(run.name):
        if row.phase is ReplicaPhase.FAILED:
            wanted = LogSelection(replica=row.replica.__eq__, attempt=row.attempt, tail=LAST_LINES)
            written = jobs.logs(run, wanted)
            session.say(f"the last lines of {row.replica}:")
            for line in written:
                session.say(f"  {cells.clean_line(line.text)}")
