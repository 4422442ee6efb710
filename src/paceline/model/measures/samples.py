"""Measurements: samples of a replica, its step reports, and evaluations of the model.

Every measurement belongs to a replica and an attempt. None means "not measured", never 0. Field names are
those of the agent's spool (``docs/agent-protocol.md``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TypeVar

from paceline.model import roles


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reading of a replica's resources over the ``interval_seconds`` before ``at`` (Unix seconds).

    Bytes, segments, switches, ``throttled_seconds`` and ``run_delay_seconds`` are sums within the interval;
    ``run_delay_seconds`` is how long threads were ready to run and waited for a core, added up over all
    threads. ``cpu_cores``, ``neighbours_cpu_cores`` and ``stolen_cpu_cores`` are means over the interval.
    ``allowed_cpus`` is the number of CPUs on which the replica may run, and ``stolen_cpu_cores`` what a
    hypervisor gave to others of these although there was work for them. ``gpu_utilization`` is between 0 and
    1. Segments are TCP's (RFC 4022): ``sent_segments`` excludes those that were sent again, which are
    ``retransmitted_segments``.
    """

    replica: roles.ReplicaId
    attempt: int
    at: float
    interval_seconds: float
    cpu_cores: float | None = None
    cpu_limit_cores: float | None = None
    throttled_seconds: float | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    network_received_bytes: int | None = None
    network_sent_bytes: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    threads: int | None = None
    neighbours_cpu_cores: float | None = None
    gpu_utilization: float | None = None
    gpu_memory_bytes: int | None = None
    sent_segments: int | None = None
    retransmitted_segments: int | None = None
    run_delay_seconds: float | None = None
    allowed_cpus: int | None = None
    stolen_cpu_cores: float | None = None


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
    at: float
    interval_seconds: float | None = None
    step: int | None = None
    steps: int | None = None
    examples: int | None = None
    loss: float | None = None
    input_wait_seconds: float | None = None
    total_steps: int | None = None
    input_cpu_seconds: float | None = None
    all_reduce_seconds: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    """The model's quality on data that it was not trained on."""

    replica: roles.ReplicaId
    attempt: int
    at: float
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
