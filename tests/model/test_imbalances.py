import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.model import imbalances

LOADS = st.lists(st.floats(0, 1e9, allow_subnormal=False), min_size=2, max_size=20).filter(
    lambda loads: sum(loads) > 1e-3
)


def test_even_loads() -> None:
    assert imbalances.max_over_mean([3, 3, 3]) == 1
    assert imbalances.gini([3, 3, 3]) == pytest.approx(0)


def test_one_has_it_all() -> None:
    assert imbalances.max_over_mean([0, 0, 0, 0, 7]) == 5
    assert imbalances.gini([0, 0, 0, 0, 7]) == pytest.approx(4 / 5)


@given(st.lists(st.floats(0, allow_infinity=False), min_size=2, max_size=20).filter(any))
@example([0.0, sys.float_info.max])
@example([sys.float_info.max] * 3)
@example([0.0, 5e-324])
def test_loads_of_any_size_stay_within_bounds(loads: list[float]) -> None:
    ratio, gini = imbalances.max_over_mean(loads), imbalances.gini(loads)
    assert ratio is not None
    assert gini is not None
    assert 1 - 1e-9 <= ratio <= len(loads) + 1e-9
    assert -1e-9 <= gini <= (len(loads) - 1) / len(loads) + 1e-9


@pytest.mark.parametrize("loads", [[], [1.0], [0.0, 0.0]])
def test_nothing_to_compare(loads: list[float]) -> None:
    assert imbalances.max_over_mean(loads) is None
    assert imbalances.gini(loads) is None


@settings(max_examples=examples(200))
@given(LOADS, st.floats(0.1, 1000))
def test_bounds_and_scale(loads: list[float], factor: float) -> None:
    ratio, gini = imbalances.max_over_mean(loads), imbalances.gini(loads)
    assert ratio is not None
    assert gini is not None
    assert 1 - 1e-9 <= ratio <= len(loads) + 1e-9
    assert -1e-9 <= gini <= (len(loads) - 1) / len(loads) + 1e-9
    scaled = [load * factor for load in loads]
    assert imbalances.max_over_mean(scaled) == pytest.approx(ratio)
    assert imbalances.gini(scaled) == pytest.approx(gini, abs=1e-6)
    assert imbalances.gini(loads[::-1]) == pytest.approx(gini, abs=1e-9)


@settings(max_examples=examples(100))
@given(LOADS)
def test_gini_agrees_with_its_definition(loads: list[float]) -> None:
    mean = sum(loads) / len(loads)
    expected = sum(abs(a - b) for a in loads for b in loads) / (2 * len(loads) ** 2 * mean)
    assert imbalances.gini(loads) == pytest.approx(expected, abs=1e-6)
