"""Following a job to its end, with or without a terminal; the job is resumed if its supervisor dies."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from paceline.errors import Conflict, EngineError
from paceline.model.jobs.runs import FACT
from paceline.surfaces.cli import alerts, printing, sessions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from paceline.model.jobs.runs import JobEvent, Run
    from paceline.services.life_cycles import LifeCycle

FRAME_SECONDS = 1.0
#: Without a terminal, progress is shown this often.
LINE_SECONDS = 10.0
#: A job whose supervisor dies more often is not resumed again.
MAX_RESUMES = 3
#: Events that are not shown: starts of replicas say little, and facts are for rules and for ``describe``.
UNTOLD = ("started", FACT)


class Follower:
    """Looks at a job repeatedly until it has ended.

    Args:
        session: shows the messages.
        jobs: the jobs that include it.
        name: the job.
    """

    def __init__(self, session: sessions.CliSession, jobs: LifeCycle, name: str) -> None:
        self._session = session
        self._jobs = jobs
        self._name = name
        self._seen = 0
        self._resumes = 0
        self._say = session.say

    def follow(self) -> Run:
        """Show the job until it has ended; return it.

        Raises:
            EngineError: its supervisor keeps dying.
        """
        with alerts.watching(self._session, self._name) as changes:
            if self._session.quiet or not printing.is_terminal():
                return self._follow(self._tell_line, LINE_SECONDS, changes)
            with printing.screen(whole=False) as screen:
                self._say = screen.say
                return self._follow(lambda run: screen.show(self._frame(run)), FRAME_SECONDS, changes)

    def _follow(
        self, show: Callable[[Run], None], every_seconds: float, changes: Callable[[], Sequence[str]]
    ) -> Run:
        shown_at = -every_seconds
        while True:
            run = self._jobs.get(self._name)
            self._tell_events()
            for line in changes():
                self._say(line)
            if run.phase.is_final:
                return run
            if self._jobs.is_lost(run):
                self._bring_back()
            if time.monotonic() - shown_at >= every_seconds:
                show(run)
                shown_at = time.monotonic()
            time.sleep(self._jobs.POLL_SECONDS)

    def _bring_back(self) -> None:
        if self._resumes >= MAX_RESUMES:
            raise EngineError(
                f"the supervisor of {self._name} died {MAX_RESUMES + 1} times",
                f"its last words are in {self._jobs.get(self._name).directory}/supervisor.log",
            )
        self._resumes += 1
        with contextlib.suppress(Conflict):  # Another process has resumed the job.
            self._jobs.resume(self._name)
        self._say(f"the supervisor of {self._name} died; another one has taken over")

    def _tell_events(self) -> None:
        for number, event in self._jobs.events(self._name, since_id=self._seen):
            self._seen = number
            if event.kind not in UNTOLD:
                self._say(event_line(event))

    def _frame(self, run: Run) -> RenderableType:
        from paceline.surfaces.views import job_tables, tops

        terminal = printing.console()
        if not self._jobs.IS_MEASURED_AT_HAND:
            replicas = self._jobs.replicas(self._name)
            return job_tables.job(run, replicas, lost=False, now=time.time(), width=terminal.width)
        snapshot = self._jobs.snapshot(run.name)
        return tops.frame(snapshot, width=terminal.width, height=terminal.height - 1)

    def _tell_line(self, run: Run) -> None:
        from paceline.surfaces.views import tops

        if not self._jobs.IS_MEASURED_AT_HAND:
            self._say(f"{run.name} is {run.phase}{said_of(run)}")
        elif run.started_at is not None:
            self._say(tops.progress_line(self._jobs.snapshot(run.name)))


def said_of(run: Run) -> str:
    """Return what is said of the phase of a job, behind a colon; empty if nothing is."""
    from paceline.surfaces.views import cells

    return f": {cells.clean(run.message)}" if run.message else ""


def event_line(event: JobEvent) -> str:
    """Return an event on one line."""
    from paceline.surfaces.views import cells

    about = f"{event.replica}: " if event.replica else ""
    message = f": {cells.clean(event.message)}" if event.message else ""
    return f"{cells.clock(event.at)} {about}{event.kind.replace('-', ' ')}{message}"


@contextlib.contextmanager
def detaching(session: sessions.CliSession, name: str) -> Iterator[None]:
    """Let Ctrl-C end the watching instead of the job."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(err=True)
        session.say(f"detached: {name} goes on")
        session.suggest(f"paceline top {name}", f"paceline logs -f {name}", f"paceline stop {name}")
        raise click.exceptions.Exit(0) from None
