"""Measurements: samples of a replica, its step reports, and evaluations of the model.

Every measurement belongs to a replica and an attempt. None means "not measured", never 0. Field names are
those of the agent's spool (``docs/agent-protocol.md``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Annotated, TypeVar

from paceline.model import roles
from paceline.model.instants import UnixSeconds
from paceline.model.measures.gauges import Combining, GaugeSpec

COUNT, MEAN = Combining.COUNT, Combining.MEAN
_AT = GaugeSpec(1, decimals=3)
_LENGTH = GaugeSpec(2, Combining.INTERVAL, decimals=3, exact_below=0.1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reading of a replica's resources over the ``interval_seconds`` before ``at`` (Unix seconds).

    Bytes, segments, switches and seconds are sums within the interval. ``run_delay_seconds`` is how long
    threads were ready to run and waited for a core, added up over all threads. The pressures are for how long
    at least one thread waited: for a core, for memory to be freed, for a disk (``accounting/psi``).
    ``cpu_cores``, ``neighbours_cpu_cores`` and ``stolen_cpu_cores`` are means over the interval.
    ``allowed_cpus`` is the number of CPUs on which the replica may run, and ``stolen_cpu_cores`` what a
    hypervisor gave to others of these although there was work for them. ``gpu_utilization`` is between 0 and
    1. Segments are TCP's (RFC 4022): ``sent_segments`` excludes those that were sent again, which are
    ``retransmitted_segments``.
    """

    replica: roles.ReplicaId
    attempt: int
    at: Annotated[float, _AT]
    interval_seconds: Annotated[float, _LENGTH]
    cpu_cores: Annotated[float | None, GaugeSpec(3, MEAN, decimals=4, digits=8)] = None
    cpu_limit_cores: Annotated[float | None, GaugeSpec(4, decimals=6)] = None
    throttled_seconds: Annotated[float | None, GaugeSpec(5, COUNT, decimals=4, digits=7)] = None
    memory_bytes: Annotated[int | None, GaugeSpec(6, unit_bits=16, digits=8)] = None
    memory_limit_bytes: Annotated[int | None, GaugeSpec(7)] = None
    network_received_bytes: Annotated[int | None, GaugeSpec(8, COUNT, digits=7)] = None
    network_sent_bytes: Annotated[int | None, GaugeSpec(9, COUNT, digits=7)] = None
    voluntary_switches: Annotated[int | None, GaugeSpec(10, COUNT, digits=6)] = None
    involuntary_switches: Annotated[int | None, GaugeSpec(11, COUNT, digits=6)] = None
    threads: Annotated[int | None, GaugeSpec(12)] = None
    neighbours_cpu_cores: Annotated[float | None, GaugeSpec(13, MEAN, decimals=2, digits=6)] = None
    gpu_utilization: Annotated[float | None, GaugeSpec(14, MEAN, decimals=4)] = None
    gpu_memory_bytes: Annotated[int | None, GaugeSpec(15, unit_bits=16)] = None
    sent_segments: Annotated[int | None, GaugeSpec(16, COUNT, digits=6)] = None
    retransmitted_segments: Annotated[int | None, GaugeSpec(17, COUNT, digits=9)] = None
    run_delay_seconds: Annotated[float | None, GaugeSpec(24, COUNT, decimals=4, digits=5)] = None
    allowed_cpus: Annotated[int | None, GaugeSpec(25)] = None
    stolen_cpu_cores: Annotated[float | None, GaugeSpec(26, MEAN, decimals=2, digits=6)] = None
    cpu_pressure_seconds: Annotated[float | None, GaugeSpec(29, COUNT, decimals=2, digits=6)] = None
    memory_pressure_seconds: Annotated[float | None, GaugeSpec(30, COUNT, decimals=2, digits=6)] = None
    io_pressure_seconds: Annotated[float | None, GaugeSpec(31, COUNT, decimals=2, digits=6)] = None


#: Stands for the current attempt of a replica.
CURRENT_ATTEMPT = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """A training script's report of its own progress, or a coordinator's report of the progress of a worker.

    ``step`` is the global step. ``steps``, ``examples`` and ``input_wait_seconds`` are this replica's own
    within the interval. So are ``input_cpu_seconds``, the CPU time for reading and decoding, and
    ``all_reduce_seconds``, the time that it waited for the gradients of other ranks. A coordinator does not
    know the attempts of its workers, so its reports have `CURRENT_ATTEMPT` until they are stored.
    """

    replica: roles.ReplicaId
    attempt: int
    at: Annotated[float, _AT]
    interval_seconds: Annotated[float | None, _LENGTH] = None
    step: Annotated[int | None, GaugeSpec(18)] = None
    steps: Annotated[int | None, GaugeSpec(19, COUNT)] = None
    examples: Annotated[int | None, GaugeSpec(20, COUNT)] = None
    loss: Annotated[float | None, GaugeSpec(21, decimals=7, digits=17)] = None
    input_wait_seconds: Annotated[float | None, GaugeSpec(22, COUNT, decimals=4, digits=9)] = None
    total_steps: Annotated[int | None, GaugeSpec(23)] = None
    input_cpu_seconds: Annotated[float | None, GaugeSpec(27, COUNT, decimals=3, digits=7)] = None
    all_reduce_seconds: Annotated[float | None, GaugeSpec(28, COUNT, decimals=4, digits=9)] = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    """The model's quality on data that it was not trained on."""

    replica: roles.ReplicaId
    attempt: int
    at: UnixSeconds
    step: int | None = None
    examples: int | None = None
    auc: float | None = None
    log_loss: float | None = None
    accuracy: float | None = None


#: A measurement over an interval.
Measured = TypeVar("Measured", Sample, StepReport)


def by_replica(measured: Iterable[Measured]) -> dict[roles.ReplicaId, list[Measured]]:
    """Return the measurements of each replica that has any, in their order."""
    found: dict[roles.ReplicaId, list[Measured]] = {}
    for each in measured:
        found.setdefault(each.replica, []).append(each)
    return found
