"""``paceline logs``: prints the output of replicas."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from paceline.errors import NotFound
from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from paceline.model.roles import ReplicaId
    from paceline.services.life_cycles import JobReader
    from paceline.services.logs import LogLine

#: How often to check whether a followed job has ended.
CHECK_SECONDS = 1.0


@options.verb("logs")
@options.engine_options
@options.name_argument
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until the job has ended.")
@click.option("--role", type=options.role_type(), help="Only replicas of this role.")
@click.option("--index", type=click.IntRange(0), help="Only replicas with this index.")
@click.option("--attempt", type=click.IntRange(1), help="Only this attempt; else all, one after the other.")
@click.option(
    "--tail", type=click.IntRange(0), metavar="N", help="Begin with the last N lines of each attempt."
)
@click.option(
    "--since",
    type=options.DURATION,
    metavar="DURATION",
    help="Only attempts that printed something within this time, such as 10m; lines carry no time.",
)
@click.option(
    "--prefix/--no-prefix",
    default=None,
    help="Whether lines begin with their replica; else if there are several.",
)
def command(
    session: sessions.CliSession,
    name: str,
    follow: bool,
    role: str | None,
    index: int | None,
    attempt: int | None,
    tail: int | None,
    since: float | None,
    prefix: bool | None,
) -> None:
    """Print the output of the replicas of the job NAME; with several, each line begins with its replica.

    With -f Ctrl-C ends the printing, not the job.
    """  # fmt: skip
    from paceline.services.logs import LogSelection

    with session.jobs() as jobs:
        run = jobs.get(name)
        replicas = [r for r in run.spec.replicas() if role in (None, r.role) and index in (None, r.index)]
        if not replicas:
            raise NotFound(
                f"{name} has no such replica", f"it has {', '.join(map(str, run.spec.replicas()[:20]))}"
            )
        lines = jobs.logs(
            run,
            LogSelection(
                replica=set(replicas).__contains__,
                attempt=attempt,
                tail=tail,
                since=None if since is None else jobs.clock() - since,
            ),
            follow=_follow(jobs, name) if follow else None,
        )
        write = _writer(replicas, with_prefix=len(replicas) > 1 if prefix is None else prefix)
        with contextlib.suppress(KeyboardInterrupt) if follow else contextlib.nullcontext():
            for line in lines:
                write(line)
        _mention_gone(session, [gone for gone in jobs.gone(name) if gone[0] in replicas])
        if follow:
            run = jobs.get(name)
            session.say(f"{name} is {run.phase}")
            if not run.phase.is_final:
                session.suggest(f"paceline logs -f {name}", f"paceline top {name}", f"paceline stop {name}")


def _mention_gone(session: sessions.CliSession, gone: list[tuple[ReplicaId, int]]) -> None:
    """Print which attempts' output is not available any more."""
    if gone:
        shown = ", ".join(f"{replica} (attempt {attempt})" for replica, attempt in gone[:5])
        others = f" and {len(gone) - 5} others" if len(gone) > 5 else ""
        session.say(f"gone with its pod: the output of {shown}{others}")
        session.say("an operator keeps output in its --home; read it there, with the same --home and --store")


def _follow(jobs: JobReader, name: str) -> Callable[[], bool]:
    """Return a function: whether more output may come. It asks the store at most once a second."""
    asked_at, answer = 0.0, True

    def goes_on() -> bool:
        nonlocal asked_at, answer
        if time.monotonic() - asked_at >= CHECK_SECONDS:
            run = jobs.get(name)
            answer = not run.phase.is_final and not jobs.is_lost(run)
            asked_at = time.monotonic()
        return answer

    return goes_on


def _writer(wanted: list[ReplicaId], *, with_prefix: bool) -> Callable[[LogLine], None]:
    if not with_prefix:
        return lambda line: click.echo(line.text)
    from rich.text import Text

    from paceline.surfaces.views import styles

    console = printing.console()
    size = max(len(str(replica)) for replica in wanted)

    def write(line: LogLine) -> None:
        label = f"{line.replica!s:<{size}} | "
        if console.color_system is None:
            click.echo(label + line.text)
        else:
            console.print(Text(label, style=styles.of_role(line.replica.role)), end="")
            click.echo(line.text)

    return write
