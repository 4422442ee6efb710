"""The life cycle of jobs on a Kubernetes cluster, as `jobs.Jobs` is for this machine.

A job is a custom resource: this module writes what a user wants into its spec, and reads the job's state from
its status. The operator does the rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar

from paceline.control.resizings import Resize
from paceline.diagnosing.progress import commands
from paceline.diagnosing.situations import Situation
from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object, OutputLine
from paceline.engines.kubernetes.loops import Loop
from paceline.errors import Conflict, EngineError, InvalidInput, NotFound
from paceline.model.jobs import run_queries
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Node
from paceline.model.jobs.run_queries import RunPage, RunQuery
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run, RunSummary, Submit
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.probes import Probe
from paceline.model.measures.recordings import Recording
from paceline.model.measures.snapshots import Snapshot
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import pods
from paceline.scheduling import fits
from paceline.scheduling.fits import Fit
from paceline.scheduling.node_groups import NodeGroups
from paceline.services import log_files
from paceline.services.cluster import (
    announcements,
    job_objects,
    job_states,
    node_labels,
    records,
    resizes,
    resources,
    spec_changes,
    submits,
)
from paceline.services.cluster import runs as cluster_runs
from paceline.services.cluster.annotations import RESUME
from paceline.services.cluster.job_objects import JobObjects
from paceline.services.cluster.logs import PodReader
from paceline.services.cluster.measurements import ClusterMeasurements, Found
from paceline.services.cluster.records import UnreadableStatus
from paceline.services.cluster.submits import Made
from paceline.services.cluster.trace_sites import PodTraceSite
from paceline.services.life_cycles import CLUSTER_DELAY_SECONDS, Stored, StoredLifeCycle
from paceline.services.logs import LogSelection
from paceline.services.observing import recordings, site_thresholds, snapshots
from paceline.sources import agents
from paceline.specs.job_file import custom_resources


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterJobs(StoredLifeCycle):
    """The jobs of a namespace.

    Attributes:
        cluster: the cluster.
        namespace: the namespace.
        runner: the event loop of the cluster's client.
        measurements: finds what was measured of the jobs.
        packs: whether folders of code on this machine may be sent with jobs; not on a server, whose users are
            elsewhere.
        listed: returns `summaries` of a moment ago, for many callers; None: they are read for every call.
    """

    POLL_SECONDS: ClassVar[float] = job_objects.POLL_SECONDS
    DELAY_SECONDS: ClassVar[float] = CLUSTER_DELAY_SECONDS
    IS_MEASURED_AT_HAND: ClassVar[bool] = False
    PROGRESS_VERB: ClassVar[str] = "get"
    cluster: Cluster
    namespace: str
    runner: Loop
    measurements: ClusterMeasurements
    clock: Callable[[], float] = time.time
    packs: bool = True
    listed: Callable[[], Sequence[RunSummary]] | None = None

    @property
    def objects(self) -> JobObjects:
        """The objects of these jobs on the cluster."""
        return JobObjects(self.cluster, self.namespace, self.runner, self.measurements, self.clock)

    def scope(self) -> str:
        """Return the prefix of the names of the namespace's runs in the store (see `JobObjects.scope`)."""
        return self.objects.scope()

    @property
    def keeps(self) -> bool:
        """Whether the operator's store is configured: what only agents know is lost when their pods end."""
        return self.measurements.has_store

    def submit(
        self, spec: JobSpec, *, source: str, base: Path, name: str | None = None, submit: Submit | None = None
    ) -> Run:
        """Create the resource of a job and return at once (see `Jobs.submit`).

        Raises:
            Conflict: something else was submitted with the same key.
            InvalidInput: the job lacks what Kubernetes needs, or its folder of code cannot be carried.
            ClusterError: the cluster refuses it.
        """
        while True:
            # One listing serves both: a job that `known` does not see has taken no name for `_made`.
            present = self.objects.resources(self.namespace)
            known = submits.known(present, submit)
            if known is not None:
                return resources.run(known)
            made = self._made(spec, base, name, present, submit)
            try:
                return resources.run(self.objects.do(submits.create(self.cluster, made)))
            except ClusterError as error:
                # Another request was quicker: the same submit, or another job of the same name.
                if submit is None or error.code != HTTPStatus.CONFLICT:
                    raise

    def rehearse(self, spec: JobSpec, *, base: Path, name: str | None = None) -> Run:
        """Return the run that a submit would create, from a dry run of the API server, and create nothing.

        Raises:
            InvalidInput: as in `submit`.
            ClusterError: as in `submit`.
        """
        made = self._made(spec, base, name, self.objects.resources(self.namespace), None)
        creation = self.cluster.create(kinds.TRAINING_JOBS, made.resource, dry_run=True)
        return resources.run(self.objects.do(creation))

    def _made(
        self, spec: JobSpec, base: Path, name: str | None, present: Sequence[Object], submit: Submit | None
    ) -> Made:
        if not self.packs and spec.code is not None and spec.code.folder is not None:
            raise InvalidInput(
                "a folder of code is on the user's machine, not on the server's",
                "paceline submit FILE --engine kubernetes, or code from git or an archive",
            )
        return submits.made(
            spec, base, name=name or spec.name, namespace=self.namespace, present=present, submit=submit
        )

    @contextlib.contextmanager
    def housed(self, spec: JobSpec, study: str) -> Iterator[JobSpec]:
        """Confine the job of a study to as many nodes as the job names hosts, by a label (see `node_labels`).

        Raises:
            EngineError: there are not enough nodes, or they may not be labelled.
        """
        if not spec.hosts:
            yield spec
            return
        held_by = node_labels.holder(self.namespace, study)
        try:
            yield self.objects.do(node_labels.lend(self.cluster, self.namespace, spec, held_by))
        finally:
            self.objects.do(node_labels.give_back(self.cluster, held_by))

    def runs(self, *, phases: Sequence[JobPhase] | None = None, everywhere: bool = False) -> list[RunSummary]:
        """Return the runs of the namespace, or with ``everywhere`` of all namespaces, newest first."""
        found = map(resources.summary, self.objects.resources(None if everywhere else self.namespace))
        wanted = (run for run in found if phases is None or run.phase in phases)
        return sorted(wanted, key=lambda run: (run.submitted_at, run.name), reverse=True)

    def page(self, query: RunQuery) -> RunPage:
        """Return a page of the runs of the namespace, with their summaries."""
        return run_queries.page((self.listed or self.summaries)(), query)

    def summaries(self) -> list[RunSummary]:
        """Return all runs of the namespace, with their summaries if a store is configured."""
        scope = self.scope()
        known = self.measurements.store.diagnoses(scope) if self.measurements.has_store else {}
        return [
            dataclasses.replace(
                resources.summary(each), diagnosis=known.get(cluster_runs.run_name(each, scope))
            )
            for each in self.objects.resources(self.namespace)
        ]

    def get(self, name: str) -> Run:
        """Return one run; if its resource is gone, from the operator's store.

        Raises:
            NotFound: there is no run of this name.
        """
        resource = self.objects.resource_if_there(name)
        if resource is None:
            return self.measurements.kept(self.scope(), name, None).named(name)
        return resources.run(resource)

    def _summary(self, name: str) -> Run | RunSummary:
        """Return where a run stands, also if its spec was edited to a wrong one (see `get`)."""
        resource = self.objects.resource_if_there(name)
        return self.get(name) if resource is None else resources.summary(resource)

    def is_lost(self, run: Run | RunSummary) -> bool:
        """Return False: a run on a cluster is never lost, since the cluster keeps its operator alive."""
        return False

    def supervisor_pids(self, run: Run) -> tuple[int, ...]:
        """Return the supervisor processes of the run on this machine: none."""
        return ()

    def stop(self, name: str) -> None:
        """Suspend a job.

        Raises:
            Conflict: the job has ended already.
        """
        run = self._summary(name)
        if run.phase.is_final:
            raise Conflict(f"{name} has ended already ({run.phase})")
        self.objects.patch(name, {"spec": {custom_resources.SUSPEND: True}})

    def scale(self, name: str, workers: int) -> None:
        """Ask for another number of workers in a running job (see `Jobs.scale`).

        Additional workers begin when there is room; `get` says what they wait for.

        Raises:
            Conflict: the job has ended, or cannot have this number of workers.
        """
        resource = self.objects.resource(name)
        run = resources.run(resource)
        record = records.read(resource.get("status") or {}, run.spec)
        self.check_scalable(dataclasses.replace(run, spec=record.state.spec) if record else run, workers)
        self.objects.patch(name, {"spec": {"roles": {str(Role.WORKER): {"replicas": workers}}}})

    def resize(self, name: str, resize: Resize, *, seconds: float | None = None) -> None:
        """Change the cores or memory of replicas of a running job (see `LifeCycle.resize`).

        The operator resizes the pods when it sees the change; a kubelet takes some seconds more.

        Raises:
            Conflict: the job does not run, its replicas cannot have this size, or it is being changed.
            EngineError: the cluster does not resize pods, or does not have enough room.
            WaitTimeout: the operator or a kubelet does not answer.
            ClusterError: the cluster refuses the change.
        """
        resource = self.objects.resource(name)
        run = resources.run(resource)
        record = records.read(resource.get("status") or {}, run.spec)
        spec = record.state.spec if record else run.spec
        self.check_resizable(dataclasses.replace(run, spec=spec), resize)
        hosts = {each.replica: each.host for each in self._replicas(resource) if each.host is not None}
        resizes.check(self.objects, spec, hosts, resize)
        with self.changing(name, "resized"):
            if seconds is None:
                resizes.resize(self.objects, name, spec, resize)
            else:
                resizes.resize_for(self.objects, name, spec, resize, seconds=seconds)

    def probe(
        self,
        name: str,
        *,
        seconds: float,
        most_share: float,
        tell: Callable[[Probe, str], None] = lambda _, __: None,
    ) -> Probe:
        """Find what limits a running job (see `LifeCycle.probe`)."""
        from paceline.services.studying import probes

        return probes.Prober.of(self, seconds=seconds, most_share=most_share, tell=tell).probe(name)

    def knobs(self, run: Run) -> frozenset[Knob]:
        """Return what of a run can be adjusted (see `LifeCycle.knobs`)."""
        try:
            resizes.check_version(self.objects)
        except EngineError:
            return frozenset()
        return frozenset({Knob.CPU, Knob.MEMORY})

    def check_returns(self, run: Run) -> None:
        """Check that what is cut from a run for a time can be given back (see `LifeCycle.check_returns`)."""
        resizes.check_returns(self.objects)

    def adjust(self, name: str, wanted: Sequence[Adjustment]) -> float:
        """Adjust something of a running job for a limited time (see `LifeCycle.adjust`)."""
        return resizes.adjust(self.objects, name, wanted)

    def changing(self, name: str, doing: str) -> contextlib.AbstractContextManager[None]:
        """Keep others from changing a job (see `LifeCycle.changing`)."""
        return resizes.changing(self.objects, name, doing)

    def change(self, name: str, source: str) -> None:
        """Continue a job with another job file, from its last checkpoint (`spec_changes`)."""
        run = self.get(name)
        if run.phase.is_final:
            self.check_resumable(run)
        spec_changes.change(self.objects, run, source)

    def resume(self, name: str) -> None:
        """Resume a stopped or failed job from its last checkpoint.

        Raises:
            Conflict: the job has succeeded, or it runs.
        """
        self.check_resumable(self.get(name))
        asked = {"annotations": {RESUME: str(self.clock())}}
        self.objects.patch(name, {"spec": {custom_resources.SUSPEND: False}, "metadata": asked})

    def delete(self, name: str, *, force: bool = False) -> None:
        """Remove a job with all of its pods (see `Jobs.delete`)."""
        run = self._summary(name)
        if not force:
            self.check_deletable(run)
        self.objects.do(self.cluster.delete(kinds.TRAINING_JOBS, name, self.namespace))

    def nodes(self) -> Sequence[Node]:
        """Return the nodes of the cluster."""
        return self.objects.cluster_state().nodes

    def fit(self, spec: JobSpec) -> Fit:
        """Return whether the whole job fits on the cluster now, within the quotas of the namespace."""
        state = self.objects.cluster_state()
        return fits.fit(spec, NodeGroups(state.nodes), state.quotas)

    def situation(self, name: str) -> Situation:
        """Return all that is known of a job (see `job_states`)."""
        resource = self.objects.resource(name)
        try:
            replicas = self._replicas(resource)
        except (InvalidInput, UnreadableStatus):  # The situation says what is wrong.
            replicas = []
        unknown: list[str] = []
        happened: list[JobEvent] = []
        with job_states.allowed(unknown, "what was told of it"):
            happened = [event for _, event in self.objects.cluster_events(name)]
        known = job_states.KnownJob(resource, replicas, happened, unknown)
        return self.objects.do(job_states.look(self.cluster, known, self.clock()))

    def replicas(self, name: str) -> list[ReplicaRow]:
        """Return the replicas of a run."""
        resource = self.objects.resource_if_there(name)
        if resource is None:
            found = self.measurements.kept(self.scope(), name, None)
            return found.store.replicas(found.run.name)
        return self._replicas(resource)

    def _replicas(self, resource: Object) -> list[ReplicaRow]:
        name, spec = resource["metadata"]["name"], custom_resources.job_spec(resource)
        record = records.read(resource.get("status") or {}, spec)
        return [] if record is None else resources.replicas(name, record, self.objects.pods(name))

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return what happened to a run, numbered (see `JobObjects.events`)."""
        return self.objects.events(name, since_id=since_id)

    def note(self, name: str, event: JobEvent) -> None:
        """Create a Kubernetes event for what has happened to a run; an operator with a store keeps it."""
        resource = self.objects.resource(name)
        told = announcements.Announcement(event.kind, event.message)
        self.objects.do(
            self.cluster.create(kinds.EVENTS, announcements.event(resource, told, now=event.at, number=0))
        )

    def log_reader(self, run: Run, wanted: LogSelection) -> PodReader:
        """Return a reader of the output of a run's replicas.

        The output of pods that are gone is there if an operator on this machine has kept it.
        """
        folder = self.measurements.folder(self.scope(), run.name, self.objects.resource_if_there(run.name))
        return PodReader(
            lambda: [(attempt, pod["metadata"]["name"]) for attempt, pod in self.objects.attempts(run.name)],
            self._lines,
            folder,
            wanted,
            self.clock,
        )

    def gone(self, name: str) -> list[tuple[ReplicaId, int]]:
        """Return the attempts of a run whose pods are gone and whose output was not kept."""
        folder = self.measurements.folder(self.scope(), name, self.objects.resource_if_there(name))
        present = {each for each, _ in self.objects.attempts(name)}
        begun = [(row.replica, number) for row in self.replicas(name) for number in range(1, row.attempt + 1)]
        return [each for each in begun if each not in present and not folder.log(*each).exists()]

    def snapshot(self, name: str) -> Snapshot:
        """Return how a run does now, or did over its whole life, from the operator's store or its agents."""
        found = self._measured(name, whole=False)
        snapshot = snapshots.read(found.store, found.run, now=self.clock(), delay_seconds=self.DELAY_SECONDS)
        return dataclasses.replace(snapshot, run=found.named(name))

    def recording(self, name: str, *, since: float | None = None, thinned: bool = False) -> Recording:
        """Return what was measured of a run (see `snapshot`).

        If it comes from the agents themselves and ``since`` is given, it covers at least the last minute.
        """
        measured = self._measured(name, whole=since is None)
        facts = (("image", measured.run.spec.image or ""),)
        recording = recordings.read(
            measured.store,
            measured.run,
            at=self.clock(),
            facts=facts,
            since=since,
            thinned=thinned,
            thresholds=self.thresholds(),
        )
        if measured.is_scratch:
            recording = dataclasses.replace(recording, events=[*recording.events, *self._floods(name)])
        return dataclasses.replace(recording, run=measured.named(name))

    def thresholds(self) -> Mapping[str, float]:
        """Return the thresholds that the file in the home of this process sets."""
        return site_thresholds.load_thresholds(self.measurements.home)

    def _floods(self, name: str) -> list[JobEvent]:
        """Return the events of replicas that flood their output, which operators report but agents do not."""
        try:
            return [event for _, event in self.objects.cluster_events(name) if event.kind == commands.OUTPUT]
        except ClusterError:  # The events may not be read, so no flood is known.
            return []

    def _measured(self, name: str, *, whole: bool) -> Found:
        resource, scope = self.objects.resource_if_there(name), self.scope()
        if resource is None or self.measurements.has_store:
            try:
                return self.measurements.kept(scope, name, resource)
            except NotFound:
                if resource is None:
                    raise
                # The operator has not seen the job yet, or uses another store: ask the agents.
        pods_of = self.objects.pods(name)
        return self.objects.do(
            self.measurements.read(resource, pods_of, scope=scope, whole=whole, now=self.clock())
        )

    def stored(self, name: str) -> Stored:
        """Return the store with what was measured of a run (see `snapshot`)."""
        found = self._measured(name, whole=True)
        return Stored(found.store, found.run.name)

    def trace_site(self, run: Run) -> PodTraceSite:
        """Return where traces of a run are requested and found: in its pods."""
        addresses = [
            agents.address(self.namespace, pod["metadata"]["name"])
            for (replica, _), pod in self.objects.attempts(run.name)
            if replica.role is not Role.EVALUATOR and (pod.get("status") or {}).get("phase") == "Running"
        ]
        folder = self.measurements.folder(self.scope(), run.name, self.objects.resource_if_there(run.name))
        return PodTraceSite(
            self.cluster, self.runner, addresses, folder.path, namespace=self.namespace, job=run.name
        )

    def _lines(self, pod: str, tail: int | None, since_seconds: int | None) -> list[OutputLine]:
        try:
            return self.objects.do(
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
            if error.code in (400, 404):  # The container has not begun, or the pod is gone.
                return []
            raise
