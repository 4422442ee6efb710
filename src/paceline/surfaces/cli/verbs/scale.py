"""``paceline scale``: gives running jobs more workers, or fewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.surfaces.cli import options, sessions

if TYPE_CHECKING:
    from paceline.model.jobs.selectors import Selector


@options.verb("scale")
@options.engine_options
@options.names_argument
@click.option("--workers", type=click.IntRange(1), required=True, help="How many workers there are to be.")
@options.dry_run_option
def command(
    session: sessions.CliSession,
    names: tuple[str, ...],
    labels: tuple[Selector, ...],
    workers: int,
    dry_run: bool,
) -> None:
    """Give the running jobs NAME..., or those with labels (-l), another number of workers.

    The others go on meanwhile. Workers that go are those of the highest indices; they get SIGTERM, and
    SIGKILL after the job's termination_grace, and count neither for nor against its success.
    """
    with session.jobs() as jobs:

        def scale(name: str) -> None:
            if dry_run:
                jobs.check_scalable(jobs.get(name), workers)
                click.echo(f"{name} would be scaled to {workers} workers")
                return
            jobs.scale(name, workers)
            click.echo(f"{name} is asked to go on with {workers} workers")

        names = session.chosen(jobs, names, labels, wanted=lambda run: not run.phase.is_final)
        session.each(names, scale)
    if names:
        session.suggest(f"paceline get {names[0]}")
