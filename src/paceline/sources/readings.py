"""What a source says of a pod at one time, and the sample that two such readings make.

A source gives counters as they stand, each with the time at which it was read there: CPU, memory and network
of one pod are often some seconds apart, and all of them older than the question. Counts within an interval
are differences of two readings, each over its own time.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import NamedTuple

from paceline.model.roles import ReplicaId
from paceline.model.samples import Sample


class Source(enum.StrEnum):
    """Who measured. The order is that in which they are believed (see `precedences`)."""

    AGENT = "agent"
    CADVISOR = "cadvisor"
    KUBELET = "kubelet"
    DCGM = "dcgm"
    METRICS_SERVER = "metrics-server"
    PROMETHEUS = "prometheus"


class Pod(NamedTuple):
    """Which pod."""

    namespace: str
    name: str


class Figure(NamedTuple):
    """A number, and when (Unix seconds) it was so."""

    value: float
    at: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a source says of the replica in a pod; None: it does not say.

    The container of the replica alone counts, but for the network, which all containers of a pod share.

    Attributes:
        pod: which pod.
        source: who says so.
        cpu_seconds: CPU time since the container began.
        throttled_seconds: time that it was kept from the CPU by its limit, since it began.
        network_received_bytes: since the pod began.
        network_sent_bytes: since the pod began.
        cpu_cores: the mean over the ``window_seconds`` before its time, where a source has no counter.
        window_seconds: see ``cpu_cores``.
        memory_bytes: the working set: what is used, less files that could be dropped.
        threads: how many there are.
        gpu_utilization: 0 to 1, the mean of the pod's GPUs.
        gpu_memory_bytes: of all of the pod's GPUs.
        cpu_limit_cores: the limit, not a measurement: it has no time.
        memory_limit_bytes: likewise.
    """

    pod: Pod
    source: Source
    cpu_seconds: Figure | None = None
    throttled_seconds: Figure | None = None
    network_received_bytes: Figure | None = None
    network_sent_bytes: Figure | None = None
    cpu_cores: Figure | None = None
    window_seconds: float | None = None
    memory_bytes: Figure | None = None
    threads: Figure | None = None
    gpu_utilization: Figure | None = None
    gpu_memory_bytes: Figure | None = None
    cpu_limit_cores: float | None = None
    memory_limit_bytes: float | None = None

    @property
    def at(self) -> float | None:
        """The time of the newest figure; None when there is none."""
        values = (getattr(self, field.name) for field in dataclasses.fields(self))
        return max((value.at for value in values if isinstance(value, Figure)), default=None)


class Answer(NamedTuple):
    """What a source said, and how many parts of it made no sense and were passed over."""

    readings: tuple[Reading, ...]
    broken: int


def figure(value: object, at: float | None) -> Figure | None:
    """Return a figure; None unless it is a finite number that is not negative."""
    if at is None or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return Figure(number, at) if math.isfinite(number) and number >= 0 else None


def sample(before: Reading | None, after: Reading, *, replica: ReplicaId, attempt: int) -> Sample | None:
    """Return what was measured of an attempt between two readings of one source.

    Counts whose own time differs from that between the readings are brought to it, so rates stay what they
    are. A counter that went back began anew (the container was replaced): that interval is not measured.

    Returns:
        The sample; None when the second reading is not newer than the first (sources answer from a cache:
        keep the first one), or when it is the first of counters, which say nothing alone.
    """
    if after.at is None or (before is not None and before.at is not None and after.at <= before.at):
        return None
    interval = after.window_seconds
    if interval is None and before is not None and before.at is not None:
        interval = after.at - before.at
    if interval is None:
        return None

    def rate(name: str) -> float | None:
        old: Figure | None = getattr(before, name, None)
        new: Figure | None = getattr(after, name)
        if old is None or new is None or new.at <= old.at or new.value < old.value:
            return None
        return (new.value - old.value) / (new.at - old.at)

    def count(name: str) -> int | None:
        each = rate(name)
        return None if each is None else round(each * interval)

    cpu_cores, throttled = rate("cpu_seconds"), rate("throttled_seconds")
    return Sample(
        replica=replica,
        attempt=attempt,
        at=after.at,
        interval_seconds=interval,
        cpu_cores=_value(after.cpu_cores) if cpu_cores is None else cpu_cores,
        cpu_limit_cores=after.cpu_limit_cores,
        throttled_seconds=None if throttled is None else throttled * interval,
        memory_bytes=_whole(after.memory_bytes),
        memory_limit_bytes=None if after.memory_limit_bytes is None else int(after.memory_limit_bytes),
        network_received_bytes=count("network_received_bytes"),
        network_sent_bytes=count("network_sent_bytes"),
        threads=_whole(after.threads),
        gpu_utilization=_value(after.gpu_utilization),
        gpu_memory_bytes=_whole(after.gpu_memory_bytes),
    )


def _value(found: Figure | None) -> float | None:
    return None if found is None else found.value


def _whole(found: Figure | None) -> int | None:
    return None if found is None else round(found.value)
