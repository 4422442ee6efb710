"""Two readings make a sample: counts from differences, each over its own time."""

from __future__ import annotations

import dataclasses

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.recorded import PS_0

from paceline.model.measures import rates
from paceline.model.measures.samples import Sample
from paceline.sources import readings
from paceline.sources.readings import PodReading, TimedFigure, figure


def sample(before: PodReading, after: PodReading) -> Sample | None:
    return readings.sample(before, after, replica=PS_0, attempt=3)


def test_counts_are_differences_and_gauges_the_last_value() -> None:
    before = PodReading(
        cpu_seconds=TimedFigure(10.0, 100.0),
        network_sent_bytes=TimedFigure(1000, 100.0),
        memory_bytes=TimedFigure(5, 100.0),
    )
    after = PodReading(
        cpu_seconds=TimedFigure(15.0, 110.0),
        throttled_seconds=TimedFigure(3.0, 110.0),
        network_sent_bytes=TimedFigure(3000, 110.0),
        memory_bytes=TimedFigure(7, 110.0),
        cpu_limit_cores=0.5,
        memory_limit_bytes=64.0,
    )
    found = sample(before, after)
    assert found == Sample(
        replica=PS_0,
        attempt=3,
        at=110.0,
        interval_seconds=10.0,
        cpu_cores=0.5,
        cpu_limit_cores=0.5,
        network_sent_bytes=2000,
        memory_bytes=7,
        memory_limit_bytes=64,
    )
    assert found.throttled_seconds is None, "one reading of a counter says nothing"


def test_what_was_read_at_other_times_keeps_its_rate() -> None:
    before = PodReading(cpu_seconds=TimedFigure(0.0, 100.0), network_received_bytes=TimedFigure(0, 95.0))
    after = PodReading(cpu_seconds=TimedFigure(20.0, 120.0), network_received_bytes=TimedFigure(3000, 110.0))
    found = sample(before, after)
    assert found is not None
    assert (found.at, found.interval_seconds, found.cpu_cores) == (120.0, 20.0, 1.0)
    assert rates.rate([found], lambda each: each.network_received_bytes) == 3000 / 15


def test_a_counter_that_went_back_is_not_measured() -> None:
    before = PodReading(cpu_seconds=TimedFigure(50.0, 100.0), network_sent_bytes=TimedFigure(10, 100.0))
    after = PodReading(cpu_seconds=TimedFigure(1.0, 110.0), network_sent_bytes=TimedFigure(30, 110.0))
    found = sample(before, after)
    assert found is not None
    assert (found.cpu_cores, found.network_sent_bytes) == (None, 20)


def test_an_answer_from_the_cache_is_no_sample() -> None:
    before = PodReading(cpu_seconds=TimedFigure(50.0, 100.0))
    assert sample(before, before) is None
    assert sample(before, PodReading(cpu_seconds=TimedFigure(40.0, 90.0))) is None


def test_gpus_that_are_read_later_make_no_sample_of_a_cached_answer() -> None:
    before = PodReading(cpu_seconds=TimedFigure(50.0, 100.0), gpu_utilization=TimedFigure(0.5, 108.0))
    assert sample(before, dataclasses.replace(before, gpu_utilization=TimedFigure(0.9, 123.0))) is None


def test_gpus_alone_are_measured() -> None:
    before = PodReading(gpu_utilization=TimedFigure(0.5, 100.0))
    after = PodReading(gpu_utilization=TimedFigure(0.25, 115.0), gpu_memory_bytes=TimedFigure(7.0, 115.0))
    found = sample(before, after)
    assert found is not None
    assert (found.at, found.interval_seconds, found.cpu_cores) == (115.0, 15.0, None)
    assert (found.gpu_utilization, found.gpu_memory_bytes) == (0.25, 7)


def test_a_reading_of_nothing_is_no_sample() -> None:
    assert sample(PodReading(), PodReading()) is None
    assert sample(PodReading(), PodReading(cpu_seconds=TimedFigure(1.0, 1.0))) is None


@pytest.mark.parametrize(
    "value", [None, "1", True, float("nan"), float("inf"), -1, -0.5, 10**400, [1]], ids=lambda v: str(v)[:8]
)
def test_only_numbers_that_can_be_are_figures(value: object) -> None:
    assert figure(value, 1.0) is None


_FIGURES = st.none() | st.builds(TimedFigure, st.floats(0, 1e15), st.floats(0, 4e9))
_COUNTERS = ("cpu_seconds", "throttled_seconds", "network_received_bytes", "network_sent_bytes")
_READINGS = st.builds(PodReading, **dict.fromkeys((*_COUNTERS, "memory_bytes", "gpu_utilization"), _FIGURES))


@given(_READINGS, _READINGS)
def test_samples_are_never_negative_and_newer(before: PodReading, after: PodReading) -> None:
    found = sample(before, after)
    if found is None:
        return
    assert found.interval_seconds > 0
    assert before.at is not None
    assert found.at > before.at
    values = dataclasses.asdict(found)
    del values["replica"]
    assert all(value is None or value >= 0 for value in values.values())
