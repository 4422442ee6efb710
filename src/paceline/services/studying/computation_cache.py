"""Caches what takes seconds to compute about a job: one thread computes it for all callers.

A server answers many callers with few threads: if each caller who asks for proposals held one for ten
seconds, no other caller would be answered.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from paceline.model.jobs.runs import KUBERNETES, Run
from paceline.model.studies.proposals import Proposal
from paceline.services.observing.diagnosis_runs import LOOK_SHARE
from paceline.services.observing.look_cache import LookCache, identity

if TYPE_CHECKING:
    from paceline.services.studying.predictions import SpeedModel

#: The number of jobs whose results are kept.
MOST_JOBS = 16
#: How old a result of a running job may be, unless it takes long to compute.
YOUNG_SECONDS = 60.0
#: How long after a failure the computation is tried again.
FAILED_SECONDS = 5.0


class Advisor:
    """Computes speed models and proposals, once for all callers.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._models, self._proposals = _Kept(clock, "models"), _Kept(clock, "proposals")

    def model(self, namespace: str | None, run: Run, look_cache: LookCache) -> Future[SpeedModel]:
        """Return a future of the speed model of a job, whose result raises as `predictions.model`."""

        def compute() -> SpeedModel:
            from paceline.services.studying import predictions

            found = predictions.model(look_cache.look(run).recording)
            # Every forecast needs the speed of the current layout, which `forecasts` caches.
            predictions.forecast_of(found, found.measured.layout)
            return found

        return self._models.get(_key(namespace, run), compute, is_final=run.phase.is_final)

    def proposals(self, namespace: str | None, run: Run, look_cache: LookCache) -> Future[list[Proposal]]:
        """Return a future of the proposals for a job, whose result raises as ``LookCache.look``."""

        def compute() -> list[Proposal]:
            from paceline.model.studies.tunings import Objective
            from paceline.services.studying import proposals, tunings

            objective = tunings.limited(Objective(), run.spec, on_cluster=run.engine == KUBERNETES)
            return proposals.proposals(look_cache.look(run).recording, objective)

        return self._proposals.get(_key(namespace, run), compute, is_final=run.phase.is_final)


def _key(namespace: str | None, run: Run) -> Hashable:
    return namespace, identity(run)


@dataclasses.dataclass(slots=True)
class _Entry:
    """The latest result, until when it is recent enough, and the computation under way."""

    latest: Future[Any] | None = None
    until: float = 0.0
    running: Future[Any] | None = None


class _Kept:
    """Computed values of one kind, by their keys."""

    def __init__(self, clock: Callable[[], float], name: str) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._entries: collections.OrderedDict[Hashable, _Entry] = collections.OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Any], *, is_final: bool) -> Future[Any]:
        """Return the latest value, also while it is being computed again because it is too old."""
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            if len(self._entries) > MOST_JOBS:
                self._entries.popitem(last=False)
            if entry.running is None and self._clock() >= entry.until:
                entry.running = self._thread.submit(self._computed, entry, compute, is_final)
            found = entry.latest or entry.running
        assert found is not None, "it was computed, or is"
        return found

    def _computed(self, entry: _Entry, compute: Callable[[], Any], is_final: bool) -> Any:
        begun, pause = self._clock(), FAILED_SECONDS
        try:
            found = compute()
            pause = math.inf if is_final else max(YOUNG_SECONDS, (self._clock() - begun) / LOOK_SHARE)
            return found
        finally:
            with self._lock:
                entry.latest, entry.running, entry.until = entry.running, None, self._clock() + pause
