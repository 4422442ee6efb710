"""Brings a job on a cluster to its desired state: look, decide, save, act, until nothing is left.

The operator may be killed between any two of these steps. The next look does what was saved but not done
(`control.reconciliations`). Every action may be done twice: a pod's name contains its replica and attempt, so
the API refuses the second creation.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from paceline.control import events, reconciliations, resizings, scalings, states
from paceline.control.reconciliations import PodState, ReconcileProgress
from paceline.diagnosing.failures import known, last_words
from paceline.engines.kubernetes import kinds, obstacles, pod_states, times
from paceline.engines.kubernetes.clusters import WORDS_BYTES, Cluster, ClusterError, Object
from paceline.engines.kubernetes.mirrors import key_of
from paceline.errors import InvalidInput, first_line
from paceline.model.jobs import adjustments
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import NOT_RESIZED
from paceline.model.jobs.statuses import ExitKind, JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import labels, manifests, pods
from paceline.rendering.surroundings import AgentSetup
from paceline.services.cluster import announcements, records
from paceline.services.cluster.annotations import CHANGE, RESUME, adjustments_of
from paceline.services.cluster.records import JobRecord, UnreadableStatus
from paceline.services.operators import kueue_groups
from paceline.services.operators.executions import SNAPSHOT, Executor, is_owned
from paceline.specs import parse_job
from paceline.specs.job_file import custom_resources

#: How often to look at a job without news: containers may be stuck, and nodes silent.
LOOK_SECONDS = 15.0
_NOT_YET = (JobPhase.PENDING, JobPhase.STARTING, JobPhase.RESTARTING)

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """What the cluster holds of a job, and the decisions of admission about it.

    Attributes:
        resource: the job's resource.
        pods: the pods that it owns.
        gone_pods: the pods that were deleted since the last look, as they were last.
        silent: by node, since when the node has not answered.
        room: the nodes for its replicas, or for the workers that it is to get; None: there is no room yet;
            empty: the scheduler chooses.
        applied_for: the job for which room to begin was requested; None: it does not wait for room.
        refused: why it may never begin.
        note: what keeps it from running, for people.
    """

    resource: Object
    pods: Sequence[Object]
    gone_pods: Sequence[Object] = ()
    silent: Mapping[str, float] = dataclasses.field(default_factory=dict)
    room: Mapping[ReplicaId, str] | None = None
    applied_for: JobSpec | None = None
    refused: str = ""
    note: str = ""


class Reconciler:
    """Looks after jobs, with one look at a time for each job.

    Args:
        cluster: where the jobs are.
        agent: how agents come into pods, and who may ask them.
        clock: Unix seconds.
        read: returns the job that a resource asks for, or what is wrong with it (`wanted`).
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        agent: AgentSetup,
        clock: Callable[[], float],
        read: Callable[[Object], JobSpec | str],
    ) -> None:
        self._read = read
        self._cluster = cluster
        self._executor = Executor(cluster, agent)
        self._clock = clock
        self._records: dict[str, JobRecord] = {}
        self._specs: dict[str, tuple[int, JobSpec | str]] = {}
        self._written: dict[str, tuple[str, Object]] = {}
        self._unreadable: dict[str, str] = {}
        self._refused: dict[str, Mapping[str, str]] = {}

    def record(self, uid: str) -> JobRecord | None:
        """Return the record of a job; None if it has none."""
        return self._records.get(uid)

    @property
    def unreadable(self) -> int:
        """The number of jobs left alone because their status cannot be read."""
        return len(self._unreadable)

    def forget(self, uid: str) -> None:
        """Forget a job that is gone, or whose status another client has changed."""
        for kept in (self._records, self._specs, self._written, self._unreadable, self._refused):
            kept.pop(uid, None)
        self._executor.forget(uid)

    def keep_only(self, uids: Iterable[str]) -> None:
        """Forget all other jobs."""
        for uid in self._specs.keys() - set(uids):
            self.forget(uid)

    async def reconcile(self, view: JobView) -> float | None:
        """Look, decide, save and act; return in how many seconds to look again if nothing happens.

        Raises:
            ClusterError: the API refused something that may succeed later.
        """
        resource = view.resource
        uid, now = resource["metadata"]["uid"], self._clock()
        spec_or_fault = await self._wanted(resource)
        try:
            record = await self._known(resource, spec_or_fault)
        except UnreadableStatus as error:
            await self._leave_alone(resource, error, now)
            return LOOK_SECONDS
        self._unreadable.pop(uid, None)
        if record is not None and isinstance(spec_or_fault, str) and _is_untouched(record):
            self._records.pop(uid)  # As if it had been wrong from the beginning: it begins when it is mended.
            record = None
        if record is None:
            generation = resource["metadata"]["generation"]
            refusal = records.refused(
                self._written[uid][1], generation=generation, message=str(spec_or_fault)
            )
            await self._write(resource, refusal)
            return None
        seen = pod_states.of(view.pods, gone=view.gone_pods, silent=view.silent, now=now)
        seen = await self._judged(record, seen, resource)
        record, requests = _requested(record, spec_or_fault, view, seen)
        requests += _adjusted(record, spec_or_fault, resource, now)
        numbers = itertools.count()
        while True:
            before = record.state
            progress, actions = reconciliations.reconcile(record.progress, seen, now, requests)
            record = dataclasses.replace(record, progress=progress)
            self._records[uid] = record
            await self._save(view, record, now)
            for announcement in announcements.announcements(before, record.state, now):
                await announcements.publish(
                    self._cluster, resource, announcement, now=now, number=next(numbers)
                )
            requests = await self._executor.act(resource, record, actions)
            if not requests:
                break
        await self._executor.clean_up(resource, record, seen)
        if record.state.phase.is_final:
            await kueue_groups.end(self._cluster, view.pods)
        if _is_active(record.state.phase):
            refused = await self._executor.resize(resource, record, view.pods)
            await self._tell_refused(resource, refused, now)
        return await self._next_look(resource, record, now)

    async def _tell_refused(self, resource: Object, refused: Mapping[str, str], now: float) -> None:
        """Announce each resize that the cluster refuses, once."""
        uid = resource["metadata"]["uid"]
        new = {name: why for name, why in refused.items() if self._refused.get(uid, {}).get(name) != why}
        self._refused[uid] = refused
        for number, (name, why) in enumerate(new.items()):
            message = f"{name} keeps what it has: {why}"
            log.warning("%s/%s: %s", *key_of(resource), message)
            told = announcements.Announcement(NOT_RESIZED, message, is_warning=True)
            await announcements.publish(self._cluster, resource, told, now=now, number=100 + number)

    async def _judged(self, record: JobRecord, seen: list[PodState], resource: Object) -> list[PodState]:
        """Mark recent failures of commands as lasting if the commands would fail again.

        A job may have thousands of replicas and is looked at often, but few replicas have just failed.
        """
        live = {
            (replica.replica, replica.attempt) for replica in record.state.replicas if replica.phase.is_live
        }
        failed = {
            number: pod_state
            for number, pod_state in enumerate(seen)
            if pod_state.reason is not None
            and pod_state.reason.kind is ExitKind.ERROR
            and (pod_state.replica, pod_state.attempt) in live
        }
        if not failed:
            return seen
        judged = await asyncio.gather(*(self._lasting(pod_state, resource) for pod_state in failed.values()))
        judged_by_number = dict(zip(failed, judged, strict=True))
        return [judged_by_number.get(number, pod_state) for number, pod_state in enumerate(seen)]

    async def _lasting(self, seen: PodState, resource: Object) -> PodState:
        """Mark a command's failure as lasting if its last output shows that it would fail again."""
        namespace, job = key_of(resource)
        pod = labels.pod_name(job, seen.replica, seen.attempt)
        try:
            lines = await self._cluster.logs(
                pod, namespace, pods.TRAINING, tail=last_words.LINES, last_bytes=WORDS_BYTES
            )
        except ClusterError:
            return seen
        return dataclasses.replace(
            seen, is_lasting=known.is_lasting([text for line in lines for text in line.texts])
        )

    async def _wanted(self, resource: Object) -> JobSpec | str:
        """Return the job that a resource asks for, or what is wrong with it.

        Reading a large job takes a second, so a thread does it: the lease has to be renewed meanwhile.
        """
        uid, generation = resource["metadata"]["uid"], resource["metadata"]["generation"]
        known = self._specs.get(uid)
        if known is None or known[0] != generation:
            known = generation, await asyncio.to_thread(self._read, resource)
            self._specs[uid] = known
        return known[1]

    def last_wanted(self, resource: Object) -> JobSpec | str | None:
        """Return what the job asked for, or what was wrong, at the last look; None before the first look."""
        known = self._specs.get(resource["metadata"]["uid"])
        return None if known is None else known[1]

    async def _known(self, resource: Object, wanted: JobSpec | str) -> JobRecord | None:
        """Return the record of a job; None if it has none and its spec is invalid.

        Raises:
            UnreadableStatus: the job has begun, and its status cannot be read.
        """
        uid = resource["metadata"]["uid"]
        if uid not in self._records:
            if resource.get("status"):
                # The mirrored copy may be older than the last action, so it is no starting point.
                resource = await self._fresh(resource)
            status = resource.get("status") or {}
            self._written[uid] = resource["metadata"]["resourceVersion"], status
            spec = await self._snapshot(resource) if "replicas" in status else None
            spec = spec or (wanted if isinstance(wanted, JobSpec) else None)
            if spec is None:
                if "replicas" in status:
                    raise UnreadableStatus(key_of(resource)[1], f"its spec is lost, and {wanted}")
                return None
            self._records[uid] = records.read(status, spec) or records.new(spec)
        return self._records[uid]

    async def _leave_alone(self, resource: Object, error: UnreadableStatus, now: float) -> None:
        """Report that the status of a job cannot be read; the job itself is not touched."""
        uid = resource["metadata"]["uid"]
        if self._unreadable.get(uid) != error.message:
            log.error("%s/%s: %s (%s)", *key_of(resource), error.message, error.hint)
        self._unreadable[uid] = error.message
        version, before = self._written[uid]
        changes = records.unreadable(before, error, now=now)
        if changes["conditions"] == before.get("conditions"):
            return
        await self._patch(resource, version, changes)
        announced = announcements.Announcement("status-unreadable", error.message, is_warning=True)
        await announcements.publish(self._cluster, resource, announced, now=now, number=0)

    async def _fresh(self, resource: Object) -> Object:
        """Return a job's resource as the API server has it now."""
        namespace, name = key_of(resource)
        return await self._cluster.get(kinds.TRAINING_JOBS, name, namespace)

    async def _snapshot(self, resource: Object) -> JobSpec | None:
        """Return the stored spec of a job that has begun; None if it has not begun or the spec is lost.

        Raises:
            UnreadableStatus: the stored spec cannot be read.
        """
        namespace, name = key_of(resource)
        try:
            found = await self._cluster.get(kinds.CONFIG_MAPS, name, namespace)
        except ClusterError as error:
            if error.is_missing:
                return None
            raise
        text = (found.get("data") or {}).get(SNAPSHOT)
        if not text or not is_owned(found, resource):
            return None
        try:
            return (await asyncio.to_thread(parse_job, text)).spec
        except InvalidInput as error:
            raise UnreadableStatus(name, f"its spec as it began: {first_line(error)}") from error

    async def _save(self, view: JobView, record: JobRecord, now: float) -> None:
        generation = view.resource["metadata"]["generation"]
        if record.state.phase in _NOT_YET:
            note = view.note or obstacles.without_node(view.pods, record.state.spec.scheduling.queue)
        else:
            note = self._unscaled(view, record)
        _, before = self._written[view.resource["metadata"]["uid"]]
        status = records.status(
            record,
            before,
            generation=generation,
            now=now,
            message=note,
            fault=self._fault(view.resource, record),
            notes=pod_states.notes(view.pods),
        )
        await self._write(view.resource, status)

    def _fault(self, resource: Object, record: JobRecord) -> str:
        """Return what is wrong with the present spec of a job that is still to follow it; empty: nothing."""
        wanted, phase = self.last_wanted(resource), record.state.phase
        is_over = phase.is_final and phase is not JobPhase.STOPPED and not _asks_to_resume(resource, record)
        return wanted if isinstance(wanted, str) and not is_over else ""

    def _unscaled(self, view: JobView, record: JobRecord) -> str:
        """Return why a running job does not have its resource's number of workers; empty if it does."""
        workers = _other_workers(record, self.last_wanted(view.resource))
        if workers is None:
            return ""
        conflict = scalings.conflict(record.state.spec, workers)
        return f"not scaled to {workers} workers: {conflict or view.note}"

    def more_workers(self, resource: Object) -> int | None:
        """Return how many workers a running job is to have, if that is more than it has and is possible."""
        record = self._records.get(resource["metadata"]["uid"])
        if record is None:
            return None
        workers, spec = _other_workers(record, self.last_wanted(resource)), record.state.spec
        if workers is None or workers < _workers(spec) or scalings.conflict(spec, workers) is not None:
            return None
        return workers

    async def _write(self, resource: Object, status: Object) -> None:
        """Write a status, unless it is unchanged.

        Raises:
            ClusterError: the status could not be written, or another client was quicker; in that case the job
                is read again.
        """
        uid = resource["metadata"]["uid"]
        version, before = self._written[uid]
        if labels.given(status) == labels.given(before):
            return
        try:
            await self._patch(resource, version, status)
        except ClusterError as error:
            if not error.is_conflict:
                raise
            fresh = await self._fresh(resource)
            if labels.given(fresh.get("status") or {}) != labels.given(before):
                self.forget(uid)
                raise
            # The user has changed the spec meanwhile; the status is as this operator left it.
            await self._patch(resource, fresh["metadata"]["resourceVersion"], status)

    async def _patch(self, resource: Object, version: str, status: Object) -> None:
        namespace, name = key_of(resource)
        changes = {"metadata": {"resourceVersion": version}, "status": status}
        patched = await self._cluster.patch(kinds.TRAINING_JOBS, name, namespace, changes, status=True)
        written = patched["metadata"]["resourceVersion"], patched.get("status") or {}
        self._written[resource["metadata"]["uid"]] = written

    async def _next_look(self, resource: Object, record: JobRecord, now: float) -> float | None:
        state = record.state
        if not state.phase.is_final:
            due = [record.progress.next_due, *(each.until for each in state.adjustments)]
            return max(0.0, min((LOOK_SECONDS, *(each - now for each in due if each is not None))))
        ttl = state.spec.ttl_after_finished_seconds
        if ttl is None or state.phase is JobPhase.STOPPED:  # A suspended job may be resumed.
            return None
        finished = times.seconds(self._written[resource["metadata"]["uid"]][1]["finishedAt"])
        if finished + ttl > now:
            return finished + ttl - now
        namespace, name = key_of(resource)
        await self._cluster.delete(kinds.TRAINING_JOBS, name, namespace)
        return None


def wanted(resource: Object) -> JobSpec | str:
    """Return the job that a resource asks for, or what is wrong with it."""
    try:
        spec = custom_resources.job_spec(resource)
        manifests.check(spec)
    except InvalidInput as error:
        return error.message
    return spec


def _requested(
    record: JobRecord, spec_or_fault: JobSpec | str, view: JobView, seen: Sequence[PodState]
) -> tuple[JobRecord, list[events.Event]]:
    """Return the record and the requests that follow from the resource and from the state of the cluster."""
    phase, resource = record.state.phase, view.resource
    suspended = bool((resource.get("spec") or {}).get(custom_resources.SUSPEND))
    annotations = resource["metadata"].get("annotations") or {}
    asked, change = str(annotations.get(RESUME, "")), str(annotations.get(CHANGE, ""))
    again = phase is JobPhase.STOPPED or (phase is JobPhase.FAILED and _asks_to_resume(resource, record))
    if isinstance(spec_or_fault, str) and (again or phase is JobPhase.PENDING) and not suspended:
        return record, []  # It begins when its spec is mended, and what was asked is not used up until then.
    record = dataclasses.replace(record, resumed=asked)
    if suspended:
        return record, [events.StopRequested(reason="suspended")]
    if change != record.changed and not (phase.is_final or phase is JobPhase.PENDING):
        return record, [events.StopRequested(reason="changed")]
    record = dataclasses.replace(record, changed=change)
    if not again and phase is not JobPhase.PENDING:
        return _scaled(record, spec_or_fault, view)
    assert isinstance(spec_or_fault, JobSpec), "a job with a wrong spec does not begin"
    record = _rebased(record, spec_or_fault, seen)
    if again:
        return dataclasses.replace(record, resumes=record.resumes + 1), [events.ResumeRequested()]
    if view.applied_for not in (None, spec_or_fault):  # The verdict is on the job as it was.
        return record, []
    if view.refused:
        return record, [events.EngineFailed(reason=view.refused)]
    if view.room is None:
        return record, []
    return dataclasses.replace(record, places=view.room), [events.Begin()]


def _asks_to_resume(resource: Object, record: JobRecord) -> bool:
    """Whether a user has asked since the last time that a job goes on."""
    return str((resource["metadata"].get("annotations") or {}).get(RESUME, "")) != record.resumed


def _is_untouched(record: JobRecord) -> bool:
    """Whether a job has never begun."""
    state = record.state
    return (
        state.phase is JobPhase.PENDING
        and not record.resumes
        and not any(each.attempt for each in state.replicas)
    )


def _adjusted(record: JobRecord, wanted: JobSpec | str, resource: Object, now: float) -> list[events.Event]:
    """Return the events that give the replicas of a running job the sizes and adjustments of its resource."""
    state = record.state
    if not _is_active(state.phase):
        return []
    found: list[events.Event] = []
    if isinstance(wanted, JobSpec) and resizings.taken_over(state.spec, wanted) != state.spec:
        found.append(events.ResizeRequested(spec=wanted))
    asked = adjustments_of(resource)
    if adjustments.merged(state.adjustments, asked) != state.adjustments:
        found.append(events.AdjustRequested(adjustments=asked))
    return [*found, events.TimePassed(now=now)]


def _is_active(phase: JobPhase) -> bool:
    return phase in (JobPhase.STARTING, JobPhase.RUNNING, JobPhase.RESTARTING)


def _workers(spec: JobSpec) -> int:
    role = spec.role(Role.WORKER)
    return role.replicas if role else 0


def _other_workers(record: JobRecord, wanted: JobSpec | str | None) -> int | None:
    """Return how many workers a running job is to have; None if it has this number."""
    if not isinstance(wanted, JobSpec) or not _is_active(record.state.phase):
        return None
    workers = _workers(wanted)
    return None if workers == _workers(record.state.spec) else workers


def _scaled(record: JobRecord, wanted: JobSpec | str, view: JobView) -> tuple[JobRecord, list[events.Event]]:
    """Return the record and the event that give a running job the workers that its resource asks for.

    Workers are removed at once, and added when there is room for them.
    """
    spec, workers = record.state.spec, _other_workers(record, wanted)
    if workers is None or scalings.conflict(spec, workers) is not None:
        return record, []
    new = [each for each in spec.with_workers(workers).replicas() if not spec.has(each)]
    if new and (view.room is None or (view.room and not set(new) <= view.room.keys())):
        return record, []
    places = {**record.places, **{each: view.room[each] for each in new if view.room}}
    return dataclasses.replace(record, places=places), [events.ScaleRequested(workers=workers)]


def _rebased(record: JobRecord, wanted: JobSpec, seen: Sequence[PodState]) -> JobRecord:
    """Return the record of a job that begins, or begins again, with the present spec of its resource.

    The numbers of attempts continue, so that a new attempt is not mistaken for an old one. Hence every
    replica that ever had an attempt stays in the record, even if its role no longer exists.
    """
    attempts = {replica.replica: replica.attempt for replica in record.state.replicas}
    for pod_state in seen:
        attempts[pod_state.replica] = max(pod_state.attempt, attempts.get(pod_state.replica, 0))
    fresh = [
        dataclasses.replace(replica, attempt=attempts.get(replica.replica, 0))
        for replica in states.initial(wanted).replicas
    ]
    former = [
        dataclasses.replace(replica, phase=ReplicaPhase.STOPPED, attempt=attempts[replica.replica])
        for replica in record.state.replicas
        if attempts[replica.replica] and not wanted.has(replica.replica)
    ]
    state = dataclasses.replace(record.state, spec=wanted, replicas=(*fresh, *former))
    return dataclasses.replace(record, progress=ReconcileProgress(state=state), places={})
