"""``paceline stop``: ends jobs so that they can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paceline.errors import Conflict
from paceline.surfaces.cli import options, sessions

if TYPE_CHECKING:
    from paceline.model.jobs.selectors import Selector


@options.verb("stop")
@options.engine_options
@options.names_argument
@click.option("--wait/--no-wait", default=True, show_default=True, help="Whether to wait for the end.")
@options.dry_run_option
def command(
    session: sessions.CliSession,
    names: tuple[str, ...],
    labels: tuple[Selector, ...],
    wait: bool,
    dry_run: bool,
) -> None:
    """Stop the jobs NAME..., or those with labels (-l); `paceline resume` goes on from their last checkpoint.

    Replicas get SIGTERM, and SIGKILL after the job's termination_grace: first all but the parameter servers,
    so that a chief can save a last checkpoint, then these.
    """
    with session.jobs() as jobs:

        def stop(name: str) -> None:
            if dry_run:
                run = jobs.get(name)
                if run.phase.is_final:
                    raise Conflict(f"{name} has ended already ({run.phase})")
                click.echo(f"{name} would be stopped ({run.phase})")
                return
            jobs.stop(name)
            if not wait:
                click.echo(f"{name} is asked to stop")
                return
            session.say(f"{name} is asked to stop; waiting for its end (Ctrl-C does not keep it from that)")
            click.echo(f"{name} {jobs.wait(name).phase}")

        names = session.chosen(jobs, names, labels, wanted=lambda run: not run.phase.is_final)
        session.each(names, stop)
    if names and not dry_run:
        session.suggest(f"paceline resume {names[0]}", f"paceline delete {names[0]}")
