"""Readings of a pod from outside, and the sample that results from two successive readings.

cAdvisor reports the values of counters, each with the time at which it was read: the CPU, memory and network
of a pod are often some seconds apart, and all are older than the request. Counts within an interval are the
differences of two readings, each over its own time.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from paceline.model import outside
from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId


class Pod(NamedTuple):
    """The namespace and name of a pod."""

    namespace: str
    name: str


class TimedFigure(NamedTuple):
    """A number, and the time at which it was measured (Unix seconds)."""

    value: float
    at: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodReading:
    """What was measured of the replica in a pod; a value of None was not reported.

    Only the container of the replica counts, except for the network, which all containers of a pod share.

    Attributes:
        cpu_seconds: CPU time since the container began.
        throttled_seconds: time that the container was throttled by its CPU limit, since it began.
        network_received_bytes: bytes received since the pod began.
        network_sent_bytes: bytes sent since the pod began.
        memory_bytes: the working set: the used memory without files that could be dropped.
        threads: the number of threads.
        cpu_limit_cores: the CPU limit; it is no measurement and has no time.
        memory_limit_bytes: the memory limit, likewise.
        gpu_utilization: the mean utilization of the pod's GPUs, 0 to 1.
        gpu_memory_bytes: the used memory of all of the pod's GPUs.
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
        """The time of the newest figure; None: there is no figure.

        GPUs are measured at each request, whether or not cAdvisor has new measurements. So the time of the
        GPUs counts only if there is nothing else.
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
    """Return a figure; None unless the value is a number in the valid range."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return TimedFigure(number, at) if 0 <= number < outside.MOST else None


def sample(before: PodReading, after: PodReading, *, replica: ReplicaId, attempt: int) -> Sample | None:
    """Return what was measured of an attempt between two readings.

    Counts over another time than the interval between the readings are scaled to the interval, so that their
    rates stay the same. A counter that decreased was reset (the container was replaced): its interval is not
    measured.

    Returns:
        The sample; None if the second reading is not newer than the first. Then cAdvisor has answered from
        its cache, and the caller keeps the first reading.
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
