"""The life cycle of jobs on a Kubernetes cluster, as `jobs.Jobs` has it on this machine.

A job is its resource: what a user wants is written into its spec, where it stands is read from its status.
All else is the operator's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from paceline.control.resizings import Resize
from paceline.diagnosing.progress import commands
from paceline.diagnosing.situations import Situation
from paceline.engines.kubernetes import cluster_states, kinds, sights
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Line, Object
from paceline.engines.kubernetes.loops import Loop
from paceline.errors import Conflict, EngineError, InvalidInput, NotFound
from paceline.model import run_queries
from paceline.model.adjustments import Adjustment, Knob
from paceline.model.jobs import JobSpec
from paceline.model.nodes import Node
from paceline.model.recordings import Recording
from paceline.model.roles import ReplicaId, Role
from paceline.model.run_queries import RunPage, RunQuery
from paceline.model.runs import JobEvent, ReplicaRow, Run, RunSummary, Submit
from paceline.model.snapshots import Snapshot
from paceline.model.statuses import JobPhase
from paceline.rendering import labels, pods
from paceline.scheduling import fits
from paceline.scheduling.fits import Fit
from paceline.services import (
    cluster_changes,
    cluster_resizes,
    cluster_resources,
    cluster_runs,
    cluster_situations,
    cluster_submits,
    log_files,
    node_labels,
    recordings,
    snapshots,
)
from paceline.services.cluster_logs import PodReader
from paceline.services.cluster_measurements import ClusterMeasurements, Found
from paceline.services.cluster_submits import Made
from paceline.services.life_cycles import CLUSTER_DELAY_SECONDS, LifeCycle, Stored
from paceline.services.logs import Wanted
from paceline.services.operators import admissions, announcements, records
from paceline.services.operators.reconcilers import RESUME
from paceline.services.operators.records import UnreadableStatus
from paceline.services.trace_sites import PodSite
from paceline.sources import agents
from paceline.specs import custom_resources, problems

_NO_OPERATOR = (
    "the cluster has to know what a TrainingJob is: paceline schema --crd | kubectl apply -f -, "
    "and an operator has to run: paceline operator"
)

#: What resources may be called.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterJobs(LifeCycle):
    """What can be done with the jobs of a namespace.

    Attributes:
        cluster: the cluster.
        namespace: the namespace.
        runner: where its client lives.
        measurements: what was measured of them.
        packs: whether folders of this machine may go with jobs; not those of a server, which others ask.
        listed: gives `summaries` as they were a moment ago, for many who ask; None: they are read anew.
    """

    POLL_SECONDS: ClassVar[float] = 0.5
    DELAY_SECONDS: ClassVar[float] = CLUSTER_DELAY_SECONDS
    LOOK: ClassVar[str] = "get"
    cluster: Cluster
    namespace: str
    runner: Loop
    measurements: ClusterMeasurements
    clock: Callable[[], float] = time.time
    packs: bool = True
    listed: Callable[[], Sequence[RunSummary]] | None = None

    @property
    def keeps(self) -> bool:
        """Whether the operator's store is known: agents take along what only they know."""
        return self.measurements.has_store

    def scope(self) -> str:
        """Return how the names of the namespace's runs begin in the store.

        Raises:
            NotFound: the namespace is gone.
            ClusterError: the cluster does not say.
        """
        if not self.measurements.has_store:
            return f"{self.namespace}/"  # Nothing was kept that it could inherit.
        try:
            return cluster_runs.scope_of(self._do(self.cluster.get(kinds.NAMESPACES, self.namespace)))
        except ClusterError as error:
            if error.is_missing:
                raise NotFound(f"there is no namespace {self.namespace!r}") from error
            raise ClusterError(
                error.message, code=error.code, hint=error.hint or "reading a store needs the right to get it"
            ) from error

    def submit(
        self, spec: JobSpec, *, source: str, base: Path, name: str | None = None, submit: Submit | None = None
    ) -> Run:
        """Make the resource of a job and return at once (see `Jobs.submit`).

        Raises:
            Conflict: something else was submitted with that key.
            InvalidInput: the job lacks what Kubernetes needs, or its folder of code cannot be carried.
            ClusterError: the cluster refuses it.
        """
        while True:
            # One look for both: a job that the first does not see has taken no name for the second.
            present = self._resources(self.namespace)
            known = cluster_submits.known(present, submit)
            if known is not None:
                return cluster_resources.run(known)
            made = self._made(spec, base, name, present, submit)
            try:
                return cluster_resources.run(self._do(cluster_submits.create(self.cluster, made)))
            except ClusterError as error:
                # Another request was quicker: the same submit, or another job of that name.
                if submit is None or error.code != HTTPStatus.CONFLICT:
                    raise

    def rehearse(self, spec: JobSpec, *, base: Path, name: str | None = None) -> Run:
        """Return what a submit would make, by the API server's own word, and make nothing.

        Raises:
            InvalidInput: as `submit`.
            ClusterError: as `submit`.
        """
        made = self._made(spec, base, name, self._resources(self.namespace), None)
        creation = self.cluster.create(kinds.TRAINING_JOBS, made.resource, dry_run=True)
        return cluster_resources.run(self._do(creation))

    def _made(
        self, spec: JobSpec, base: Path, name: str | None, present: Sequence[Object], submit: Submit | None
    ) -> Made:
        if not self.packs and spec.code is not None and spec.code.folder is not None:
            raise InvalidInput(
                "a folder of code is on the user's machine, not on the server's",
                "paceline submit FILE --engine kubernetes, or code from git or an archive",
            )
        return cluster_submits.made(
            spec, base, name=name or spec.name, namespace=self.namespace, present=present, submit=submit
        )

    @contextlib.contextmanager
    def housed(self, spec: JobSpec, study: str) -> Iterator[JobSpec]:
        """Confine the job of a study to as many nodes as it names hosts, by a label (see `node_labels`).

        Raises:
            EngineError: there are not as many nodes, or they may not be labelled.
        """
        if not spec.hosts:
            yield spec
            return
        held_by = node_labels.holder(self.namespace, study)
        try:
            yield self._do(node_labels.lend(self.cluster, self.namespace, spec, held_by))
        finally:
            self._do(node_labels.give_back(self.cluster, held_by))

    def runs(self, *, phases: Sequence[JobPhase] | None = None, everywhere: bool = False) -> list[RunSummary]:
        """Return the runs, newest first; with ``everywhere`` those of all namespaces."""
        found = map(cluster_resources.summary, self._resources(None if everywhere else self.namespace))
        wanted = (run for run in found if phases is None or run.phase in phases)
        return sorted(wanted, key=lambda run: (run.submitted_at, run.name), reverse=True)

    def page(self, query: RunQuery) -> RunPage:
        """Return a page of the runs of the namespace, with their digests."""
        return run_queries.page((self.listed or self.summaries)(), query)

    def summaries(self) -> list[RunSummary]:
        """Return all runs of the namespace, with their digests if a store was named."""
        scope = self.scope()
        known = self.measurements.store.digests(scope) if self.measurements.has_store else {}
        return [
            dataclasses.replace(
                cluster_resources.summary(each), digest=known.get(cluster_runs.run_name(each, scope))
            )
            for each in self._resources(self.namespace)
        ]

    def get(self, name: str) -> Run:
        """Return one run; of one whose resource is gone, what the operator has kept.

        Raises:
            NotFound: there is none of that name.
        """
        resource = self._found(name)
        if resource is None:
            return self.measurements.kept(self.scope(), name, None).named(name)
        return cluster_resources.run(resource)

    def is_lost(self, run: Run | RunSummary) -> bool:
        """Whether the run is lost: it never is, for a cluster keeps its operator alive."""
        return False

    def supervisor_pids(self, run: Run) -> tuple[int, ...]:
        """Return the processes here that look after the run: none."""
        return ()

    def stop(self, name: str) -> None:
        """Suspend a job.

        Raises:
            Conflict: it has ended already.
        """
        run = self.get(name)
        if run.phase.is_final:
            raise Conflict(f"{name} has ended already ({run.phase})")
        self.patch(name, {"spec": {custom_resources.SUSPEND: True}})

    def scale(self, name: str, workers: int) -> None:
        """Ask for another number of workers in a job that runs (see `Jobs.scale`).

        More of them begin when there is room; `get` says what they wait for.

        Raises:
            Conflict: it has ended, or cannot have so many.
        """
        resource = self.resource(name)
        run = cluster_resources.run(resource)
        record = records.read(resource.get("status") or {}, run.spec)
        self.check_scalable(dataclasses.replace(run, spec=record.state.spec) if record else run, workers)
        self.patch(name, {"spec": {"roles": {str(Role.WORKER): {"replicas": workers}}}})

    def resize(self, name: str, resize: Resize, *, seconds: float | None = None) -> None:
        """Give replicas of a job that runs other cores or memory (see `LifeCycle.resize`).

        The operator does it when it sees the change; a kubelet takes some seconds more.

        Raises:
            Conflict: it does not run, cannot have it, or something else is being changed.
            EngineError: the cluster does not resize pods, or does not give as much.
            WaitTimeout: its operator or a kubelet does not answer.
            ClusterError: the cluster refuses it.
        """
        resource = self.resource(name)
        run = cluster_resources.run(resource)
        record = records.read(resource.get("status") or {}, run.spec)
        spec = record.state.spec if record else run.spec
        self.check_resizable(dataclasses.replace(run, spec=spec), resize)
        hosts = {each.replica: each.host for each in self._replicas(resource) if each.host is not None}
        cluster_resizes.check(self, spec, hosts, resize)
        with self.changing(name, "resized"):
            if seconds is None:
                cluster_resizes.resize(self, name, spec, resize)
            else:
                cluster_resizes.resize_for(self, name, spec, resize, seconds=seconds)

    def knobs(self, run: Run) -> frozenset[Knob]:
        """Return what of a run can be adjusted (see `LifeCycle.knobs`)."""
        try:
            cluster_resizes.check_version(self)
        except EngineError:
            return frozenset()
        return frozenset({Knob.CPU, Knob.MEMORY})

    def check_returns(self, run: Run) -> None:
        """Let a run pass of which what is cut comes back for sure (see `LifeCycle.check_returns`)."""
        cluster_resizes.check_returns(self)

    def adjust(self, name: str, wanted: Sequence[Adjustment]) -> float:
        """Have something of a job that runs be different for a time (see `LifeCycle.adjust`)."""
        return cluster_resizes.adjust(self, name, wanted)

    def changing(self, name: str, doing: str) -> contextlib.AbstractContextManager[None]:
        """Keep others from changing a job (see `LifeCycle.changing`)."""
        return cluster_resizes.changing(self, name, doing)

    def change(self, name: str, source: str) -> None:
        """Let a job go on as another job file has it, from its last checkpoint (`cluster_changes`)."""
        cluster_changes.change(self, name, source)

    def resume(self, name: str) -> None:
        """Bring back a stopped or failed job from its last checkpoint.

        Raises:
            Conflict: it has succeeded, or it runs.
        """
        self.check_resumable(self.get(name))
        asked = {"annotations": {RESUME: str(self.clock())}}
        self.patch(name, {"spec": {custom_resources.SUSPEND: False}, "metadata": asked})

    def delete(self, name: str, *, force: bool = False) -> None:
        """Remove a job with all of its pods (see `Jobs.delete`)."""
        run = self.get(name)
        if not run.phase.is_final and not force:
            raise Conflict(f"{name} is {run.phase}", f"paceline stop {name}, or delete it with --force")
        self._do(self.cluster.delete(kinds.TRAINING_JOBS, name, self.namespace))

    def cluster_state(self) -> cluster_states.ClusterState:
        """Return what the cluster has and what is taken of it."""
        return self._do(admissions.look(self.cluster, self.namespace))

    def nodes(self) -> Sequence[Node]:
        """Return the nodes of the cluster."""
        return self.cluster_state().nodes

    def fit(self, spec: JobSpec) -> Fit:
        """Return whether all of a job fits on the cluster now, within the quotas of the namespace."""
        state = self.cluster_state()
        return fits.fit(spec, state.nodes, state.quotas)

    def situation(self, name: str) -> Situation:
        """Return all that is known of a job (see `cluster_situations`)."""
        resource = self.resource(name)
        try:
            replicas = self._replicas(resource)
        except (InvalidInput, UnreadableStatus):  # The situation says what is wrong.
            replicas = []
        unknown: list[str] = []
        happened: list[JobEvent] = []
        with cluster_situations.allowed(unknown, "what was told of it"):
            happened = [event for _, event in self._told(name)]
        known = cluster_situations.Known(resource, replicas, happened, unknown)
        return self._do(cluster_situations.look(self.cluster, known, self.clock()))

    def replicas(self, name: str) -> list[ReplicaRow]:
        """Return the replicas of a run."""
        resource = self._found(name)
        if resource is None:
            found = self.measurements.kept(self.scope(), name, None)
            return found.store.replicas(found.run.name)
        return self._replicas(resource)

    def _replicas(self, resource: Object) -> list[ReplicaRow]:
        name, spec = resource["metadata"]["name"], custom_resources.job_spec(resource)
        record = records.read(resource.get("status") or {}, spec)
        return [] if record is None else cluster_resources.replicas(name, record, self._pods(name))

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return what happened to a run, numbered: as the operator's store has it, or as the cluster does.

        The cluster forgets it after an hour or so.
        """
        if self.measurements.has_store:
            with contextlib.suppress(NotFound):  # The operator has not seen it yet, or keeps it elsewhere.
                found = self.measurements.kept(self.scope(), name, self._found(name))
                return found.store.events(found.run.name, since_id=since_id)
        return [(number, event) for number, event in self._told(name) if number > since_id]

    def note(self, name: str, event: JobEvent) -> None:
        """Tell the cluster what has happened to a run; an operator with a store keeps it."""
        resource = self.resource(name)
        told = announcements.Announcement(event.kind, event.message)
        self._do(
            self.cluster.create(kinds.EVENTS, announcements.event(resource, told, now=event.at, number=0))
        )

    def _told(self, name: str) -> list[tuple[int, JobEvent]]:
        """Return what the cluster has been told of a job."""
        uid = self.resource(name)["metadata"]["uid"]
        selector = f"{labels.JOB}={name}"
        found = self._do(self.cluster.list(kinds.EVENTS, namespace=self.namespace, selector=selector)).objects
        own = [each for each in found if each["involvedObject"].get("uid") == uid]
        ordered = sorted(own, key=lambda each: each["metadata"]["name"])
        return list(enumerate(map(cluster_resources.event, ordered), start=1))

    def log_reader(self, run: Run, wanted: Wanted) -> PodReader:
        """Return what reads the output of a run's replicas; of pods that are gone as far as an operator on
        this machine has kept it.
        """
        folder = self.measurements.folder(self.scope(), run.name, self._found(run.name))
        return PodReader(
            lambda: [(attempt, pod["metadata"]["name"]) for attempt, pod in self.attempts(run.name)],
            self._lines,
            folder,
            wanted,
            self.clock,
        )

    def gone(self, name: str) -> list[tuple[ReplicaId, int]]:
        """Return the attempts of a run whose pods are gone, and whose output was not kept."""
        folder = self.measurements.folder(self.scope(), name, self._found(name))
        present = {each for each, _ in self.attempts(name)}
        begun = [(row.replica, number) for row in self.replicas(name) for number in range(1, row.attempt + 1)]
        return [each for each in begun if each not in present and not folder.log(*each).exists()]

    def snapshot(self, name: str) -> Snapshot:
        """Return how a run does now, or did over its whole life: as the operator's store has it, or by asking
        its agents.
        """
        found = self._measured(name, whole=False)
        snapshot = snapshots.read(found.store, found.run, now=self.clock(), delay_seconds=self.DELAY_SECONDS)
        return dataclasses.replace(snapshot, run=found.named(name))

    def recording(self, name: str, *, since: float | None = None, thinned: bool = False) -> Recording:
        """Return what was measured of a run (see `snapshot`); of agents that are asked themselves it is the
        last minute at least where a moment is given.
        """
        found = self._measured(name, whole=since is None)
        facts = (("image", found.run.spec.image or ""),)
        recording = recordings.read(
            found.store, found.run, at=self.clock(), facts=facts, since=since, thinned=thinned
        )
        if found.is_scratch:
            recording = dataclasses.replace(recording, events=[*recording.events, *self._floods(name)])
        return dataclasses.replace(recording, run=found.named(name))

    def _floods(self, name: str) -> list[JobEvent]:
        """Return which replicas flood their output: agents cannot see it, but operators tell the cluster."""
        try:
            return [event for _, event in self._told(name) if event.kind == commands.OUTPUT]
        except ClusterError:  # It may not be looked at; then nothing is known of it.
            return []

    def _measured(self, name: str, *, whole: bool) -> Found:
        resource, scope = self._found(name), self.scope()
        if resource is None or self.measurements.has_store:
            try:
                return self.measurements.kept(scope, name, resource)
            except NotFound:
                if resource is None:
                    raise
                # The operator has not seen it yet, or keeps it elsewhere: agents know what there is.
        pods_of = self._pods(name)
        return self._do(self.measurements.read(resource, pods_of, scope=scope, whole=whole, now=self.clock()))

    def stored(self, name: str) -> Stored:
        """Return where what was measured of a run lies (see `snapshot`)."""
        found = self._measured(name, whole=True)
        return Stored(found.store, found.run.name)

    def trace_site(self, run: Run) -> PodSite:
        """Return where traces of a run are asked for and found: in its pods."""
        addresses = [
            agents.address(self.namespace, pod["metadata"]["name"])
            for (replica, _), pod in self.attempts(run.name)
            if replica.role is not Role.EVALUATOR and (pod.get("status") or {}).get("phase") == "Running"
        ]
        folder = self.measurements.folder(self.scope(), run.name, self._found(run.name))
        return PodSite(
            self.cluster, self.runner, addresses, folder.path, namespace=self.namespace, job=run.name
        )

    def _lines(self, pod: str, tail: int | None, since_seconds: int | None) -> list[Line]:
        try:
            return self._do(
                self.cluster.logs(
                    pod,
                    self.namespace,
                    pods.TRAINING,
                    tail=tail,
                    since_seconds=since_seconds,
                    last_bytes=log_files.MAX_BYTES,
                )
            )
        except ClusterError as error:
            if error.code in (400, 404):  # its container has not begun, or it is gone
                return []
            raise

    def _resources(self, namespace: str | None) -> list[Object]:
        try:
            return self._do(self.cluster.list(kinds.TRAINING_JOBS, namespace=namespace)).objects
        except ClusterError as error:
            if error.is_missing:
                raise NotFound(error.message, _NO_OPERATOR) from error
            raise

    def _found(self, name: str) -> Object | None:
        """Return a job's resource; None when it is gone, but a store was named that may know it."""
        try:
            return self.resource(name)
        except NotFound:
            if not self.measurements.has_store:
                raise
            return None

    def resource(self, name: str) -> Object:
        """Return a job's resource.

        Raises:
            NotFound: there is none.
            ClusterError: the cluster does not answer.
        """
        try:
            if not _NAME.fullmatch(name):
                # In a path of the API server it would be something else, such as all jobs.
                raise ClusterError(f"{name!r} is no name", code=HTTPStatus.NOT_FOUND)
            return self._do(self.cluster.get(kinds.TRAINING_JOBS, name, self.namespace))
        except ClusterError as error:
            if not error.is_missing:
                raise
            known = [each["metadata"]["name"] for each in self._resources(self.namespace)]
            close = problems.did_you_mean(name, known)
            raise NotFound(
                f"there is no job {name!r} in {self.namespace}{close}", "paceline list shows what there is"
            ) from error

    def _pods(self, name: str) -> list[Object]:
        selector = f"{labels.JOB}={name}"
        return self._do(self.cluster.list(kinds.PODS, namespace=self.namespace, selector=selector)).objects

    def attempts(self, name: str) -> list[tuple[tuple[ReplicaId, int], Object]]:
        """Return the pods of a job that are attempts, in order."""
        found = ((sights.attempt_of(pod), pod) for pod in self._pods(name))
        known = [(attempt, pod) for attempt, pod in found if attempt is not None]
        return sorted(known, key=lambda each: each[0])

    def patch(self, name: str, changes: Object) -> None:
        """Merge changes into a job's resource.

        Raises:
            ClusterError: the cluster refuses them.
        """
        self._do(self.cluster.patch(kinds.TRAINING_JOBS, name, self.namespace, changes))

    def _do(self, wanted: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(wanted)
