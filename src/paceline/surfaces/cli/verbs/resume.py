"""``paceline resume``: resumes a job that was stopped, has failed or is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import options, sessions

if TYPE_CHECKING:
    from paceline.model.jobs.runs import RunSummary
    from paceline.model.jobs.selectors import Selector


@options.verb("resume")
@options.engine_options
@options.names_argument
@options.dry_run_option
def command(
    session: sessions.CliSession, names: tuple[str, ...], labels: tuple[Selector, ...], dry_run: bool
) -> None:
    """Bring back the jobs NAME..., or those with labels (-l), that were stopped, failed or are lost.

    Replicas that still live are taken over; the others start again, from the job's last checkpoint if their
    script saves any.
    """
    from paceline.model.jobs.statuses import JobPhase

    with session.jobs() as jobs:

        def resume(name: str) -> None:
            if dry_run:
                run = jobs.get(name)
                jobs.check_resumable(run)
                click.echo(f"{name} would be resumed ({'lost' if jobs.is_lost(run) else run.phase})")
                return
            with sessions.late_interrupts():
                jobs.resume(name)
            click.echo(f"{name} resumed")

        def can_be(run: RunSummary) -> bool:
            return run.phase in (JobPhase.STOPPED, JobPhase.FAILED) or jobs.is_lost(run)

        names = session.chosen(jobs, names, labels, wanted=can_be)
        session.each(names, resume)
    if names:
        session.suggest(f"paceline top {names[0]}", f"paceline logs -f {names[0]}")
