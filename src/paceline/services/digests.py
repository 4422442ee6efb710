"""How jobs do, in a line each: made of looks at them, and kept for lists."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from paceline.diagnosing import catalogues
from paceline.errors import PacelineError
from paceline.model.digests import Digest
from paceline.model.roles import Role
from paceline.model.run_queries import RunQuery
from paceline.model.samples import StepReport
from paceline.model.snapshots import Snapshot
from paceline.model.statuses import JobPhase
from paceline.services.jobs import Jobs
from paceline.services.lookouts import Lookout
from paceline.services.looks import Look

T = TypeVar("T")

log = logging.getLogger("paceline.digests")

#: How many stretches of time a trend has.
STRETCHES = 20
#: How often the jobs are gone round.
ROUND_SECONDS = 5.0
#: Jobs that are looked at in a round: those that run, and some that ended while nobody looked.
MOST_RUNNING, MOST_ENDED = 200, 5


def digest(snapshot: Snapshot, look: Look) -> Digest:
    """Return what a list shows of a job."""
    cause = next((each for each in look.explanation.causes if not each.is_past), None)
    servers = next((each for each in snapshot.roles if each.role is Role.PS), None)
    imbalances = servers.imbalances if servers else ()
    return Digest(
        at=snapshot.at,
        examples_per_second=snapshot.examples_per_second,
        trend=trend(look.recording.steps),
        progress=snapshot.progress,
        eta_seconds=snapshot.eta_seconds,
        imbalance=next((each.max_over_mean for each in imbalances if each.resource == "CPU"), None),
        code=catalogues.topic(cause.name).code if cause else None,
        severity=cause.severity if cause else None,
        finding=cause.what if cause else None,
    )


def trend(reports: Sequence[StepReport], stretches: int = STRETCHES) -> tuple[float | None, ...]:
    """Return the examples a second of all trainers together over equal stretches of time, the oldest first.

    None is a stretch in which nobody reported; a report counts where it ends.
    """
    told = [each for each in reports if each.examples is not None]
    if not told:
        return ()
    first, last = (choose(each.at for each in told) for choose in (min, max))
    width = (last - first) / stretches
    if width <= 0:
        return ()
    examples: list[float | None] = [None] * stretches
    for each in told:
        place = min(stretches - 1, int((each.at - first) / width))
        examples[place] = (examples[place] or 0.0) + (each.examples or 0)
    return tuple(None if each is None else each / width for each in examples)


class Keeper:
    """Goes round the jobs of this machine and keeps how they do, until it is told to end.

    Args:
        jobs: the jobs.
        lookout: looks at them.
    """

    def __init__(self, jobs: Jobs, lookout: Lookout) -> None:
        self._jobs, self._lookout = jobs, lookout
        self._ended = threading.Event()
        self.failures = 0

    def run(self) -> None:
        """Go round and round."""
        while not self._ended.is_set():
            self.go_round()
            self._ended.wait(ROUND_SECONDS)

    def end(self) -> None:
        """Let it end after the job that it looks at."""
        self._ended.set()

    def go_round(self) -> None:
        """Look at the jobs that run, and at some that have ended since they were looked at."""
        for names in (self._running, self._unseen):
            for name in self._safely(names) or ():
                if self._ended.is_set():
                    return
                self._safely(functools.partial(self._keep, name))

    def _running(self) -> list[str]:
        phases = tuple(phase for phase in JobPhase if not phase.is_final)
        query = RunQuery(phases=phases, limit=MOST_RUNNING)
        return [run.name for run in self._jobs.page(query).runs]

    def _unseen(self) -> list[str]:
        return self._jobs.store.runs_without_last_digest(limit=MOST_ENDED)

    def _keep(self, name: str) -> None:
        made = digest(self._lookout.snapshot(name), self._lookout.look(name))
        self._jobs.store.save_digest(name, made)

    def _safely(self, action: Callable[[], T]) -> T | None:
        """Do something that may fail for one job, which must not keep the others from being looked at."""
        try:
            return action()
        except PacelineError as error:  # It was deleted meanwhile, or the store does not answer.
            log.warning("%s", error.message)
        except Exception:  # The loop's edge.
            self.failures += 1
            log.exception("a job could not be looked at")
        return None
