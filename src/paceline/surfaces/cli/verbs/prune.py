"""``paceline prune``: delete what ended some time ago."""

from __future__ import annotations

import click

from paceline.surfaces.cli import options, sessions


@options.verb("prune")
@options.engine_options
@click.option(
    "--older-than",
    type=options.DURATION,
    default="7d",
    show_default=True,
    metavar="DURATION",
    help="How long ago a job must have ended.",
)
@options.dry_run_option
def command(session: sessions.Session, older_than: float, dry_run: bool) -> None:
    """Delete the jobs that ended some time ago, with logs, samples and checkpoints."""  # fmt: skip
    with session.jobs() as jobs:
        names = jobs.prune(older_than_seconds=older_than, dry_run=dry_run)
    for name in names:
        click.echo(f"{name} would be deleted" if dry_run else f"{name} deleted")
    if not names:
        session.say("nothing to delete")
    elif dry_run:
        session.suggest(f"paceline prune --older-than {older_than:g}s")
    else:
        session.suggest("paceline list")
