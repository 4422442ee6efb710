"""Reads and patches the objects of the jobs of a namespace: their resources, pods and events."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable, Coroutine, Iterable
from http import HTTPStatus
from typing import Any, TypeVar

from paceline.engines.kubernetes import cluster_states, kinds, pod_states
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.engines.kubernetes.loops import Loop
from paceline.errors import NotFound
from paceline.model.jobs.runs import JobEvent
from paceline.model.roles import ReplicaId
from paceline.rendering import labels
from paceline.services.cluster import admissions, announcements, resources
from paceline.services.cluster import runs as cluster_runs
from paceline.services.cluster.measurements import ClusterMeasurements
from paceline.specs.yaml_text import problems

_NO_OPERATOR = (
    "the cluster has to know what a TrainingJob is: paceline schema --crd | kubectl apply -f -, "
    "and an operator has to run: paceline operator"
)

#: The names that Kubernetes allows for resources.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

#: How often to look at a job that is waited for.
POLL_SECONDS = 0.5

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class JobObjects:
    """The objects of the jobs of a namespace.

    Attributes:
        cluster: the cluster.
        namespace: the namespace.
        runner: the event loop of the cluster's client.
        measurements: finds what was measured of the jobs.
        clock: Unix seconds.
    """

    cluster: Cluster
    namespace: str
    runner: Loop
    measurements: ClusterMeasurements
    clock: Callable[[], float] = time.time

    def scope(self) -> str:
        """Return the prefix of the names that the namespace's runs have in the store.

        Raises:
            NotFound: the namespace is gone.
            ClusterError: the cluster does not answer.
        """
        if not self.measurements.has_store:
            return f"{self.namespace}/"  # Without a store, there are no runs of an earlier namespace.
        try:
            return cluster_runs.scope_of(self.do(self.cluster.get(kinds.NAMESPACES, self.namespace)))
        except ClusterError as error:
            if error.is_missing:
                raise NotFound(f"there is no namespace {self.namespace!r}") from error
            raise ClusterError(
                error.message, code=error.code, hint=error.hint or "reading a store needs the right to get it"
            ) from error

    def do(self, wanted: Coroutine[Any, Any, T]) -> T:
        """Return the answer of the cluster."""
        return self.runner.run(wanted)

    def resources(self, namespace: str | None) -> list[Object]:
        """Return the resources of the jobs of a namespace; None: of all namespaces.

        Raises:
            NotFound: the cluster does not know what a TrainingJob is.
            ClusterError: the cluster does not answer.
        """
        try:
            return self.do(self.cluster.list(kinds.TRAINING_JOBS, namespace=namespace)).objects
        except ClusterError as error:
            if error.is_missing:
                raise NotFound(error.message, _NO_OPERATOR) from error
            raise

    def resource(self, name: str) -> Object:
        """Return a job's resource.

        Raises:
            NotFound: the job does not exist.
            ClusterError: the cluster does not answer.
        """
        try:
            if not _NAME.fullmatch(name):
                # In a path of the API server it would mean something else, such as all jobs.
                raise ClusterError(f"{name!r} is no name", code=HTTPStatus.NOT_FOUND)
            return self.do(self.cluster.get(kinds.TRAINING_JOBS, name, self.namespace))
        except ClusterError as error:
            if not error.is_missing:
                raise
            known = [each["metadata"]["name"] for each in self.resources(self.namespace)]
            close = problems.did_you_mean(name, known)
            raise NotFound(
                f"there is no job {name!r} in {self.namespace}{close}", "paceline list shows what there is"
            ) from error

    def resource_if_there(self, name: str) -> Object | None:
        """Return a job's resource; None if it is gone, but a store is configured that may have the run.

        Raises:
            NotFound: the resource is gone, and no store is configured.
        """
        try:
            return self.resource(name)
        except NotFound:
            if not self.measurements.has_store:
                raise
            return None

    def pods(self, name: str) -> list[Object]:
        """Return the pods of a job."""
        selector = f"{labels.JOB}={name}"
        return self.do(self.cluster.list(kinds.PODS, namespace=self.namespace, selector=selector)).objects

    def attempts(self, name: str) -> list[tuple[tuple[ReplicaId, int], Object]]:
        """Return the pods of a job that run attempts, each with its attempt, sorted by attempt."""
        found = ((pod_states.attempt_of(pod), pod) for pod in self.pods(name))
        known = [(attempt, pod) for attempt, pod in found if attempt is not None]
        return sorted(known, key=lambda each: each[0])

    def patch(self, name: str, changes: Object) -> None:
        """Merge changes into a job's resource.

        Raises:
            ClusterError: the cluster refuses them.
        """
        self.do(self.cluster.patch(kinds.TRAINING_JOBS, name, self.namespace, changes))

    def cluster_state(self) -> cluster_states.ClusterState:
        """Return the resources of the cluster and how much of them is taken."""
        return self.do(admissions.look(self.cluster, self.namespace))

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return the numbered events of a run, from the operator's store or else from the cluster.

        The cluster keeps events for an hour or so.
        """
        events: Iterable[tuple[int, JobEvent]]
        if self.measurements.has_store:
            with contextlib.suppress(NotFound):  # The operator has not seen it yet, or uses another store.
                found = self.measurements.kept(self.scope(), name, self.resource_if_there(name))
                return found.store.events(found.run.name, since_id=since_id)
            # The store will have the job in a moment, and its numbers are small: a follower must not have
            # seen a larger one.
            events = enumerate((event for _, event in self.cluster_events(name)), start=1)
        else:
            events = self.cluster_events(name)
        return [(number, event) for number, event in events if number > since_id]

    def cluster_events(self, name: str) -> list[tuple[int, JobEvent]]:
        """Return the Kubernetes events of a job, each with a number that stays the same."""
        uid = self.resource(name)["metadata"]["uid"]
        selector = f"{labels.JOB}={name}"
        found = self.do(self.cluster.list(kinds.EVENTS, namespace=self.namespace, selector=selector)).objects
        own = [each for each in found if each["involvedObject"].get("uid") == uid]
        numbered = sorted(
            ((announcements.event_number(each), each) for each in own), key=lambda pair: pair[0]
        )
        return [(number, resources.event(each)) for number, each in numbered]
