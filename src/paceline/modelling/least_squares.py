"""Nonlinear least squares of a few parameters by the method of Levenberg and Marquardt.

Source: K. Madsen, H. B. Nielsen, O. Tingleff, "Methods for Non-Linear Least Squares Problems", 2nd edition,
Technical University of Denmark, 2004, algorithm 3.16. The Jacobian is made of forward differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

#: The first damping, as a share of the largest curvature; the step, relative to the parameters, that ends it.
_DAMPING, _LEAST_STEP = 1e-3, 1e-8
_MOST_STEPS = 200

_Floats = npt.NDArray[np.float64]


class LeastSquaresFit(NamedTuple):
    """Parameters with the least sum of squares.

    Attributes:
        parameters: of shape (n,).
        jacobian: the derivatives of the misses there, of shape (m, n).
    """

    parameters: _Floats
    jacobian: _Floats


def fit(misses: Callable[[_Floats], _Floats], start: _Floats, *, difference: float) -> LeastSquaresFit:
    """Return the parameters near ``start`` for which the sum of the squares of the misses is least.

    Args:
        misses: returns m misses for n parameters; m is at least n, and no parameter may be without effect.
        start: the parameters to begin with, of shape (n,).
        difference: how far apart the two points of a forward difference are.

    Raises:
        LinAlgError: a parameter has no effect.
    """
    parameters, missed = start, misses(start)
    jacobian = _jacobian(misses, parameters, missed, difference)
    damping, growth = _DAMPING * float(np.max(np.sum(jacobian**2, axis=0))), 2.0
    for _ in range(_MOST_STEPS):
        gradient = jacobian.T @ missed
        damped = jacobian.T @ jacobian + damping * np.eye(len(parameters))
        step = np.linalg.solve(damped, -gradient)
        if np.linalg.norm(step) <= _LEAST_STEP * (np.linalg.norm(parameters) + _LEAST_STEP):
            break
        tried = misses(parameters + step)
        gain = float(missed @ missed - tried @ tried) / float(step @ (damping * step - gradient))
        if not gain > 0:  # Also if a miss is not a number.
            damping, growth = damping * growth, growth * 2.0
            continue
        parameters, missed = parameters + step, tried
        jacobian = _jacobian(misses, parameters, missed, difference)
        damping, growth = damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 2.0
    return LeastSquaresFit(parameters, jacobian)


def _jacobian(
    misses: Callable[[_Floats], _Floats], parameters: _Floats, missed: _Floats, difference: float
) -> _Floats:
    moved = parameters + difference * np.eye(len(parameters))
    return np.stack([(misses(each) - missed) / difference for each in moved], axis=1)
