"""``paceline run``: submit a job and follow it to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.errors import JobFailed
from paceline.surfaces.cli import following, options, printing, sessions
from paceline.surfaces.cli.verbs import submit

if TYPE_CHECKING:
    from paceline.model.runs import Run
    from paceline.services.jobs import Jobs

LAST_LINES = 8


@options.verb("run")
@options.file_argument
@submit.name_option
@options.dry_run_option
@options.output_option("table", "name", "json", "yaml")
def command(session: sessions.Session, file: str, name: str | None, dry_run: bool, output: str) -> None:
    """Submit the job in FILE and follow it to its end; '-' reads it from stdin.

    Ctrl-C detaches: the job goes on, and `paceline top` and `paceline logs -f` show it again. Exits with 6
    when the job ends but does not succeed.
    """
    if dry_run:
        submit.show_plan(session, file, name, output)
        return
    from paceline.model.statuses import JobPhase
    from paceline.services import snapshots
    from paceline.surfaces import documents
    from paceline.surfaces.views import summaries

    with session.local_jobs() as jobs:
        with sessions.late_interrupts() as interrupted:
            run = submit.submit(session, file, name)
        session.say(f"{run.name} submitted; Ctrl-C detaches, the job goes on")
        with following.detaching(session, run.name):
            if interrupted():
                raise KeyboardInterrupt
            run = following.Follower(session, jobs, run.name).follow()
        snapshot = snapshots.read(jobs.store, run, now=jobs.clock())
        if output == "name":
            click.echo(run.name)
        elif output == "table":
            printing.show(summaries.summary(snapshot, width=printing.width()))
        else:
            printing.emit(documents.snapshot(snapshot), output)
        _say_last_words(session, jobs, run)
    if run.phase is not JobPhase.SUCCEEDED:
        message = f": {run.message}" if run.message else ""
        raise JobFailed(
            f"{run.name} {run.phase}{message}",
            f"see why: paceline describe {run.name}; go on: paceline resume {run.name}",
        )
    session.suggest(f"paceline top {run.name}", f"paceline describe {run.name}", f"paceline logs {run.name}")


def _say_last_words(session: sessions.Session, jobs: Jobs, run: Run) -> None:
    """Tell what the replicas that failed for good wrote last: most often that is the reason."""
    from paceline.model.statuses import ReplicaPhase
    from paceline.services import logs
    from paceline.services.jobs import folder_of

    for row in jobs.store.replicas(run.name):
        if row.phase is ReplicaPhase.FAILED:
            written = logs.lines(
                folder_of(run), wanted=row.replica.__eq__, attempt=row.attempt, tail=LAST_LINES
            )
            session.say(f"the last lines of {row.replica}:")
            for line in written:
                session.say(f"  {line.text}")
