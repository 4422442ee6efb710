"""``paceline scale``: give running jobs more workers, or fewer."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, sessions


@options.verb("scale")
@options.engine_options
@options.names_argument
@click.option("--workers", type=click.IntRange(1), required=True, help="How many workers there are to be.")
@options.dry_run_option
def command(session: sessions.Session, names: tuple[str, ...], workers: int, dry_run: bool) -> None:
    """Give the running jobs NAME... another number of workers, while the others go on.

    Workers that go are those of the highest indices; they get SIGTERM, and SIGKILL after the job's
    termination_grace, and count neither for nor against its success.
    """
    with session.jobs() as jobs:

        def scale(name: str) -> None:
            if dry_run:
                jobs.check_scalable(jobs.get(name), workers)
                click.echo(f"{name} would be scaled to {workers} workers")
                return
            jobs.scale(name, workers)
            click.echo(f"{name} is asked to go on with {workers} workers")

        session.each(names, scale)
    session.suggest(f"paceline get {names[0]}")
