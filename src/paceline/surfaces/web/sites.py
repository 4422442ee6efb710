"""What a server stands on: where its jobs are, where it keeps things, who may pass."""

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
from paceline.services.life_cycles import LifeCycle
from paceline.services.local.jobs import Jobs
from paceline.services.observing.job_summaries import Watched
from paceline.services.observing.look_cache import Latest, LookCache
from paceline.stores import Store
from paceline.surfaces.web.gates import Gate

#: How old a list of jobs may be.
LIST_SECONDS = 1.0
#: Of so many namespaces what was seen last is kept.
MOST_NAMESPACES = 64


class Site(abc.ABC):
    """A place with jobs that a server gives access to."""

    #: How old the line that lists show of a job may be.
    DIGEST_SECONDS: ClassVar[float] = 0.0
    #: What runs the jobs, as in ``Run.engine``.
    engine: str
    #: The namespace that is meant where none is named; None: this machine has none.
    namespace: str | None
    store: Store
    gate: Gate
    #: Unix seconds.
    clock: Callable[[], float]

    @abc.abstractmethod
    def jobs(self, namespace: str | None) -> LifeCycle:
        """Return what can be done with the jobs of a namespace.

        Raises:
            InvalidInput: there are no namespaces here, and one is named.
        """

    @abc.abstractmethod
    def lookout(self, namespace: str | None) -> LookCache:
        """Return the latest looks at the jobs of a namespace; raises as ``jobs`` does."""

    @abc.abstractmethod
    def namespaces(self) -> list[str]:
        """Return the namespaces that have jobs, and the default namespace.

        Raises:
            ClusterError: the cluster does not answer.
        """

    @abc.abstractmethod
    def quotas(self, namespace: str | None) -> QuotaUses:
        """Return what bounds a namespace, and what is taken of that.

        Raises:
            ClusterError: the cluster does not answer.
        """

    @abc.abstractmethod
    def watched(self, run: str) -> Watched:
        """Return what job a run of the store is."""

    @abc.abstractmethod
    def base(self, named: str | None) -> Path:
        """Return the folder that a submitted job file's paths start from.

        Raises:
            InvalidInput: none may be named here, or it is no folder.
        """


class LocalSite(Site):
    """The jobs of a home on this machine.

    Args:
        jobs: what can be done with them.
        gate: who may.
    """

    engine = LOCAL
    namespace = None

    def __init__(self, jobs: Jobs, gate: Gate) -> None:
        self._jobs = jobs
        self._lookout = LookCache(jobs, time.monotonic)
        self.store, self.clock, self.gate = jobs.store, jobs.clock, gate

    def jobs(self, namespace: str | None) -> LifeCycle:
        """Return what can be done with the jobs of this machine."""
        if namespace is not None:
            raise InvalidInput(f"this machine has no namespaces: {namespace!r}", "leave it out")
        return self._jobs

    def lookout(self, namespace: str | None) -> LookCache:
        """Return the latest looks at the jobs of this machine."""
        return self._lookout

    def namespaces(self) -> list[str]:
        """Return the namespaces of this machine: none."""
        return []

    def quotas(self, namespace: str | None) -> QuotaUses:
        """Return what bounds this machine's user: nothing."""
        return QuotaUses()

    def watched(self, run: str) -> Watched:
        """Return a run as a job: here it is called the same."""
        return Watched(self._jobs, self._lookout, run)

    def base(self, named: str | None) -> Path:
        """Return a folder of this machine; the token's holder may read here what the server may."""
        if named is None:
            return self._jobs.home.path
        folder = Path(named)
        if "\0" in named or not folder.is_absolute() or not folder.is_dir():
            raise InvalidInput(f"{named!r} is no folder of this machine", "name it by its whole path")
        return folder


class ClusterSite(Site):
    """The jobs of a Kubernetes cluster, of any namespace that callers have rights in.

    The gate says what callers may; the server then does what they ask for in its own name. It could act in
    theirs (impersonation), but with that right it could act as any user, so a hole in the server would be one
    in the whole cluster; and what was seen for one caller could not be shown to another, which looks at large
    jobs need. So its rights are those that the verbs need, and no more (`deploy`).

    Nothing but the store and the cluster knows anything that matters, so several servers may stand beside
    each other.

    Args:
        cluster: where the jobs are.
        loop: where its client lives, for many threads.
        measurements: with the store that the operator fills.
        gate: who may.
        namespace: the default, where a caller names none.
        clock: Unix seconds.
    """

    #: Samples come no sooner from the operator; and each look asks the API server for pods, events and nodes.
    DIGEST_SECONDS = ClusterJobs.DELAY_SECONDS
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
        """Return what can be done with the jobs of a namespace."""
        return self._of(namespace or self._default)[0]

    def lookout(self, namespace: str | None) -> LookCache:
        """Return the latest looks at the jobs of a namespace."""
        return self._of(namespace or self._default)[1]

    def _of(self, namespace: str) -> tuple[ClusterJobs, LookCache]:
        with self._lock:
            if namespace not in self._known:
                jobs = ClusterJobs(
                    self.cluster, namespace, self.loop, self._measurements, clock=self.clock, packs=False
                )
                # A page that is open asks for the list every two seconds, and a team has many open.
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
        """Return a run as a job: its name in the store begins with namespace and name."""
        namespace, name = cluster_job(run)
        return Watched(*self._of(namespace), name)

    def base(self, named: str | None) -> Path:
        """Return a folder that no job file's path leads out of: the server has none for its callers."""
        if named is not None:
            raise InvalidInput("a server on a cluster has no folders for jobs", "leave `base` out")
        return Path("/nonexistent")
