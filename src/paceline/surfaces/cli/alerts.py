"""Lines about changes in a followed job's findings, which are looked for while the caller follows the job.

A thread with its own connection takes the looks, so a slow store or cluster does not delay the caller.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from paceline.errors import PacelineError
from paceline.surfaces.cli import sessions

if TYPE_CHECKING:
    from paceline.model.explanations.causes import Explanation
    from paceline.services.observing.diagnosis_runs import DiagnosisRun
    from paceline.services.observing.finding_debounce import FindingChange

#: When the first look is taken: most short jobs end earlier and need none of the modules loaded for it.
FIRST_SECONDS = 5.0
#: How long the caller waits at the end for a look that is under way.
END_SECONDS = 1.0


@contextlib.contextmanager
def watching(session: sessions.CliSession, name: str) -> Iterator[Callable[[], list[str]]]:
    """Give a function that returns the lines that are new since its last call.

    Args:
        session: says where the job is; if it is quiet, no looks are taken.
        name: the job.
    """
    if session.quiet:
        yield list
        return
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(session, name, told.put, ended), daemon=True)
    thread.start()
    try:
        yield lambda: [told.get() for _ in range(told.qsize())]
    finally:
        ended.set()
        thread.join(END_SECONDS)


def _watch(
    session: sessions.CliSession, name: str, tell: Callable[[str], None], ended: threading.Event
) -> None:
    if ended.wait(FIRST_SECONDS):
        return
    from paceline.services.observing import diagnosis_runs, finding_debounce

    watch = finding_debounce.FindingDebounce()
    with contextlib.suppress(PacelineError), session.jobs() as jobs:
        looker = diagnosis_runs.Looker(jobs, name)
        pause = 0.0
        while not ended.wait(pause):
            began = time.thread_time()
            # The caller gets errors of the store or the cluster itself.
            with contextlib.suppress(PacelineError):
                for line in _lines(looker.look(), watch.look, session, name):
                    tell(line)
            pause = diagnosis_runs.pause_seconds(
                time.thread_time() - began, confirms=watch.awaits_confirmation
            )


def _lines(
    look: DiagnosisRun, watch: Callable[..., Sequence[FindingChange]], session: sessions.CliSession, name: str
) -> list[str]:
    changes = watch(look.explanation, unjudged=look.unjudged)
    return [line(change, look.recording.at, session.addressed(f"paceline why {name}")) for change in changes]


def lines(found: Explanation, session: sessions.CliSession, name: str) -> list[str]:
    """Return the reported causes of a followed job's explanation, each on one line.

    Args:
        found: why the job is in its state.
        session: says where the job is.
        name: the job.
    """
    from paceline.services.observing import finding_debounce

    at = time.time()
    changes = finding_debounce.FindingDebounce(to_appear=1).look(found)
    return [line(change, at, session.addressed(f"paceline why {name}")) for change in changes]


def line(change: FindingChange, at: float, command: str) -> str:
    """Return a change on one line: ``14:03:12 PS001 warning: The variable ids makes ps-0 hot. (...)``.

    Args:
        change: the change of a finding.
        at: when the change was seen (Unix seconds).
        command: the command that shows more.
    """
    from paceline.diagnosing import catalogues
    from paceline.surfaces.views import cells

    cause = change.cause
    head = f"{cells.clock(at)} {catalogues.topic(cause.name).code}"
    if change.is_over:
        about = f": {', '.join(cause.subjects)}" if cause.subjects else ""
        return cells.clean(f"{head} is over{about}")
    return cells.clean(f"{head} {cause.severity}: {cause.what} ({command})")
