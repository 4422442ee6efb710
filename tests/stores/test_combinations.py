"""Fewer, longer intervals: what was measured is all in them, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.stores import combinations


def combined(every: float, **columns: list[Any]) -> dict[str, list[Any]]:
    return {name: list(each) for name, each in combinations.combined(columns, every).items()}


def test_counts_are_added_means_weighted_and_of_states_the_last_is_kept() -> None:
    found = combined(
        10.0,
        at=[101.0, 104.0, 110.0, 111.0],
        interval_seconds=[1.0, 3.0, 6.0, 1.0],
        cpu_cores=[1.0, 2.0, 3.0, 7.0],
        network_sent_bytes=[5, 6, 7, 8],
        throttled_seconds=[0.5, 0.0, 0.25, 0.0],
        memory_bytes=[10, 30, 20, 40],
    )
    assert found == {
        "at": [110.0, 111.0],
        "interval_seconds": [10.0, 1.0],
        "cpu_cores": [2.5, 7.0],
        "network_sent_bytes": [18, 8],
        "throttled_seconds": [0.75, 0.0],
        "memory_bytes": [20, 40],
    }


def test_what_was_measured_in_a_part_of_the_time_keeps_its_rate() -> None:
    found = combined(
        10.0,
        at=[1.0, 2.0, 3.0, 4.0],
        interval_seconds=[1.0, 1.0, 1.0, 1.0],
        voluntary_switches=[None, 100, None, 300],
        cpu_cores=[None, 1.0, 3.0, None],
        gpu_memory_bytes=[5, None, 7, None],
        sent_segments=[None, None, None, None],
    )
    assert found["voluntary_switches"] == [800]
    assert found["cpu_cores"] == [2.0]
    assert found["gpu_memory_bytes"] == [7]
    assert found["sent_segments"] == [None]


def test_reports_of_unknown_intervals_stand_apart() -> None:
    found = combined(
        10.0, at=[1.0, 2.0, 3.0], interval_seconds=[None, 1.0, 1.0], steps=[5, 6, 7], step=[5, 11, None]
    )
    assert found == {
        "at": [1.0, 3.0],
        "interval_seconds": [None, 2.0],
        "steps": [5, 13],
        "step": [5, 11],
    }
    assert combined(10.0, at=[1.0, 2.0], steps=[1, None])["steps"] == [1]


def test_intervals_of_no_length_divide_nothing() -> None:
    found = combined(9.0, at=[1.0, 2.0], interval_seconds=[0.0, 0.0], cpu_cores=[1.0, 3.0], steps=[None, 4])
    assert (found["cpu_cores"], found["steps"]) == ([3.0], [4])


counts = st.none() | st.integers(0, 10**12)


@given(
    rows=st.lists(
        st.tuples(st.floats(0, 1e5), st.floats(0.01, 5), counts, st.none() | st.floats(0, 64)), min_size=1
    ),
    every=st.floats(0.01, 1000),
)
def test_nothing_is_added_and_nothing_lost(rows: list[tuple[Any, ...]], every: float) -> None:
    rows.sort(key=lambda row: row[0])
    at, seconds, sent, cores = (list(each) for each in zip(*rows, strict=True))
    found = combined(every, at=at, interval_seconds=seconds, network_sent_bytes=sent, cpu_cores=cores)
    assert found["at"] == sorted(found["at"])
    assert set(found["at"]) <= set(at)
    assert all(b - a > 0 for a, b in zip(found["at"], found["at"][1:], strict=False))
    assert math.fsum(found["interval_seconds"]) == pytest.approx(math.fsum(seconds))
    if None not in sent:
        assert sum(found["network_sent_bytes"]) == sum(sent)
    assert (set(sent) <= {None}) == (set(found["network_sent_bytes"]) <= {None})
    measured = [each for each in cores if each is not None]
    for each in found["cpu_cores"]:
        assert each is None or min(measured) - 1e-9 <= each <= max(measured) + 1e-9
