"""A job under diagnosis: its recording, and how the job performs in the time window that is judged."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import EvidenceSource
from paceline.model.jobs.job_specs import Host, JobSpec, RoleSpec
from paceline.model.jobs.runs import RESIZED
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures import snapshots
from paceline.model.measures.intervals import Interval, training_interval
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Measured, Sample, StepReport, by_replica
from paceline.model.measures.snapshots import ReplicaSnapshot, Snapshot
from paceline.model.roles import ReplicaId, Role
from paceline.model.traces import trace_summaries
from paceline.model.variables import variable_devices
from paceline.model.variables.variable_plans import Plan

T = TypeVar("T")
WINDOW_SECONDS = Threshold(
    "cases.window-seconds", 30.0, Unit.SECONDS,
    means="A running job is judged by its last seconds: long enough for steady means, short enough to notice "
    "a change.",
)  # fmt: skip
LEAST_SECONDS = Threshold(
    "cases.least-seconds", 10.0, Unit.SECONDS,
    means="The time after a resize is judged alone once it is this long; until then the time before it is "
    "included.",
)  # fmt: skip
#: The key in the recording's ``facts`` that holds the number of cores of the machine.
_CORES = "cores"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShardTraffic:
    """The traffic of one shard of a variable in a step of all trainers; None: not measured.

    Attributes:
        server: the server that holds the shard, such as ``ps-0``.
        bytes: bytes moved in both directions together.
        microseconds: time of the server's operations on the shard.
    """

    variable: str
    shard: int | None
    server: str
    bytes: float | None
    microseconds: float | None

    @property
    def name(self) -> str:
        """The variable's name, followed by the shard's number if the variable has several shards."""
        return self.variable if self.shard is None else f"{self.variable}/{self.shard}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """The input of the rules: a recording and the time window that is judged.

    Attributes:
        recording: everything that is known about the job.
        window: the time that is judged: the last seconds of a running job, or the whole training of a job
            that has ended. If the job was resized at least `LEAST_SECONDS` before the window's end, the
            window does not begin before the resize.
        computed: the results that `once` caches.
    """

    recording: Recording
    window: Interval
    computed: dict[Callable[[Case], Any], Any] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, recording: Recording) -> Case:
        """Return the case of a recording."""
        window_seconds, least_seconds = (
            threshold.value(recording.thresholds) for threshold in (WINDOW_SECONDS, LEAST_SECONDS)
        )
        window = Interval(since=recording.at - window_seconds, until=recording.at)
        if recording.run.phase.is_final:
            trained = training_interval(recording.steps, recording.samples)
            window = trained or Interval(since=recording.at, until=recording.at)
        resized_at = max((each.at for each in recording.events if each.kind == RESIZED), default=-math.inf)
        if window.since < resized_at <= window.until - least_seconds:
            window = Interval(since=resized_at, until=window.until)
        return cls(recording=recording, window=window)

    def value(self, threshold: Threshold) -> float:
        """Return a threshold as the site has set it, or its default."""
        return threshold.value(self.recording.thresholds)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The state and the speed of the job within the window."""
        return snapshots.joined(
            self.recording.run,
            self.recording.replicas,
            samples=self.samples,
            steps=self.steps,
            latest_steps=tuple({report.replica: report for report in self.recording.steps}.values()),
            evaluations=self.recording.evaluations,
            at=self.window.until,
            lost=self.recording.lost,
        )

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """The samples within the window."""
        return tuple(each for each in self.recording.samples if self.window.has(each))

    @cached_property
    def steps(self) -> tuple[StepReport, ...]:
        """The step reports within the window."""
        return tuple(each for each in self.recording.steps if self.window.has(each))

    @cached_property
    def histories(self) -> dict[ReplicaId, list[Sample]]:
        """All samples of each replica's newest attempt, not only those within the window."""
        return _newest(self.recording, self.recording.samples)

    @cached_property
    def reports(self) -> dict[ReplicaId, list[StepReport]]:
        """All step reports of each trainer's newest attempt, not only those within the window."""
        return _newest(self.recording, self.recording.steps)

    @property
    def spec(self) -> JobSpec:
        """The job's spec."""
        return self.recording.run.spec

    @property
    def is_running(self) -> bool:
        """Whether the job is running now, so that findings describe the present."""
        return self.recording.run.phase in (JobPhase.RUNNING, JobPhase.RESTARTING)

    def of_role(self, *roles: Role) -> tuple[ReplicaSnapshot, ...]:
        """Return the replicas of some roles, sorted by replica."""
        found = (each for each in self.snapshot.replicas if each.replica.role in roles)
        return tuple(sorted(found, key=lambda each: each.replica))

    @cached_property
    def servers(self) -> tuple[ReplicaSnapshot, ...]:
        """The parameter servers."""
        return self.of_role(Role.PS)

    @cached_property
    def trainers(self) -> tuple[ReplicaSnapshot, ...]:
        """The workers and the chief."""
        return self.of_role(Role.CHIEF, Role.WORKER)

    @cached_property
    def active_trainers(self) -> tuple[ReplicaSnapshot, ...]:
        """The trainers that make steps."""
        return tuple(each for each in self.trainers if each.steps_per_second)

    def role(self, replica: ReplicaSnapshot) -> RoleSpec | None:
        """Return the role spec of a replica; None: the job file does not have its role."""
        role = replica.replica.role
        return None if self.spec.role(role) is None else self.spec.role_of(replica.replica)

    def host(self, replica: ReplicaSnapshot) -> Host | None:
        """Return the emulated host of a replica; None: the replica is on none."""
        return next((host for host in self.spec.hosts if host.name == replica.row.host), None)

    @cached_property
    def machine_cores(self) -> float | None:
        """The cores of the machine that all replicas of a local job share; None: not known."""
        told = dict(self.recording.facts).get(_CORES, "") if self.recording.run.engine == "local" else ""
        return float(told) if told.isdecimal() else None

    @cached_property
    def traffic(self) -> tuple[ShardTraffic, ...]:
        """The traffic of a step for each shard, largest first: from traces, or else counted from batches.

        Counted traffic is that of one trainer. All trainers train alike, so the shares are the same.
        """
        return _traced(self.recording) or _counted(self.placed)

    @cached_property
    def placed(self) -> Plan | None:
        """The placement of the variables' shards as TensorFlow reports it, or else as the job file asks."""
        return None if self.recording.plan is None else variable_devices.placed(self.recording.plan)

    def source(
        self, field: str, replicas: Iterable[ReplicaSnapshot] = (), *, steps: bool = False
    ) -> EvidenceSource:
        """Return the source of a number computed from samples, or from step reports, within the window.

        Args:
            field: the field of the samples or step reports.
            replicas: the replicas that the number is about; empty: all.
            steps: whether the number is computed from step reports instead of samples.
        """
        replica_ids = tuple(snapshot.replica for snapshot in replicas)
        index: Mapping[ReplicaId, Sequence[Sample | StepReport]]
        index = self.steps_by_replica if steps else self.samples_by_replica
        at = [
            measurement.at
            for replica in replica_ids or index
            for measurement in index.get(replica, ())
            if getattr(measurement, field, None) is not None
        ]
        return EvidenceSource(
            what="steps" if steps else "samples",
            field=field,
            replicas=replica_ids,
            count=len(at),
            since=min(at, default=None),
            until=max(at, default=None),
        )

    @cached_property
    def samples_by_replica(self) -> Mapping[ReplicaId, Sequence[Sample]]:
        """The samples within the window of each replica that has any."""
        return by_replica(self.samples)

    @cached_property
    def steps_by_replica(self) -> Mapping[ReplicaId, Sequence[StepReport]]:
        """The step reports within the window of each replica that has any."""
        return by_replica(self.steps)


def _newest(recording: Recording, items: Sequence[Measured]) -> dict[ReplicaId, list[Measured]]:
    attempts = {row.replica: row.attempt for row in recording.replicas}
    found: dict[ReplicaId, list[Measured]] = {replica: [] for replica in attempts}
    for item in items:
        if attempts.get(item.replica) == item.attempt:
            found[item.replica].append(item)
    return found


def _traced(recording: Recording) -> tuple[ShardTraffic, ...]:
    moved: dict[tuple[str, int | None, str], float] = {}
    computed: dict[tuple[str, int | None, str], float] = {}
    for row in trace_summaries.traffic(recording.traces):
        if row.variable is not None and row.bytes is not None:
            key = row.variable, row.shard, row.server
            moved[key] = moved.get(key, 0.0) + row.bytes
    for time in trace_summaries.server_time(recording.traces):
        if time.variable is not None:
            key = time.variable, time.shard, time.server
            computed[key] = computed.get(key, 0.0) + time.microseconds
    found = (
        ShardTraffic(
            variable=key[0], shard=key[1], server=key[2], bytes=moved.get(key), microseconds=computed.get(key)
        )
        for key in moved.keys() | computed.keys()
    )
    return tuple(sorted(found, key=_order))


def _counted(plan: Plan | None) -> tuple[ShardTraffic, ...]:
    if plan is None:
        return ()
    traffic = (
        ShardTraffic(
            variable=shard.variable.name,
            shard=shard.index if shard.layout.shards > 1 else None,
            server=str(ReplicaId(Role.PS, shard.server)),
            bytes=shard.step_bytes,
            microseconds=None,
        )
        for shard in plan.shards
    )
    return tuple(sorted(traffic, key=_order))


def _order(each: ShardTraffic) -> tuple[float, float, str, str]:
    return -(each.bytes or 0.0), -(each.microseconds or 0.0), each.name, each.server


def once(function: Callable[[Case], T]) -> Callable[[Case], T]:
    """Return a function of a case whose result is computed once for each case, however many rules call it."""

    @functools.wraps(function)
    def kept(case: Case) -> T:
        if function not in case.computed:
            case.computed[function] = function(case)
        found: T = case.computed[function]
        return found

    return kept


def mean(
    replicas: Iterable[ReplicaSnapshot], gauge: Callable[[ReplicaSnapshot], float | None]
) -> float | None:
    """Return the mean of a gauge over the replicas for which it was measured; None: it was not for any."""
    known = [value for each in replicas if (value := gauge(each)) is not None]
    return sum(known) / len(known) if known else None
