"""A job under diagnosis: what is known of it, and how it does in the stretch of time that is judged."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

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
#: A job that runs is judged by its last seconds: enough for steadiness, short enough to notice a change.
WINDOW_SECONDS = 30.0
#: What came after a resize is judged alone if it is so long; until then with what came before.
LEAST_SECONDS = 10.0
#: The name of the machine in ``facts`` that says how many cores it has.
_CORES = "cores"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShardTraffic:
    """What a step of all trainers moves of a part of a variable; None: not measured.

    Attributes:
        server: such as ``ps-0``.
        bytes: both ways together.
        microseconds: of operations on the server for it.
    """

    variable: str
    shard: int | None
    server: str
    bytes: float | None
    microseconds: float | None

    @property
    def name(self) -> str:
        """Return the variable's name, with the number of the shard where there are several."""
        return self.variable if self.shard is None else f"{self.variable}/{self.shard}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """What the rules judge.

    Attributes:
        recording: all that is known.
        window: the stretch of time that is judged: the last seconds of a job that runs, the training of one
            that has ended; of one that was resized what came after that.
        computed: what `once` keeps.
    """

    recording: Recording
    window: Interval
    computed: dict[Callable[[Case], Any], Any] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, recording: Recording) -> Case:
        """Return the case of a recording."""
        window = Interval(since=recording.at - WINDOW_SECONDS, until=recording.at)
        if recording.run.phase.is_final:
            window = training_interval(recording) or Interval(since=recording.at, until=recording.at)
        resized_at = max((each.at for each in recording.events if each.kind == RESIZED), default=-math.inf)
        if window.since < resized_at <= window.until - LEAST_SECONDS:
            window = Interval(since=resized_at, until=window.until)
        return cls(recording=recording, window=window)

    @cached_property
    def snapshot(self) -> Snapshot:
        """Return how the job does within the window."""
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
        """Return the samples within the window."""
        return tuple(each for each in self.recording.samples if self.window.has(each))

    @cached_property
    def steps(self) -> tuple[StepReport, ...]:
        """Return the step reports within the window."""
        return tuple(each for each in self.recording.steps if self.window.has(each))

    @cached_property
    def histories(self) -> dict[ReplicaId, list[Sample]]:
        """Return all samples of each replica's newest attempt, not only those within the window."""
        return _newest(self.recording, self.recording.samples)

    @cached_property
    def reports(self) -> dict[ReplicaId, list[StepReport]]:
        """Return all step reports of each trainer's newest attempt, not only those within the window."""
        return _newest(self.recording, self.recording.steps)

    @property
    def spec(self) -> JobSpec:
        """Return the job as it was asked for."""
        return self.recording.run.spec

    @property
    def is_running(self) -> bool:
        """Whether it runs now, so what is found is the case now."""
        return self.recording.run.phase in (JobPhase.RUNNING, JobPhase.RESTARTING)

    def of_role(self, *roles: Role) -> tuple[ReplicaSnapshot, ...]:
        """Return the replicas of some roles, by their index."""
        found = (each for each in self.snapshot.replicas if each.replica.role in roles)
        return tuple(sorted(found, key=lambda each: each.replica))

    @cached_property
    def servers(self) -> tuple[ReplicaSnapshot, ...]:
        """Return the parameter servers."""
        return self.of_role(Role.PS)

    @cached_property
    def trainers(self) -> tuple[ReplicaSnapshot, ...]:
        """Return the workers and the chief."""
        return self.of_role(Role.CHIEF, Role.WORKER)

    @cached_property
    def active_trainers(self) -> tuple[ReplicaSnapshot, ...]:
        """Return the trainers that make steps."""
        return tuple(each for each in self.trainers if each.steps_per_second)

    def role(self, replica: ReplicaSnapshot) -> RoleSpec | None:
        """Return what was asked for a replica."""
        role = replica.replica.role
        return None if self.spec.role(role) is None else self.spec.role_of(replica.replica)

    def host(self, replica: ReplicaSnapshot) -> Host | None:
        """Return the emulated host of a replica."""
        return next((host for host in self.spec.hosts if host.name == replica.row.host), None)

    @cached_property
    def machine_cores(self) -> float | None:
        """Return the cores of the machine that all replicas of a local job share; None: not known."""
        told = dict(self.recording.facts).get(_CORES, "") if self.recording.run.engine == "local" else ""
        return float(told) if told.isdecimal() else None

    @cached_property
    def traffic(self) -> tuple[ShardTraffic, ...]:
        """Return what a step moves, by shard, the most first: traced, or else counted from batches.

        What was counted is of one trainer; as all of them train alike, shares are the same.
        """
        return _traced(self.recording) or _counted(self.placed)

    @cached_property
    def placed(self) -> Plan | None:
        """Return where the parts of variables are: as TensorFlow says, or else as the job file asks."""
        return None if self.recording.plan is None else variable_devices.placed(self.recording.plan)

    def source(
        self, field: str, replicas: Iterable[ReplicaSnapshot] = (), *, steps: bool = False
    ) -> EvidenceSource:
        """Return the source of a number that rests on samples, or on step reports, within the window."""
        wanted = tuple(each.replica for each in replicas)
        index: Mapping[ReplicaId, Sequence[Sample | StepReport]]
        index = self.steps_by_replica if steps else self.samples_by_replica
        at = [
            each.at
            for replica in wanted or index
            for each in index.get(replica, ())
            if getattr(each, field, None) is not None
        ]
        return EvidenceSource(
            what="steps" if steps else "samples",
            field=field,
            replicas=wanted,
            count=len(at),
            since=min(at, default=None),
            until=max(at, default=None),
        )

    @cached_property
    def samples_by_replica(self) -> Mapping[ReplicaId, Sequence[Sample]]:
        """Return the samples within the window of each replica that has any."""
        return by_replica(self.samples)

    @cached_property
    def steps_by_replica(self) -> Mapping[ReplicaId, Sequence[StepReport]]:
        """Return the step reports within the window of each replica that has any."""
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
    found = (
        ShardTraffic(
            variable=each.variable.name,
            shard=each.index if each.layout.shards > 1 else None,
            server=str(ReplicaId(Role.PS, each.server)),
            bytes=each.step_bytes,
            microseconds=None,
        )
        for each in plan.shards
    )
    return tuple(sorted(found, key=_order))


def _order(each: ShardTraffic) -> tuple[float, float, str, str]:
    return -(each.bytes or 0.0), -(each.microseconds or 0.0), each.name, each.server


def once(function: Callable[[Case], T]) -> Callable[[Case], T]:
    """Return a function of a case that is computed once for each case, however many rules ask."""

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
    """Return the mean of what was measured of some replicas; None when nothing was."""
    known = [value for each in replicas if (value := gauge(each)) is not None]
    return sum(known) / len(known) if known else None
