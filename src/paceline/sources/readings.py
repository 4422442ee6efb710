"""What is read of a pod from outside at one time, and the sample that two such readings make.

cAdvisor gives counters as they stand, each with the time at which it was read there: CPU, memory and network
of one pod are often some seconds apart, and all of them are older than the question. Counts within an
interval are differences of two readings, each over its own time.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from paceline.model import outside
from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId


class Pod(NamedTuple):
    """Which pod."""

    namespace: str
    name: str


class TimedFigure(NamedTuple):
    """A number, and when (Unix seconds) it was so."""

    value: float
    at: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodReading:
    """What is said of the replica in a pod; None: it is not said.

    The container of the replica alone counts, but for the network, which all containers of a pod share.

    Attributes:
        cpu_seconds: CPU time since the container began.
        throttled_seconds: time that it was kept from the CPU by its limit, since it began.
        network_received_bytes: since the pod began.
        network_sent_bytes: since the pod began.
        memory_bytes: the working set: what is used, less files that could be dropped.
        threads: how many there are.
        cpu_limit_cores: the limit, not a measurement: it has no time.
        memory_limit_bytes: likewise.
        gpu_utilization: 0 to 1, the mean of the pod's GPUs.
        gpu_memory_bytes: of all of the pod's GPUs.
    """

    cpu_seconds: TimedFigure | None = None
    throttled_seconds: TimedFigure | None = None
    network_received_bytes: TimedFigure | None = None
    network_sent_bytes: TimedFigure | None = None
    memory_bytes: TimedFigure | None = None
    threads: TimedFigure | None = None
    cpu_limit_cores: float | None = None
    memory_limit_bytes: float | None = None
    gpu_utilization: TimedFigure | None = None
    gpu_memory_bytes: TimedFigure | None = None

    @property
    def at(self) -> float | None:
        """The time of the newest figure; None when there is none.

        GPUs are measured when they are asked for, whether or not cAdvisor has looked again meanwhile. So
        their time counts only where there is nothing else.
        """
        of_container = (
            self.cpu_seconds, self.throttled_seconds, self.network_received_bytes, self.network_sent_bytes,
            self.memory_bytes, self.threads,
        )  # fmt: skip
        for figures in (of_container, (self.gpu_utilization, self.gpu_memory_bytes)):
            times = [figure.at for figure in figures if figure is not None]
            if times:
                return max(times)
        return None


def figure(value: object, at: float) -> TimedFigure | None:
    """Return a figure; None unless it is a number that can be meant."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return TimedFigure(number, at) if 0 <= number < outside.MOST else None


def sample(before: PodReading, after: PodReading, *, replica: ReplicaId, attempt: int) -> Sample | None:
    """Return what was measured of an attempt between two readings.

    Counts whose own time differs from that between the readings are brought to it, so rates stay what they
    are. A counter that went back began anew (the container was replaced): that interval is not measured.

    Returns:
        The sample; None when the second reading is not newer than the first: cAdvisor answers from a cache,
        so keep the first one.
    """
    if before.at is None or after.at is None or after.at <= before.at:
        return None
    interval = after.at - before.at

    def rate(old: TimedFigure | None, new: TimedFigure | None) -> float | None:
        if old is None or new is None or new.at <= old.at or new.value < old.value:
            return None
        return (new.value - old.value) / (new.at - old.at)

    def count(old: TimedFigure | None, new: TimedFigure | None) -> int | None:
        per_second = rate(old, new)
        return None if per_second is None else round(per_second * interval)

    throttled = rate(before.throttled_seconds, after.throttled_seconds)
    return Sample(
        replica=replica,
        attempt=attempt,
        at=after.at,
        interval_seconds=interval,
        cpu_cores=rate(before.cpu_seconds, after.cpu_seconds),
        cpu_limit_cores=after.cpu_limit_cores,
        throttled_seconds=None if throttled is None else throttled * interval,
        memory_bytes=_whole(after.memory_bytes),
        memory_limit_bytes=None if after.memory_limit_bytes is None else int(after.memory_limit_bytes),
        network_received_bytes=count(before.network_received_bytes, after.network_received_bytes),
        network_sent_bytes=count(before.network_sent_bytes, after.network_sent_bytes),
        threads=_whole(after.threads),
        gpu_utilization=None if after.gpu_utilization is None else after.gpu_utilization.value,
        gpu_memory_bytes=_whole(after.gpu_memory_bytes),
    )


def _whole(figure: TimedFigure | None) -> int | None:
    return None if figure is None else round(figure.value)
