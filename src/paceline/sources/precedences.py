"""Which of several sources is believed: one sample of what all of them say of an attempt at a time.

The agent looks each second and into the container itself; cAdvisor and the kubelet look from outside, each 10
to 15 seconds; metrics-server knows a mean of what the kubelet says; a Prometheus has any of it, later. DCGM
and an agent that has ``nvidia-smi`` say the same of GPUs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from paceline.model.samples import Sample
from paceline.sources.readings import Source

#: What was measured so much earlier than the newest is of another moment.
MOMENT_SECONDS = 60.0
#: Counts within the interval, in contrast to means and states.
_COUNTS = frozenset(
    (
        "throttled_seconds", "network_received_bytes", "network_sent_bytes",
        "voluntary_switches", "involuntary_switches", "sent_segments", "retransmitted_segments",
        "run_delay_seconds",
    )
)  # fmt: skip
_OWNER = frozenset(("replica", "attempt", "at", "interval_seconds"))


class Origin(NamedTuple):
    """Where a figure comes from, and when (Unix seconds) it was measured."""

    source: Source
    at: float


class Joined(NamedTuple):
    """A sample, and the origin of each of its figures that was measured, by the name of the field."""

    sample: Sample
    origins: Mapping[str, Origin]


def joined(samples: Mapping[Source, Sample]) -> Joined | None:
    """Return the sample of one attempt out of those of several sources.

    Each figure is that of the most believed source which has it, among those of this moment. The sample's
    time and interval are those of the most believed source; counts over another interval are brought to it.

    Args:
        samples: the last sample of each source, all of the same attempt.

    Returns:
        The sample; None when there is none.
    """
    if not samples:
        return None
    newest = max(each.at for each in samples.values())
    present = [
        (source, samples[source])
        for source in Source
        if source in samples and newest - samples[source].at <= MOMENT_SECONDS
    ]
    first = present[0][1]
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for field in dataclasses.fields(Sample):
        for source, sample in present:
            value = getattr(sample, field.name)
            if field.name in _OWNER or value is None:
                continue
            if field.name in _COUNTS and sample.interval_seconds != first.interval_seconds:
                scaled = value * first.interval_seconds / sample.interval_seconds
                value = round(scaled) if isinstance(value, int) else scaled
            values[field.name] = value
            origins[field.name] = Origin(source, sample.at)
            break
    return Joined(dataclasses.replace(first, **values), origins)
