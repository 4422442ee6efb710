"""Measures of how unevenly load is distributed over replicas."""

from __future__ import annotations

from collections.abc import Sequence

#: A replica with at least this many times the mean load of its role counts as hot.
HOT_OVER_MEAN = 1.5


def max_over_mean(loads: Sequence[float]) -> float | None:
    """Return the highest load over the mean: 1 is even, n means that one of n replicas has all of it.

    None when there are fewer than two loads or no load at all.
    """
    shares = _shares(loads)
    return len(shares) / sum(shares) if shares else None


def gini(loads: Sequence[float]) -> float | None:
    """Return the Gini coefficient of loads: 0 is even, (n - 1)/n means one replica has it all.

    Source: Gini 1912, in the form over sorted values, 2·Σ i·x_i / (n·Σ x) - (n + 1)/n. None when there are
    fewer than two loads or no load at all.
    """
    shares = _shares(loads)
    if not shares:
        return None
    count = len(shares)
    weighted = sum(rank * share for rank, share in enumerate(shares, start=1))
    return 2 * weighted / (count * sum(shares)) - (count + 1) / count


def _shares(loads: Sequence[float]) -> list[float]:
    """Return loads divided by the highest, sorted, so that no sum overflows; empty: nothing to compare."""
    highest = max(loads, default=0.0)
    return [load / highest for load in sorted(loads)] if len(loads) > 1 and highest > 0 else []
