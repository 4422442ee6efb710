"""Slopes that odd measurements do not change."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.trends import LEAST_POINTS, thinned, trend

_FLOATS = st.floats(-1e12, 1e12)


def test_a_line_has_its_slope() -> None:
    found = trend([(float(at), 3.0 * at + 7) for at in range(20)])
    assert found is not None
    assert found == pytest.approx((3.0, 3.0, 3.0))


def test_odd_measurements_hardly_change_it() -> None:
    points = [(float(at), 3.0 * at) for at in range(40)]
    points[5], points[20] = (5.0, 1e6), (20.0, -1e6)
    found = trend(points)
    assert found is not None
    assert found.slope == pytest.approx(3.0)


def test_the_interval_tells_noise_from_growth() -> None:
    chance = random.Random(7)
    noise = trend([(float(at), chance.gauss(0, 1)) for at in range(40)])
    growth = trend([(float(at), 0.2 * at + chance.gauss(0, 1)) for at in range(40)])
    assert noise is not None
    assert noise.low < 0 < noise.high
    assert growth is not None
    assert 0.1 < growth.low < 0.2 < growth.high < 0.3


def test_few_points_or_no_time_say_nothing() -> None:
    assert trend([(float(at), 1.0 * at) for at in range(LEAST_POINTS - 1)]) is None
    assert trend([(5.0, 1.0)] * 20) is None
    assert trend([]) is None


def test_thinning_takes_medians_of_equal_parts() -> None:
    assert thinned([(float(at), at % 3 * 1.0) for at in range(9)], 3) == [(1, 1), (4, 1), (7, 1)]
    assert thinned([(0.0, 1.0)], 10) == [(0.0, 1.0)]
    assert thinned([], 10) == []


@given(points=st.lists(st.tuples(_FLOATS, _FLOATS), max_size=30), most=st.integers(1, 40))
def test_whatever_is_measured_the_slope_lies_in_its_interval(
    points: list[tuple[float, float]], most: int
) -> None:
    kept = thinned(sorted(points), most)
    assert len(kept) == min(most, len(points))
    found = trend(kept)
    assert found is None or found.low <= found.slope <= found.high
