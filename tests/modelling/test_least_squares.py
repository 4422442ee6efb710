"""Least squares: against SciPy's, and where the answer is known."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from scipy import optimize

from paceline.modelling import least_squares

DIFFERENCE = 1e-5
Floats = npt.NDArray[np.float64]


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 6))
def test_a_straight_problem_has_the_solution_of_its_equations(seed: int, count: int) -> None:
    chance = np.random.default_rng(seed)
    matrix = np.vstack([chance.normal(size=(count + 3, count)), np.eye(count)])
    target = chance.normal(size=len(matrix))
    found = least_squares.fit(lambda x: matrix @ x - target, np.zeros(count), difference=DIFFERENCE)
    expected, *_ = np.linalg.lstsq(matrix, target)
    np.testing.assert_allclose(found.parameters, expected, atol=1e-6)
    np.testing.assert_allclose(found.jacobian, matrix, atol=1e-6)


@given(seed=st.integers(0, 2**32 - 1), noise=st.floats(0.0, 0.1))
def test_a_curve_is_fitted_as_scipy_fits_it(seed: int, noise: float) -> None:
    """Sums of logarithms of what costs add up to, and what is assumed of each, as in a calibration."""
    chance = np.random.default_rng(seed)
    uses = chance.uniform(0.0, 3.0, size=(8, 4))
    measured = np.log(uses @ np.exp(chance.normal(size=4))) + noise * chance.normal(size=8)

    def misses(logs: Floats) -> Floats:
        return np.concatenate([(np.log(uses @ np.exp(logs)) - measured) / 0.05, logs / 2.0])

    found = least_squares.fit(misses, np.zeros(4), difference=DIFFERENCE)
    theirs = optimize.least_squares(misses, np.zeros(4), method="lm")
    ours = float(np.sum(misses(found.parameters) ** 2))
    assert ours <= 2 * theirs.cost * (1 + 1e-6) + 1e-9


def test_a_narrow_valley_is_followed_to_its_end() -> None:
    """Rosenbrock's, from where it is usually begun."""
    found = least_squares.fit(
        lambda x: np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]]), np.array([-1.2, 1.0]), difference=DIFFERENCE
    )
    np.testing.assert_allclose(found.parameters, [1.0, 1.0], atol=1e-4)


def test_misses_that_are_no_numbers_are_stepped_back_from() -> None:
    found = least_squares.fit(
        lambda x: np.array([np.log(x[0]) if x[0] > 0 else np.nan]), np.array([5.0]), difference=DIFFERENCE
    )
    assert found.parameters[0] == pytest.approx(1.0, abs=1e-4)


def test_a_parameter_without_effect_is_an_error() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        least_squares.fit(lambda x: np.zeros(2) * x, np.zeros(2), difference=DIFFERENCE)
