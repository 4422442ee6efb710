"""What happens to the pods of the benchmarks' jobs, followed in a thread while something else is done."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from support import clusters
from support.kills import until

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clients import RealCluster
from paceline.engines.kubernetes.mirrors import Mirror
from paceline.rendering import labels

_FILLED_SECONDS = 30.0


class PodWatch:
    """The pods of all jobs of the namespace, or of those with a label.

    Attributes:
        running: when (`time.monotonic`) each pod was first seen running, by name.
        starts: when each pod was first seen running, by uid: a successor may have the same name.
        gone: when each pod was seen gone, by name.
        most_jobs: of how many jobs at most pods were seen at once that had not ended.
        doubled: the replicas of which two pods were seen at once that had not ended.
    """

    def __init__(self, selector: str) -> None:
        self.running: dict[str, float] = {}
        self.starts: dict[str, float] = {}
        self.gone: dict[str, float] = {}
        self.most_jobs = 0
        self.doubled: set[str] = set()
        self._selector = selector
        self._present: set[str] = set()
        self._live: dict[str, set[str]] = defaultdict(set)
        self._jobs: dict[str, set[str]] = defaultdict(set)
        self._is_filled = threading.Event()
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    @classmethod
    @contextlib.contextmanager
    def following(cls, selector: str = labels.JOB) -> Iterator[PodWatch]:
        """Yield a watch that follows."""
        watch = cls(selector)
        watch._thread.start()
        try:
            if not watch._is_filled.wait(_FILLED_SECONDS):
                raise TimeoutError("the pods cannot be listed")
            yield watch
        finally:
            watch._stop()
            watch._thread.join()

    def wait_for_running(self, count: int, *, seconds: float) -> float:
        """Return when the last of so many pods was seen running.

        Raises:
            TimeoutError: they do not run in time.
        """
        try:
            until(lambda: len(self.running) >= count, seconds=seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{len(self.running)} of {count} pods run after {seconds:g} s") from error
        return max(self.running.values())

    def wait_for_starts(self, count: int, *, seconds: float) -> float:
        """Return when so many pods had been seen running, those that are gone included.

        Raises:
            TimeoutError: there are fewer in time.
        """
        until(lambda: len(self.starts) >= count, seconds=seconds)
        return sorted(self.starts.values())[count - 1]

    def wait_for_none(self, *, seconds: float) -> float:
        """Return when the last pod was seen gone.

        Raises:
            TimeoutError: there are some still.
        """
        until(lambda: not self._present, seconds=seconds)
        return max(self.gone.values())

    async def _run(self) -> None:
        cluster = RealCluster()
        mirror = Mirror(
            cluster,
            kinds.PODS,
            namespace=clusters.NAMESPACE,
            selector=self._selector,
            on_change=lambda pod: self._changed(pod, mirror),
        )
        stopped = asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        loop = asyncio.get_running_loop()
        following = asyncio.create_task(mirror.run())
        await mirror.is_filled.wait()
        self._is_filled.set()
        await stopped.wait()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await cluster.close()

    def _changed(self, pod: Mapping[str, Any], mirror: Mirror) -> None:
        name = pod["metadata"]["name"]
        present = mirror.get((clusters.NAMESPACE, name))
        if present is None:
            self.gone[name] = time.monotonic()
            self._present.discard(name)
        else:
            self._present.add(name)
            if clusters.is_running(present):
                self.starts.setdefault(present["metadata"]["uid"], time.monotonic())
        if labels.JOB in pod["metadata"]["labels"]:
            self._changed_replica(pod, present)

    def _changed_replica(self, pod: Mapping[str, Any], present: Mapping[str, Any] | None) -> None:
        """Take in a change of a pod of our own jobs."""
        name, replica = pod["metadata"]["name"], clusters.replica_of(pod)
        live = self._live[replica]
        if present is None or not clusters.is_live(present):
            live.discard(name)
        else:
            live.add(name)
        job = replica.partition("/")[0]
        self._jobs[job].discard(replica)
        if live:
            self._jobs[job].add(replica)
        if len(live) > 1:
            self.doubled.add(replica)
        self.most_jobs = max(self.most_jobs, sum(map(bool, self._jobs.values())))
        if present is not None and clusters.is_running(present):
            self.running.setdefault(name, time.monotonic())
