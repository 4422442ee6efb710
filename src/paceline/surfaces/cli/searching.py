"""The display of a search: the first cause as soon as it is known, the present activity, and the time left.

On a terminal a line with a bar shows the activity; in a log a line is written every few seconds. A thread
writes these lines, so nothing that takes long is silent.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from paceline.model import quantities
from paceline.surfaces.cli import alerts, printing, sessions

if TYPE_CHECKING:
    from rich.progress import Progress

    from paceline.model.explanations.causes import Explanation
    from paceline.model.studies.tunings import Trial, Tuning
    from paceline.services.studying.trials import TrialActivity
    from paceline.tuning.estimates import RunCount

#: In a log, a line about the activity is written this often.
LINE_SECONDS = 5.0
#: On a terminal, the line is drawn this often: more would take CPU time from the measured job.
FRAMES_A_SECOND = 2.0
_BAR_CELLS = 12


class Display:
    """Shows the progress of a search.

    Args:
        session: shows the messages.
        explain: returns the explanation of a run.
        pairs: the number of pairs of runs that are to prove the result of the search.
        noticed: called when the first cause of the original job has been shown.
        measured: called when the original job has been measured, while nothing runs.
    """

    def __init__(
        self,
        session: sessions.CliSession,
        explain: Callable[[str], Explanation],
        *,
        pairs: int,
        noticed: Callable[[], None] = lambda: None,
        measured: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self._explain = explain
        self._pairs = pairs
        self._noticed = noticed
        self._measured = measured
        self._times = _Times()
        self._progress: Progress | None = None
        self._watch = contextlib.ExitStack()
        self._changes: Callable[[], Sequence[str]] | None = None
        self._has_cause = False
        self._lock = threading.Lock()
        self._line, self._said_at = "", time.monotonic()

    @contextlib.contextmanager
    def shown(self) -> Iterator[Display]:
        """Show the search for the duration of the context."""
        with self._watch, contextlib.ExitStack() as stack:
            if printing.is_terminal() and not self._session.quiet:
                self._progress = stack.enter_context(_progress())
                self._progress.add_task("", total=None)
            else:
                ended = threading.Event()
                thread = threading.Thread(target=self._repeat, args=(ended,), daemon=True)
                thread.start()
                stack.callback(thread.join)
                stack.callback(ended.set)
            yield self

    def tell(self, tuning: Tuning, doing: TrialActivity | None) -> None:
        """Show the activity of a search (`services.studying.tunings.Tell`)."""
        from paceline.services.studying.trials import MEASURED
        from paceline.tuning import estimates

        runs = estimates.runs(tuning, pairs=self._pairs)
        self._times.look(runs)
        trial = tuning.trials[-1] if tuning.trials else None
        if trial is not None and trial.number == 0 and trial.outcome is None:
            self._watch_first(trial, trains=doing is not None and doing.what == MEASURED)
        if doing is None and trial is not None:
            self._say(_result(tuning, trial))
            if trial.number == 0:
                self._explain_first(trial)
        elif doing is not None and doing.is_warning:
            self._say(_line(tuning, trial, doing))
        self._show("" if doing is None else _line(tuning, trial, doing), runs)

    def _watch_first(self, trial: Trial, *, trains: bool) -> None:
        """Show the causes of the original job as they appear while it runs.

        Causes that appear before it trains may be about its start, so none of them counts as the first cause.
        """
        if self._changes is None:
            self._changes = self._watch.enter_context(alerts.watching(self._session, trial.run))
        self._say_causes(self._changes(), counts=trains)

    def _explain_first(self, trial: Trial) -> None:
        """Show the cause of the original job after it was measured, if none was shown before."""
        self._watch.close()
        if trial.outcome is None or not trial.outcome.speed:
            return
        if not self._has_cause:
            self._say_causes(alerts.lines(self._explain(trial.run), self._session, trial.run))
        with self._paused():
            self._measured()

    def _say_causes(self, lines: Sequence[str], *, counts: bool = True) -> None:
        for line in lines:
            self._say(line)
        if lines and counts and not self._has_cause:
            self._has_cause = True
            self._noticed()

    def _show(self, text: str, runs: RunCount) -> None:
        left = self._times.left(runs)
        if text and left is not None:
            text = f"{text}; {quantities.format_seconds(max(1.0, left))} left at most"
        with self._lock:
            self._line = text
        if self._progress is not None:
            (task,) = self._progress.task_ids
            self._progress.update(task, completed=runs.done, total=runs.most, description=text)

    def _say(self, text: str) -> None:
        with self._lock:
            self._said_at = time.monotonic()
        if self._progress is not None:
            self._progress.console.print(text, soft_wrap=True)
        else:
            self._session.say(text)

    def _repeat(self, ended: threading.Event) -> None:
        """Show the activity whenever nothing was shown for a while."""
        while not ended.wait(LINE_SECONDS / 10):
            with self._lock:
                text = self._line if time.monotonic() - self._said_at >= LINE_SECONDS else ""
            if text:
                self._say(text)

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        """Let others write to the terminal."""
        with self._lock:
            self._line = ""
        if self._progress is not None:
            self._progress.stop()
        yield
        if self._progress is not None:
            self._progress.start()


class _Times:
    """The times at which the runs of a displayed search began and ended."""

    def __init__(self) -> None:
        self._first: RunCount | None = None
        self._last: RunCount | None = None
        self._began_at = self._run_at = time.monotonic()

    def look(self, runs: RunCount) -> None:
        """Note the progress of the search."""
        if self._first is None:
            self._first, self._began_at = runs, time.monotonic()
        if self._last is None or self._last.done != runs.done:
            self._run_at = time.monotonic()
        self._last = runs

    def left(self, runs: RunCount) -> float | None:
        """Return how many more seconds the search takes at most; None: it is not known yet."""
        if self._first is None:
            return None
        passed = self._run_at - self._began_at
        return runs.seconds_left(self._first.done, passed, time.monotonic() - self._run_at)


def _progress() -> Progress:
    from rich import progress

    return progress.Progress(
        progress.SpinnerColumn(),
        progress.BarColumn(bar_width=_BAR_CELLS),
        progress.TextColumn("{task.description}", markup=False),
        console=printing.console(stderr=True),
        transient=True,
        refresh_per_second=FRAMES_A_SECOND,
    )


def _line(tuning: Tuning, trial: Trial | None, doing: TrialActivity) -> str:
    """Return the activity on one line."""
    lead = "" if trial is None or trial.outcome is not None else f"{_name(tuning, trial)}: "
    detail = f", {doing.detail}" if doing.detail else ""
    left = "" if doing.seconds_left is None else f", {doing.seconds_left:.0f} s to go"
    return f"{lead}{doing.what}{detail}{left}"


def _result(tuning: Tuning, trial: Trial) -> str:
    """Return the result of a trial on one line."""
    from paceline.surfaces.views import tunings as views

    speed = trial.outcome.speed if trial.outcome else 0.0
    return f"{_name(tuning, trial)}: {speed:,.0f} examples/s {views.verdict(trial)}".rstrip()


def _name(tuning: Tuning, trial: Trial) -> str:
    from paceline.surfaces.views import tunings as views

    return f"trial {trial.number} of {tuning.most_trials - 1}: {views.changed(trial)}"
