"""``paceline resume``: go on with a job that does not run."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, sessions


@options.verb("resume")
@options.engine_options
@options.names_argument
@options.dry_run_option
def command(session: sessions.Session, names: tuple[str, ...], dry_run: bool) -> None:
    """Bring back the jobs NAME... that were stopped, failed, or lost their supervisor.

    Replicas that still live are taken over; the others start again, from the job's last checkpoint if their
    script saves any.
    """
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

        session.each(names, resume)
    session.suggest(f"paceline top {names[0]}", f"paceline logs -f {names[0]}")
