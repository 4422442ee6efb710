"""``paceline wait``: until jobs run or have ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from paceline.errors import JobFailed, WaitTimeout
from paceline.surfaces.cli import options, sessions

if TYPE_CHECKING:
    from paceline.model.runs import Run
    from paceline.model.selectors import Selector


@options.verb("wait")
@options.engine_options
@options.names_argument
@click.option(
    "--for",
    "goal",
    type=click.Choice(["succeeded", "running", "finished"]),
    default="succeeded",
    show_default=True,
    help="What to wait for; finished means: ended, however.",
)
@click.option("--timeout", type=options.DURATION, metavar="DURATION", help="At most so long, such as 2h.")
def command(
    session: sessions.Session,
    names: tuple[str, ...],
    labels: tuple[Selector, ...],
    goal: str,
    timeout: float | None,
) -> None:
    """Wait until the jobs NAME..., or those with labels (-l), have succeeded.

    Exits with 5 when the time is over, and with 6 when a job ends but does not succeed (for finished: never).
    """  # fmt: skip
    from paceline.model.statuses import JobPhase

    deadline = None if timeout is None else time.monotonic() + timeout

    def reached(run: Run) -> bool:
        return run.phase.is_final or (goal == "running" and run.phase is JobPhase.RUNNING)

    with session.jobs() as jobs:

        def wait(name: str) -> None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                run = jobs.wait(name, timeout_seconds=left, until=reached)
            except WaitTimeout as error:
                message = f"{name} is still {jobs.get(name).phase} after {timeout:g} s"
                raise WaitTimeout(message, f"paceline top {name}") from error
            good = run.phase is JobPhase.SUCCEEDED or goal == "finished" or not run.phase.is_final
            if not good:
                message = f": {run.message}" if run.message else ""
                raise JobFailed(f"{name} {run.phase}{message}", f"paceline why {name}")
            click.echo(f"{name} {run.phase}")

        names = session.chosen(jobs, names, labels)
        session.each(names, wait)
    if names:
        session.suggest(f"paceline get {names[0]}", f"paceline top {names[0]}")
