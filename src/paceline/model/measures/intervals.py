"""Stretches of time, and the one in which a run trained."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample, StepReport


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A stretch of time in Unix seconds."""

    since: float
    until: float

    @property
    def seconds(self) -> float:
        """Return how long it is."""
        return self.until - self.since

    def has(self, item: Sample | StepReport) -> bool:
        """Whether the middle of what a measurement is about lies within."""
        since, until = stretch(item)
        return self.since <= (since + until) / 2 <= self.until


def training_interval(recording: Recording) -> Interval | None:
    """Return the time in which steps were made, or else in which anything was measured; None for neither."""
    for items in (recording.steps, recording.samples):
        stretches = [stretch(item) for item in items]
        if stretches:
            return Interval(
                since=min(since for since, _ in stretches), until=max(until for _, until in stretches)
            )
    return None


def stretch(item: Sample | StepReport) -> tuple[float, float]:
    """Return from when until when a measurement reaches."""
    return item.at - max(0.0, item.interval_seconds or 0.0), item.at


def covered_seconds(stretches: Iterable[tuple[float, float]]) -> float:
    """Return how much time stretches cover together; what two of them cover counts once."""
    total, end = 0.0, -math.inf
    for since, until in sorted(stretches):
        total += max(0.0, until - max(since, end))
        end = max(end, until)
    return total
