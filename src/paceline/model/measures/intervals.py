"""Intervals of time, and the interval in which a run trained."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from paceline.model.instants import UnixSeconds
from paceline.model.measures.samples import Sample, StepReport


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval of time."""

    since: UnixSeconds
    until: UnixSeconds

    @property
    def seconds(self) -> float:
        """Return the length of the interval."""
        return self.until - self.since

    def has(self, item: Sample | StepReport) -> bool:
        """Whether the middle of the interval of a measurement lies within this interval."""
        since, until = stretch(item)
        return self.since <= (since + until) / 2 <= self.until


def training_interval(steps: Iterable[StepReport], samples: Iterable[Sample]) -> Interval | None:
    """Return the time in which steps were made, or else anything was measured; None: neither."""
    # A trainer that stands still reports that it makes no step, also before its first and after its last.
    for items in ([each for each in steps if each.steps != 0], samples):
        stretches = [stretch(item) for item in items]
        if stretches:
            return Interval(
                since=min(since for since, _ in stretches), until=max(until for _, until in stretches)
            )
    return None


def stretch(item: Sample | StepReport) -> tuple[float, float]:
    """Return the start and the end of the interval of a measurement."""
    return item.at - max(0.0, item.interval_seconds or 0.0), item.at


def covered_seconds(stretches: Iterable[tuple[float, float]]) -> float:
    """Return how many seconds intervals cover together; where they overlap, time counts once."""
    total, end = 0.0, -math.inf
    for since, until in sorted(stretches):
        total += max(0.0, until - max(since, end))
        end = max(end, until)
    return total
