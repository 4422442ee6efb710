"""``paceline wait``: waits until jobs run, reach a step, have a finding, or have ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from paceline.errors import JobFailed, WaitTimeout
from paceline.surfaces.cli import following, options, sessions
from paceline.surfaces.cli.wait_goals import GOAL, WaitGoal

if TYPE_CHECKING:
    from paceline.model.jobs.runs import Run
    from paceline.model.jobs.selectors import Selector
    from paceline.services.life_cycles import JobControl


@options.verb("wait")
@options.engine_options
@options.names_argument
@click.option(
    "--for",
    "goal",
    type=GOAL,
    default="succeeded",
    show_default=True,
    metavar="GOAL",
    help="What to wait for: succeeded; running; finished (ended, however); step=N; step=+N "
    "(N further ones); finding=CODE, or several codes by commas, of which any will do; "
    "finding: any that is a warning or worse.",
)
@click.option("--timeout", type=options.DURATION, metavar="DURATION", help="At most so long, such as 2h.")
def command(
    session: sessions.CliSession,
    names: tuple[str, ...],
    labels: tuple[Selector, ...],
    goal: WaitGoal,
    timeout: float | None,
) -> None:
    """Wait until the jobs NAME..., or those with labels (-l), have succeeded.

    Or until each of them has reached another goal (--for). A finding is what `paceline why` shows, as a cause
    or as what follows from one; its CODE is one of `paceline explain`, or the name of a cause.
    Exits with 5 when the time is over, and with 6 when a job ends without having reached the goal.
    """  # fmt: skip
    deadline = None if timeout is None else time.monotonic() + timeout
    with session.jobs() as jobs:

        def wait(name: str) -> None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            click.echo(f"{name} {_wait(jobs, name, goal, left, timeout)}")

        names = session.chosen(jobs, names, labels)
        session.each(names, wait)
    if names:
        verb = "get" if goal.kind != "finding" else "why"
        session.suggest(f"paceline {verb} {names[0]}", f"paceline top {names[0]}")


def _wait(jobs: JobControl, name: str, goal: WaitGoal, left: float | None, timeout: float | None) -> str:
    """Wait for one job; return what it has reached.

    Args:
        jobs: the jobs that include it.
        name: the name of the job.
        goal: the goal to wait for.
        left: how many seconds to wait at most; None: without a limit.
        timeout: the time limit for all jobs of the command line, in seconds.

    Raises:
        JobFailed: the job has ended without reaching the goal.
        WaitTimeout: the job has not reached the goal in time.
    """
    condition = goal.condition(jobs, name)
    is_met = False

    def reached(run: Run) -> bool:
        nonlocal is_met
        is_met = condition.is_met(run)
        return is_met

    try:
        run = jobs.wait(name, timeout_seconds=left, until=reached)
    except WaitTimeout as error:
        message = f"{name} is still {jobs.get(name).phase}{condition.shortfall()} after {timeout:g} s"
        raise WaitTimeout(message, f"paceline top {name}") from error
    if not is_met:
        said = following.said_of(run)
        raise JobFailed(f"{name} {run.phase}{condition.shortfall()}{said}", f"paceline why {name}")
    return condition.outcome(run)
