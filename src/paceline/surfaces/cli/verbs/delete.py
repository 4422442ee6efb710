"""``paceline delete``: removes jobs with all their data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import options, sessions

if TYPE_CHECKING:
    from paceline.model.jobs.selectors import Selector


@options.verb("delete")
@options.engine_options
@options.names_argument
@click.option("--force", is_flag=True, help="Stop jobs that have not ended.")
@options.dry_run_option
def command(
    session: sessions.CliSession,
    names: tuple[str, ...],
    labels: tuple[Selector, ...],
    force: bool,
    dry_run: bool,
) -> None:
    """Remove the jobs NAME..., or those with labels (-l), with their logs, samples and checkpoints."""
    with session.jobs() as jobs:

        def delete(name: str) -> None:
            run = jobs.get(name)
            if dry_run:
                if not force:
                    jobs.check_deletable(run)
                click.echo(f"{name} would be deleted ({run.phase}), with {run.directory}")
                return
            jobs.delete(name, force=force)
            click.echo(f"{name} deleted")

        session.each(session.chosen(jobs, names, labels), delete)
    session.suggest("paceline list")
