"""Finds what was measured of the jobs of a cluster, in the store that an operator fills or in their pods.

Without a store, only what the agents of running pods still have can be read: enough to see the present, not
the past.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from paceline.control.reconciliations import Stage
from paceline.engines.kubernetes import pod_states, requests
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.engines.local.folders import RunFolder
from paceline.errors import NotFound, StoreError
from paceline.model.jobs.runs import Run
from paceline.services.cluster import runs
from paceline.services.cluster.collectors import AttemptSource, Collector
from paceline.specs.job_file import custom_resources
from paceline.stores import Store, open_store

#: How much of the end of a spool is read for a snapshot: a minute or more.
LOOK_BYTES = 1 << 16
_HINT = (
    "agents are read through the API server: that needs the right to get pods/proxy; "
    "or read what the operator has kept: --store URL"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A run, and the store that has it; its name in the store differs from the name of the job.

    Attributes:
        is_scratch: whether the store holds only what agents have just answered.
    """

    store: Store
    run: Run
    is_scratch: bool = False

    def named(self, name: str) -> Run:
        """Return the run under the name of its job."""
        return dataclasses.replace(self.run, name=name)


class ClusterMeasurements:
    """Finds what was measured of jobs. It opens a store only when it is needed, and threads may share it.

    Args:
        cluster: where the jobs are.
        store_url: the store that the operator fills; None: there is none.
        home: the folder where an operator on this machine keeps output, and to which traces are brought.
    """

    def __init__(self, cluster: Cluster, *, store_url: str | None, home: Path) -> None:
        self._cluster = cluster
        self._store_url = store_url
        self.home = home
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._collectors: dict[bool, tuple[Store, Collector]] = {}

    @property
    def has_store(self) -> bool:
        """Whether a store is configured."""
        return self._store_url is not None

    @property
    def store(self) -> Store:
        """The configured store.

        Raises:
            NotFound: no store is configured.
            StoreError: the store cannot be opened.
        """
        if self._store_url is None:
            raise NotFound(
                "no store is named, so measurements of the past cannot be read",
                "name the store of the cluster's operator: --store URL",
            )
        with self._lock:
            if self._store is None:
                self._store = self._stack.enter_context(open_store(self._store_url))
            return self._store

    def close(self) -> None:
        """Close what was opened."""
        self._stack.close()

    def kept(self, scope: str, name: str, resource: Object | None) -> Found:
        """Return the run of a job in the operator's store.

        Args:
            scope: the scope of its namespace (`runs`).
            name: the job.
            resource: its resource, whose status is newer than the store; None: it is gone.

        Raises:
            NotFound: the store has no run of the job, or no store is configured.
            StoreError: the store cannot be read.
        """
        store = self.store
        if resource is None:
            return Found(store, runs.find(store, scope, name))
        run = runs.find(store, scope, name, resource["metadata"]["uid"])
        return Found(store, dataclasses.replace(run, **runs.progress(resource)))

    async def read(
        self, resource: Object, found: Sequence[Object], *, scope: str, whole: bool, now: float
    ) -> Found:
        """Return the run of a job with what its agents answer now.

        Args:
            resource: the job.
            found: its pods.
            scope: the scope of its namespace (`runs`).
            whole: whether to read the whole spools instead of the last minute.
            now: Unix seconds.

        Raises:
            ClusterError: no agent answers, and there is no store to which the operator will bring the spools.
        """
        store, collector = self._scratch(whole)
        spec = custom_resources.job_spec(resource)
        run = runs.run_name(resource, scope)
        await asyncio.to_thread(runs.keep, store, run, resource, spec, self.home, now=now)
        running = [
            AttemptSource.of(run, pod, pod_state)
            for pod in found
            for pod_state in pod_states.of([pod], silent={}, now=now)
            if pod_state.stage is Stage.RUNNING
        ]
        answers = await requests.answers(map(collector.collect, running))
        errors = [each for each in answers if isinstance(each, ClusterError)]
        if errors and len(errors) == len(running) and not self.has_store:
            raise ClusterError(errors[0].message, code=errors[0].code, hint=errors[0].hint or _HINT)
        return Found(store, await asyncio.to_thread(store.get_run, run), is_scratch=True)

    def _scratch(self, whole: bool) -> tuple[Store, Collector]:
        """Return a temporary store, and the collector that fills it."""
        with self._lock:
            if whole not in self._collectors:
                self._collectors[whole] = self._made(whole)
            return self._collectors[whole]

    def _made(self, whole: bool) -> tuple[Store, Collector]:
        try:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="paceline-"))
        except OSError as error:
            raise StoreError(f"no folder for a while can be made: {error}") from error
        store = self._stack.enter_context(open_store(f"sqlite:///{folder}/paceline.db"))
        return store, Collector(self._cluster, store, last_bytes=None if whole else LOOK_BYTES)

    def folder(self, scope: str, name: str, resource: Object | None) -> RunFolder:
        """Return the folder where files of a job are kept on this machine, if they are kept.

        Args:
            scope: the scope of its namespace (`runs`).
            name: the job.
            resource: its resource; None: it is gone, and the store has the run.

        Raises:
            NotFound: the resource is gone, and the store has no run of the job.
        """
        if resource is None or self.has_store:
            with contextlib.suppress(NotFound):
                return RunFolder.of(self.kept(scope, name, resource).run)
        if resource is None:
            raise NotFound(f"there is no job {name!r}")
        return RunFolder(runs.folder(self.home, runs.run_name(resource, scope)))
