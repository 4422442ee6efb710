"""How unevenly load lies over replicas."""

from __future__ import annotations

from collections.abc import Sequence

#: From how many times the mean of its role on a replica counts as hot.
HOT_OVER_MEAN = 1.5


def max_over_mean(loads: Sequence[float]) -> float | None:
    """Return the highest load over the mean: 1 is even, the number of replicas means one has it all.

    None when there are fewer than two loads or no load at all.
    """
    total = sum(loads)
    if len(loads) < 2 or total <= 0:
        return None
    return max(loads) * len(loads) / total


def gini(loads: Sequence[float]) -> float | None:
    """Return the Gini coefficient of loads: 0 is even, (n - 1)/n means one replica has it all.

    Source: Gini 1912, in the form over sorted values, 2·Σ i·x_i / (n·Σ x) - (n + 1)/n. None when there are
    fewer than two loads or no load at all.
    """
    total = sum(loads)
    count = len(loads)
    if count < 2 or total <= 0:
        return None
    weighted = sum(rank * load for rank, load in enumerate(sorted(loads), start=1))
    return 2 * weighted / (count * total) - (count + 1) / count
