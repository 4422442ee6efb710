"""Snapshots: how a job does, as one value: in the last seconds, or over its whole run.

Means over a whole run are over its *training interval*, from the beginning of the first step report to the
end of the last, because start-up and evaluation would dilute them. Without step reports they are over all
measurements. A replica that was not measured has None, never 0, and sums leave it out; a sum of nothing is
None too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from paceline.model import imbalances
from paceline.model.instants import UnixSeconds
from paceline.model.jobs.runs import ReplicaRow, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures import progresses, rates
from paceline.model.measures.intervals import Interval, covered_seconds, stretch, training_interval
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport, by_replica
from paceline.model.roles import ReplicaId, Role

#: The time over which rates of a running job are taken.
WINDOW_SECONDS = 10.0
#: The same for steps, which scripts report less often.
STEP_WINDOW_SECONDS = 30.0
#: A role with a smaller share of the job's load has no hot replica: differences between replicas are noise.
HOT_SHARE = 0.02


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSnapshot:
    """One replica: its state, and its means over the time of the snapshot.

    Attributes:
        throttled_share: seconds throttled in each second; the kernel adds up cores, so it may exceed 1.
        cpu_cores_max: the highest mean of a sample.
        memory_bytes: the latest reading, or the highest of a whole run.
        switches_per_second: context switches, voluntary and involuntary.
        involuntary_switches_per_second: switches in which a thread that could go on had to make room for
            another.
        run_delay_share: seconds in each second that threads waited for a core, added up over all threads.
        cpu_pressure_share, memory_pressure_share, io_pressure_share: the share of the time for which at least
            one thread waited for a core, for memory to be freed, for a disk.
        input_wait_share: the share of the time that a trainer waited for its input.
        input_cpu_cores: the mean number of cores that a trainer uses for reading and decoding.
        all_reduce_share: the share of the time that a rank waited for the gradients of others.
        retransmitted_share: the share of the TCP segments it sent that it had sent before.
        step: the global step that it reported last.
        measured_at: when it was last measured in the time of the snapshot.
    """

    row: ReplicaRow
    cpu_cores: float | None = None
    cpu_cores_max: float | None = None
    cpu_limit_cores: float | None = None
    allowed_cpus: int | None = None
    throttled_share: float | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    received_bytes_per_second: float | None = None
    sent_bytes_per_second: float | None = None
    switches_per_second: float | None = None
    involuntary_switches_per_second: float | None = None
    run_delay_share: float | None = None
    cpu_pressure_share: float | None = None
    memory_pressure_share: float | None = None
    io_pressure_share: float | None = None
    threads: int | None = None
    neighbours_cpu_cores: float | None = None
    stolen_cpu_cores: float | None = None
    gpu_utilization: float | None = None
    gpu_memory_bytes: int | None = None
    step: int | None = None
    steps_per_second: float | None = None
    examples_per_second: float | None = None
    loss: float | None = None
    input_wait_share: float | None = None
    input_cpu_cores: float | None = None
    all_reduce_share: float | None = None
    retransmitted_share: float | None = None
    measured_at: UnixSeconds | None = None

    @property
    def replica(self) -> ReplicaId:
        """Return which replica this is."""
        return self.row.replica

    @property
    def network_bytes_per_second(self) -> float | None:
        """Return the bytes a second in both directions together."""
        return rates.total((self.received_bytes_per_second, self.sent_bytes_per_second))


#: The loads that should be even over the replicas of a role: cores, and bytes a second in both directions.
LOADS: Mapping[str, Callable[[ReplicaSnapshot], float | None]] = {
    "CPU": lambda replica: replica.cpu_cores,
    "network": lambda replica: replica.network_bytes_per_second,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Imbalance:
    """How unevenly a load is distributed over the replicas of a role.

    Attributes:
        resource: the load, a key of `LOADS`.
        hot: the replica with the highest use, if that is far above the mean; else None.
    """

    resource: str
    max_over_mean: float
    gini: float
    hot: ReplicaId | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RoleSnapshot:
    """All replicas of one role, the busiest first, with their sums and imbalances."""

    role: Role
    replicas: tuple[ReplicaSnapshot, ...]
    cpu_cores: float | None
    memory_bytes: float | None
    received_bytes_per_second: float | None
    sent_bytes_per_second: float | None
    imbalances: tuple[Imbalance, ...]

    @property
    def hot(self) -> ReplicaId | None:
        """Return the hot replica of the first resource that has one."""
        return next((imbalance.hot for imbalance in self.imbalances if imbalance.hot), None)

    @property
    def max_over_mean(self) -> float | None:
        """Return the higher imbalance of its loads: 1 is even; None: no load was measured on two replicas."""
        return max((imbalance.max_over_mean for imbalance in self.imbalances), default=None)

    def loads(self, resource: str) -> dict[ReplicaId, float]:
        """Return a load of `LOADS` on each replica on which it was measured, in the order of replicas."""
        return _loads(sorted(self.replicas, key=lambda each: each.replica), resource)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A whole job.

    Attributes:
        at: the moment: now, the end of the job, or the last measurement of a lost one.
        lost: whether the job should run, but no supervisor watches it.
        whole_run: whether means are over the whole run rather than over the last seconds.
        interval: the training interval of a whole run; None: of the last seconds, or nothing was measured.
        step: the global step; it goes back when a checkpoint is restored.
        steps_per_second: global steps a second.
        examples: the examples of all trainers in a whole run, including those trained again after a restart.
        examples_per_second: of all trainers together.
        input_wait_share: the share of the trainers' time that they waited for input.
    """

    run: Run
    at: UnixSeconds
    lost: bool
    whole_run: bool
    roles: tuple[RoleSnapshot, ...]
    interval: Interval | None = None
    step: int | None = None
    total_steps: int | None = None
    steps_per_second: float | None = None
    examples: int | None = None
    examples_per_second: float | None = None
    input_wait_share: float | None = None
    loss: float | None = None
    evaluation: EvaluationReport | None = None

    @property
    def replicas(self) -> tuple[ReplicaSnapshot, ...]:
        """Return every replica, role by role."""
        return tuple(replica for role in self.roles for replica in role.replicas)

    @property
    def servers(self) -> RoleSnapshot | None:
        """Return its parameter servers; None: it has none."""
        return next((role for role in self.roles if role.role is Role.PS), None)

    @property
    def restarts(self) -> int:
        """Return how often its replicas were restarted."""
        return sum(replica.row.restarts for replica in self.replicas)

    @property
    def elapsed_seconds(self) -> float | None:
        """Return how long the job has run, or ran."""
        return None if self.run.started_at is None else max(0.0, self.at - self.run.started_at)

    @property
    def progress(self) -> float | None:
        """Return the share of the steps that is done, between 0 and 1."""
        if self.step is None or not self.total_steps:
            return None
        return min(1.0, max(0.0, self.step / self.total_steps))

    @property
    def eta_seconds(self) -> float | None:
        """Return how long the rest takes at the present rate; None: not known."""
        if self.lost or self.run.phase is not JobPhase.RUNNING or not self.steps_per_second:
            return None
        if self.step is None or not self.total_steps:
            return None
        return max(0.0, (self.total_steps - self.step) / self.steps_per_second)


def of(recording: Recording) -> Snapshot:
    """Return the snapshot of a recording: of its last seconds, or of the whole run if that has ended."""
    if recording.run.phase.is_final:
        return of_whole_run(recording)
    at = recording.at
    return joined(
        recording.run,
        recording.replicas,
        samples=[each for each in recording.samples if each.at >= at - WINDOW_SECONDS],
        steps=[each for each in recording.steps if each.at >= at - STEP_WINDOW_SECONDS],
        latest_steps=_latest_reports(recording),
        evaluations=recording.evaluations,
        at=at,
        lost=recording.lost,
    )


def of_whole_run(recording: Recording) -> Snapshot:
    """Return the snapshot of a run from its beginning to its end, or to the moment of the recording."""
    run = recording.run
    return joined(
        run,
        recording.replicas,
        samples=recording.samples,
        steps=recording.steps,
        latest_steps=_latest_reports(recording),
        evaluations=recording.evaluations,
        at=recording.at if run.finished_at is None else run.finished_at,
        lost=recording.lost,
        whole_run=True,
    )


def _latest_reports(recording: Recording) -> tuple[StepReport, ...]:
    return tuple({report.replica: report for report in recording.steps}.values())


def joined(
    run: Run,
    rows: Sequence[ReplicaRow],
    *,
    samples: Sequence[Sample] = (),
    steps: Sequence[StepReport] = (),
    latest_steps: Sequence[StepReport] = (),
    evaluations: Sequence[EvaluationReport] = (),
    at: float,
    lost: bool = False,
    whole_run: bool | None = None,
) -> Snapshot:
    """Return the snapshot that rows of the store make.

    Args:
        run: the run.
        rows: its replicas.
        samples: the samples of the time of the snapshot, in the order of time.
        steps: the step reports of that time, in the order of time.
        latest_steps: the latest report of each replica, however old.
        evaluations: evaluations of the model, in the order of time.
        at: the moment.
        lost: whether the run has no live supervisor.
        whole_run: whether the time of the snapshot is the whole run; None: it is if the run has ended.
    """
    whole_run = run.phase.is_final if whole_run is None else whole_run
    interval = training_interval(steps, samples) if whole_run else None
    if interval is not None:
        steps = [report for report in steps if interval.has(report)]
    samples_of, steps_of = by_replica(samples), by_replica(steps)
    latest = {report.replica: report for report in latest_steps}
    replicas_by_role: dict[Role, list[ReplicaSnapshot]] = {}
    for row in rows:
        replica = _replica(
            row,
            samples_of.get(row.replica, ()),
            steps_of.get(row.replica, ()),
            latest.get(row.replica),
            whole_run=whole_run,
            interval=interval,
        )
        replicas_by_role.setdefault(row.replica.role, []).append(replica)
    everything = [replica for replicas in replicas_by_role.values() for replica in replicas]
    reports = [*steps, *latest_steps]
    total_steps = progresses.total_steps(reports)
    newest = max((r for r in reports if r.loss is not None), key=lambda r: r.at, default=None)
    return Snapshot(
        run=run,
        at=at,
        lost=lost,
        whole_run=whole_run,
        roles=tuple(_role(role, replicas, everything) for role, replicas in replicas_by_role.items()),
        interval=interval,
        step=progresses.step(reports),
        total_steps=_asked_steps(run) if total_steps is None else total_steps,
        steps_per_second=progresses.rate(steps),
        examples=rates.total(report.examples for report in steps) if whole_run else None,
        examples_per_second=(
            _joint_rate(steps)
            if whole_run
            else rates.total(replica.examples_per_second for replica in everything)
        ),
        input_wait_share=rates.rate(steps, lambda r: r.input_wait_seconds),
        loss=newest.loss if newest else None,
        evaluation=evaluations[-1] if evaluations else None,
    )


def _joint_rate(steps: Sequence[StepReport]) -> float | None:
    """Return the examples of all trainers over the seconds in which at least one of them trained.

    In a whole run, trainers come and go: the sum of their own rates would be that of no moment.
    """
    counted = [r for r in steps if r.examples is not None and r.interval_seconds]
    seconds = covered_seconds(map(stretch, counted))
    return rates.quotient(sum(report.examples or 0 for report in counted), seconds)


def _replica(
    row: ReplicaRow,
    samples: Sequence[Sample],
    steps: Sequence[StepReport],
    latest: StepReport | None,
    *,
    whole_run: bool,
    interval: Interval | None,
) -> ReplicaSnapshot:
    if not whole_run:
        # What an earlier attempt did says nothing about this one.
        samples = [sample for sample in samples if sample.attempt == row.attempt and row.phase.is_live]
        steps = [report for report in steps if report.attempt == row.attempt and row.phase.is_live]
    memory = [sample.memory_bytes for sample in samples if sample.memory_bytes is not None]
    within = samples if interval is None else [sample for sample in samples if interval.has(sample)]
    return ReplicaSnapshot(
        row=row,
        cpu_cores=rates.time_mean(within, lambda s: s.cpu_cores),
        cpu_cores_max=max((s.cpu_cores for s in within if s.cpu_cores is not None), default=None),
        cpu_limit_cores=rates.latest(samples, lambda s: s.cpu_limit_cores),
        allowed_cpus=rates.latest(samples, lambda s: s.allowed_cpus),
        throttled_share=rates.rate(within, lambda s: s.throttled_seconds),
        memory_bytes=(max(memory) if whole_run else memory[-1]) if memory else None,
        memory_limit_bytes=rates.latest(samples, lambda s: s.memory_limit_bytes),
        received_bytes_per_second=rates.rate(within, lambda s: s.network_received_bytes),
        sent_bytes_per_second=rates.rate(within, lambda s: s.network_sent_bytes),
        switches_per_second=rates.rate(within, rates.switches),
        involuntary_switches_per_second=rates.rate(within, lambda s: s.involuntary_switches),
        run_delay_share=rates.rate(within, lambda s: s.run_delay_seconds),
        cpu_pressure_share=rates.rate(within, lambda s: s.cpu_pressure_seconds),
        memory_pressure_share=rates.rate(within, lambda s: s.memory_pressure_seconds),
        io_pressure_share=rates.rate(within, lambda s: s.io_pressure_seconds),
        threads=rates.latest(samples, lambda s: s.threads),
        neighbours_cpu_cores=rates.time_mean(within, lambda s: s.neighbours_cpu_cores),
        stolen_cpu_cores=rates.time_mean(within, lambda s: s.stolen_cpu_cores),
        gpu_utilization=rates.time_mean(within, lambda s: s.gpu_utilization),
        gpu_memory_bytes=rates.latest(samples, lambda s: s.gpu_memory_bytes),
        step=latest.step if latest else None,
        steps_per_second=rates.rate(steps, lambda s: s.steps),
        examples_per_second=rates.rate(steps, lambda s: s.examples),
        loss=latest.loss if latest else None,
        input_wait_share=rates.rate(steps, lambda s: s.input_wait_seconds),
        input_cpu_cores=rates.rate(steps, lambda s: s.input_cpu_seconds),
        all_reduce_share=rates.rate(steps, lambda s: s.all_reduce_seconds),
        retransmitted_share=_retransmitted(within),
        measured_at=samples[-1].at if samples else None,
    )


def _retransmitted(samples: Sequence[Sample]) -> float | None:
    """Return the share of TCP segments that were sent again.

    Linux counts these apart from first transmissions (``OutSegs`` and ``RetransSegs`` of ``/proc/net/snmp``;
    RFC 4022, tcpOutSegs).
    """
    first = again = 0
    for each in samples:
        if each.sent_segments is not None and each.retransmitted_segments is not None:
            first += each.sent_segments
            again += each.retransmitted_segments
    return again / (first + again) if first + again else None


def _role(
    role: Role, replicas: Sequence[ReplicaSnapshot], everything: Sequence[ReplicaSnapshot]
) -> RoleSnapshot:
    role_imbalances = (_imbalance(resource, replicas, everything) for resource in LOADS)
    return RoleSnapshot(
        role=role,
        replicas=tuple(sorted(replicas, key=lambda r: (-_load(r)[0], -_load(r)[1], r.replica))),
        cpu_cores=rates.total(replica.cpu_cores for replica in replicas),
        memory_bytes=rates.total(replica.memory_bytes for replica in replicas),
        received_bytes_per_second=rates.total(replica.received_bytes_per_second for replica in replicas),
        sent_bytes_per_second=rates.total(replica.sent_bytes_per_second for replica in replicas),
        imbalances=tuple(imbalance for imbalance in role_imbalances if imbalance is not None),
    )


def _load(replica: ReplicaSnapshot) -> tuple[float, float]:
    """Return what replicas are sorted by: CPU, then network if CPU is equal or unknown."""
    return (replica.cpu_cores or 0.0, replica.network_bytes_per_second or 0.0)


def _imbalance(
    resource: str, replicas: Sequence[ReplicaSnapshot], everything: Sequence[ReplicaSnapshot]
) -> Imbalance | None:
    measured = _loads(replicas, resource)
    loads = list(measured.values())
    ratio, gini = imbalances.max_over_mean(loads), imbalances.gini(loads)
    if ratio is None or gini is None:
        return None
    counts = sum(loads) >= HOT_SHARE * sum(_loads(everything, resource).values())
    hot = (
        max(measured, key=lambda replica: measured[replica])
        if ratio >= imbalances.HOT_OVER_MEAN and counts
        else None
    )
    return Imbalance(resource=resource, max_over_mean=ratio, gini=gini, hot=hot)


def _loads(replicas: Sequence[ReplicaSnapshot], resource: str) -> dict[ReplicaId, float]:
    load = LOADS[resource]
    return {replica.replica: value for replica in replicas if (value := load(replica)) is not None}


def _asked_steps(run: Run) -> int | None:
    """Return the number of steps in the job file, used until replicas report theirs."""
    asked = (run.spec.training or {}).get("max_steps")
    return asked if isinstance(asked, int) else None
