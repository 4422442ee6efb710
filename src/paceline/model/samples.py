"""What is measured: samples of a replica, its step reports, evaluations of the model.

Everything is per replica and attempt. None means "not measured", never 0. Field names are those of the
agent's spool (``docs/agent-protocol.md``).
"""

from __future__ import annotations

import dataclasses

from paceline.model import roles


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One reading of a replica's resources over the ``interval_seconds`` before ``at`` (Unix seconds).

    Bytes, switches and ``throttled_seconds`` are counts within the interval; ``cpu_cores`` and
    ``neighbours_cpu_cores`` are means over it; ``gpu_utilization`` is between 0 and 1.
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What a training script says of its own progress.

    ``step`` is the global step; ``steps``, ``examples`` and ``input_wait_seconds`` are this replica's own
    within the interval.
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The model's quality on data that it was not trained on."""

    replica: roles.ReplicaId
    attempt: int
    at: float
    step: int | None = None
    examples: int | None = None
    auc: float | None = None
    log_loss: float | None = None
    accuracy: float | None = None
