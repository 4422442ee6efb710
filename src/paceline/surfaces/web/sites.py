"""What a server serves: where its jobs are, where its store is, and who may pass."""

from __future__ import annotations

import abc
import collections
import dataclasses
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from paceline.engines.kubernetes.clusters import Cluster
from paceline.engines.kubernetes.loops import Loop
from paceline.errors import InvalidInput
from paceline.model.jobs.quotas import QuotaUses
from paceline.model.jobs.run_names import cluster_job
from paceline.model.jobs.runs import KUBERNETES, LOCAL
from paceline.services.cluster import quotas
from paceline.services.cluster.jobs import ClusterJobs
from paceline.services.cluster.measurements import ClusterMeasurements
from paceline.services.life_cycles import StoredLifeCycle
from paceline.services.local.jobs import Jobs
from paceline.services.observing.diagnosis_summaries import Watched
from paceline.services.observing.look_cache import Latest, LookCache
from paceline.stores import Store
from paceline.surfaces.web.gates import Gate

#: The greatest age of a list of jobs.
LIST_SECONDS = 1.0
#: For how many namespaces the latest looks are kept.
MOST_NAMESPACES = 64


class Site(abc.ABC):
    """A place with jobs that a server gives access to."""

    #: The greatest age of a job's line in a list.
    DIAGNOSIS_SECONDS: ClassVar[float] = 0.0
    #: The engine that runs the jobs, as in ``Run.engine``.
    engine: str
    #: The default namespace; None: this machine has no namespaces.
    namespace: str | None
    store: Store
    gate: Gate
    #: Unix seconds.
    clock: Callable[[], float]

    @abc.abstractmethod
    def jobs(self, namespace: str | None) -> StoredLifeCycle:
        """Return the life cycle of a namespace's jobs.

        Raises:
            InvalidInput: a namespace is named, and there are none here.
        """

    @abc.abstractmethod
    def look_cache(self, namespace: str | None) -> LookCache:
        """Return the latest looks at the jobs of a namespace; raises as ``jobs`` does."""

    @abc.abstractmethod
    def namespaces(self) -> list[str]:
        """Return the namespaces that have jobs, and the default namespace.

        Raises:
            ClusterError: the cluster does not answer.
        """

    @abc.abstractmethod
    def quotas(self, namespace: str | None) -> QuotaUses:
        """Return the quotas of a namespace, and how much of them is used.

        Raises:
            ClusterError: the cluster does not answer.
        """

    @abc.abstractmethod
    def watched(self, run: str) -> Watched:
        """Return the job that a run of the store belongs to."""

    @abc.abstractmethod
    def base(self, named: str | None) -> Path:
        """Return the folder that the paths in a submitted job file are relative to.

        Raises:
            InvalidInput: no folder may be named here, or the named one is no folder.
        """


def _is_folder(path: Path) -> bool:
    """Whether a path is that of a folder; one that is too long, or may not be looked at, is not."""
    try:
        return path.is_dir()
    except OSError:
        return False


class LocalSite(Site):
    """The jobs of a home on this machine.

    Args:
        jobs: the life cycle of these jobs.
        gate: who may do what.
    """

    engine = LOCAL
    namespace = None

    def __init__(self, jobs: Jobs, gate: Gate) -> None:
        self._jobs = jobs
        self._look_cache = LookCache(jobs, time.monotonic)
        self.store, self.clock, self.gate = jobs.store, jobs.clock, gate

    def jobs(self, namespace: str | None) -> StoredLifeCycle:
        """Return the life cycle of this machine's jobs."""
        if namespace is not None:
            raise InvalidInput(f"this machine has no namespaces: {namespace!r}", "leave it out")
        return self._jobs

    def look_cache(self, namespace: str | None) -> LookCache:
        """Return the latest looks at the jobs of this machine."""
        return self._look_cache

    def namespaces(self) -> list[str]:
        """Return the namespaces of this machine: none."""
        return []

    def quotas(self, namespace: str | None) -> QuotaUses:
        """Return the quotas of this machine's user: none."""
        return QuotaUses()

    def watched(self, run: str) -> Watched:
        """Return the job of a run: on this machine both have the same name."""
        return Watched(self._jobs, self._look_cache, run)

    def base(self, named: str | None) -> Path:
        """Return a folder of this machine; the token's holder may read what the server may read here."""
        if named is None:
            return self._jobs.home.path
        folder = Path(named)
        if "\0" in named or not folder.is_absolute() or not _is_folder(folder):
            raise InvalidInput(f"{named!r} is no folder of this machine", "name it by its whole path")
        return folder


class ClusterSite(Site):
    """The jobs of a Kubernetes cluster, in every namespace that callers have rights in.

    The gate decides what callers may do; the server then does what they ask for in its own name. It could
    impersonate them, but with that right it could act as any user, so a hole in the server would be a hole in
    the whole cluster. Also, a look made for one caller could not be shown to another, and looks at large jobs
    have to be shared. So the server has only the rights that the verbs need (`deploy`).

    All lasting state is in the store and the cluster, so several servers may run side by side.

    Args:
        cluster: the cluster with the jobs.
        loop: the event loop of the cluster's client, shared by many threads.
        measurements: with the store that the operator fills.
        gate: who may do what.
        namespace: the default if a caller names none.
        clock: Unix seconds.
    """

    #: The operator delivers samples no sooner, and each look asks the API server for pods, events and nodes.
    DIAGNOSIS_SECONDS = ClusterJobs.DELAY_SECONDS
    engine = KUBERNETES

    def __init__(
        self,
        cluster: Cluster,
        loop: Loop,
        measurements: ClusterMeasurements,
        gate: Gate,
        *,
        namespace: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cluster, self.loop, self.gate, self.clock = cluster, loop, gate, clock
        self.namespace = self._default = namespace
        self.store = measurements.store
        self._measurements = measurements
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[str, tuple[ClusterJobs, LookCache]] = collections.OrderedDict()

    def jobs(self, namespace: str | None) -> ClusterJobs:
        """Return the life cycle of a namespace's jobs."""
        return self._of(namespace or self._default)[0]

    def look_cache(self, namespace: str | None) -> LookCache:
        """Return the latest looks at the jobs of a namespace."""
        return self._of(namespace or self._default)[1]

    def _of(self, namespace: str) -> tuple[ClusterJobs, LookCache]:
        with self._lock:
            if namespace not in self._known:
                jobs = ClusterJobs(
                    self.cluster, namespace, self.loop, self._measurements, clock=self.clock, packs=False
                )
                # An open page requests the list every two seconds, and a team has many pages open.
                lists = Latest(jobs.summaries, time.monotonic, lambda took: max(LIST_SECONDS, took))
                jobs = dataclasses.replace(jobs, listed=lists.get)
                self._known[namespace] = jobs, LookCache(jobs, time.monotonic)
                if len(self._known) > MOST_NAMESPACES:
                    self._known.popitem(last=False)
            self._known.move_to_end(namespace)
            return self._known[namespace]

    def namespaces(self) -> list[str]:
        """Return the namespaces that have jobs, and the server's own."""
        found = {each.namespace or "" for each in self.jobs(None).runs(everywhere=True)}
        return sorted({*found, self._default})

    def quotas(self, namespace: str | None) -> QuotaUses:
        """Return the quotas and queues of a namespace."""
        return self.loop.run(quotas.look(self.cluster, namespace or self._default))

    def watched(self, run: str) -> Watched:
        """Return the job of a run: the run's name in the store begins with the job's namespace and name."""
        namespace, name = cluster_job(run)
        return Watched(*self._of(namespace), name)

    def base(self, named: str | None) -> Path:
        """Return a folder that does not exist: the server has no folders for its callers' job files."""
        if named is not None:
            raise InvalidInput("a server on a cluster has no folders for jobs", "leave `base` out")
        return Path("/nonexistent")
