"""The totals and means of a run: pure functions of its recording.

Rates and means cover the *training interval*, from the beginning of the first step report to the end of the
last, because start-up and evaluation would dilute them. Without step reports they cover all measurements. A
value that was not measured is None, never 0, and sums leave it out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from paceline.model import imbalances
from paceline.model.jobs.runs import ReplicaRow
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures import progresses, rates
from paceline.model.measures.intervals import Interval, covered_seconds, stretch, training_interval
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Measured, Sample, StepReport, by_replica
from paceline.model.roles import ReplicaId, Role


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSummary:
    """One replica over the training interval.

    Attributes:
        exit: why its latest attempt ended; None if it has not ended.
        samples: how many samples lie within the interval.
        memory_max_bytes: the highest reading of the whole run.
        received_bytes: over the whole run, all attempts; the same holds for ``sent_bytes``.
        throttled_share: throttled seconds per second; the kernel adds up cores, so it may exceed 1.
        steps: its own steps, all attempts; the same holds for ``examples``.
        examples_per_second: over the time during which this replica trained.
    """

    replica: ReplicaId
    phase: ReplicaPhase
    attempt: int
    restarts: int
    host: str | None = None
    exit: str | None = None
    samples: int = 0
    cpu_cores_mean: float | None = None
    cpu_cores_max: float | None = None
    cpu_limit_cores: float | None = None
    throttled_share: float | None = None
    memory_max_bytes: int | None = None
    memory_limit_bytes: int | None = None
    received_bytes_per_second: float | None = None
    sent_bytes_per_second: float | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    switches_per_second: float | None = None
    steps: int | None = None
    examples: int | None = None
    examples_per_second: float | None = None
    input_wait_share: float | None = None
    all_reduce_share: float | None = None

    @property
    def network_bytes_per_second(self) -> float | None:
        """The traffic of both directions together; None unless both were measured."""
        if self.received_bytes_per_second is None or self.sent_bytes_per_second is None:
            return None
        return self.received_bytes_per_second + self.sent_bytes_per_second


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerImbalance:
    """How unevenly one resource is used across the PS.

    Attributes:
        resource: ``cpu``, ``network`` or ``memory``.
        unit: the unit of the loads: ``cores``, ``bytes_per_second`` or ``bytes``.
        loads: the load of each PS that was measured, in the order of their indices.
        hottest: the PS with the highest load.
        is_hot: whether its load is so far above the mean that it will delay the others.
    """

    resource: str
    unit: str
    loads: tuple[tuple[ReplicaId, float], ...]
    max_over_mean: float
    gini: float
    hottest: ReplicaId
    is_hot: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The result of a run in numbers.

    Attributes:
        seconds: how long it ran, from its first launch to its end.
        interval: the training interval; None if nothing was measured at all.
        steps: the global step that it reached; it goes back when a checkpoint is restored.
        examples: the examples of all trainers, including those trained again after a restart.
        examples_per_second: of all trainers, over the time in which at least one of them trained.
        loss: the last loss reported.
        input_wait_share: the share of the trainers' time that they waited for input.
        auc: from the last evaluation that has it; the same holds for ``log_loss`` and ``accuracy``.
        ps_load_max_over_mean: the higher value of CPU and network, 1 is even; None if neither was measured.
        notes: what was not measured, and why.
    """

    name: str
    phase: str
    message: str
    seconds: float | None = None
    interval: Interval | None = None
    steps: int | None = None
    examples: int | None = None
    examples_per_second: float | None = None
    loss: float | None = None
    input_wait_share: float | None = None
    auc: float | None = None
    log_loss: float | None = None
    accuracy: float | None = None
    restarts: int = 0
    ps_load_max_over_mean: float | None = None
    imbalances: tuple[ServerImbalance, ...] = ()
    replicas: tuple[ReplicaSummary, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def servers(self) -> tuple[ReplicaSummary, ...]:
        """Its parameter servers."""
        return tuple(each for each in self.replicas if each.replica.role is Role.PS)

    def imbalance(self, resource: str) -> ServerImbalance | None:
        """Return the imbalance of one resource; None if it was not measured on at least two PS."""
        return next((found for found in self.imbalances if found.resource == resource), None)


def summarize(recording: Recording) -> RunOutcome:
    """Return the summary of a run.

    Args:
        recording: the recording of the run; a run that has not ended is summarized up to the recording's
            moment.
    """
    run, steps = recording.run, recording.steps
    interval = training_interval(recording)
    samples_of, steps_of = by_replica(recording.samples), by_replica(steps)
    replicas = tuple(
        _replica(row, samples_of.get(row.replica, []), steps_of.get(row.replica, []), interval)
        for row in recording.replicas
    )
    server_imbalances = _imbalances([replica for replica in replicas if replica.replica.role is Role.PS])
    end = run.finished_at if run.finished_at is not None else recording.at
    losses = [(report.at, report.loss) for report in steps if report.loss is not None]
    loads = [
        imbalance.max_over_mean for imbalance in server_imbalances if imbalance.resource in ("cpu", "network")
    ]
    return RunOutcome(
        name=run.name,
        phase=str(run.phase),
        message=run.message,
        seconds=None if run.started_at is None else max(0.0, end - run.started_at),
        interval=interval,
        steps=progresses.step(steps),
        examples=rates.total(r.examples for r in steps),
        examples_per_second=_joint_rate(steps),
        loss=max(losses, key=lambda told: told[0])[1] if losses else None,
        input_wait_share=rates.rate(steps, lambda r: r.input_wait_seconds),
        auc=rates.latest(recording.evaluations, lambda e: e.auc),
        log_loss=rates.latest(recording.evaluations, lambda e: e.log_loss),
        accuracy=rates.latest(recording.evaluations, lambda e: e.accuracy),
        restarts=sum(row.restarts for row in recording.replicas),
        ps_load_max_over_mean=max(loads, default=None),
        imbalances=server_imbalances,
        replicas=replicas,
        notes=tuple(dict.fromkeys(run.notes)),
    )


def _replica(
    row: ReplicaRow, everything: Sequence[Sample], steps: Sequence[StepReport], interval: Interval | None
) -> ReplicaSummary:
    within = [sample for sample in everything if interval is not None and interval.has(sample)]
    return ReplicaSummary(
        replica=row.replica,
        phase=row.phase,
        attempt=row.attempt,
        restarts=row.restarts,
        host=row.host,
        exit=str(row.exit) if row.exit else None,
        samples=len(within),
        cpu_cores_mean=rates.time_mean(within, lambda s: s.cpu_cores),
        cpu_cores_max=max(_known(within, lambda s: s.cpu_cores), default=None),
        cpu_limit_cores=rates.latest(everything, lambda s: s.cpu_limit_cores),
        throttled_share=rates.rate(within, lambda s: s.throttled_seconds),
        memory_max_bytes=max(
            (s.memory_bytes for s in everything if s.memory_bytes is not None), default=None
        ),
        memory_limit_bytes=rates.latest(everything, lambda s: s.memory_limit_bytes),
        received_bytes_per_second=rates.rate(within, lambda s: s.network_received_bytes),
        sent_bytes_per_second=rates.rate(within, lambda s: s.network_sent_bytes),
        received_bytes=rates.total(s.network_received_bytes for s in everything),
        sent_bytes=rates.total(s.network_sent_bytes for s in everything),
        switches_per_second=rates.rate(within, rates.switches),
        steps=rates.total(r.steps for r in steps),
        examples=rates.total(r.examples for r in steps),
        examples_per_second=rates.rate(steps, lambda r: r.examples),
        input_wait_share=rates.rate(steps, lambda r: r.input_wait_seconds),
        all_reduce_share=rates.rate(steps, lambda r: r.all_reduce_seconds),
    )


def _imbalances(servers: Sequence[ReplicaSummary]) -> tuple[ServerImbalance, ...]:
    found = (
        _imbalance("cpu", "cores", servers, lambda r: r.cpu_cores_mean),
        _imbalance("network", "bytes_per_second", servers, lambda r: r.network_bytes_per_second),
        _imbalance("memory", "bytes", servers, lambda r: r.memory_max_bytes),
    )
    return tuple(imbalance for imbalance in found if imbalance is not None)


def _imbalance(
    resource: str,
    unit: str,
    servers: Sequence[ReplicaSummary],
    load: Callable[[ReplicaSummary], float | None],
) -> ServerImbalance | None:
    loads = tuple((r.replica, float(value)) for r in servers if (value := load(r)) is not None)
    values = [value for _, value in loads]
    ratio, gini = imbalances.max_over_mean(values), imbalances.gini(values)
    if ratio is None or gini is None:
        return None
    return ServerImbalance(
        resource=resource,
        unit=unit,
        loads=loads,
        max_over_mean=ratio,
        gini=gini,
        hottest=max(loads, key=lambda pair: pair[1])[0],
        is_hot=ratio >= imbalances.HOT_OVER_MEAN,
    )


def _joint_rate(steps: Sequence[StepReport]) -> float | None:
    """Return the examples of all trainers over the seconds in which at least one of them trained."""
    counted = [r for r in steps if r.examples is not None and r.interval_seconds]
    seconds = covered_seconds(map(stretch, counted))
    return rates.quotient(sum(report.examples or 0 for report in counted), seconds)


def _known(items: Iterable[Measured], gauge: Callable[[Measured], float | None]) -> list[float]:
    return [value for item in items if (value := gauge(item)) is not None]
