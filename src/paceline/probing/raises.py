"""What more of some parts of a job brings, from what less of each has cost.

The rate of a job is a concave function of what its parts have, and no more than twice as high with twice of
all. So where elasticities add up to more than 1, several parts are at their limit at once, as links of a
chain: less of either costs, and more of one alone brings little. With ``d`` for the elasticities to less, the
one to more of some parts alone is at least 1 without the sum of ``d`` over all others, which is the sum of
``d`` over these parts without what all of them have above 1 (directional derivatives of concave functions are
superadditive: R. T. Rockafellar, "Convex Analysis", 1970, theorem 23.1). It is at most the sum over these
parts. Where latency takes a share of the time, less than twice comes of twice of all, and the least is less.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import Elasticity

#: What of a job can be raised; others are numbers of trainers and shares among neighbours.
KNOBS = (Knob.CPU, Knob.LINK)


def excess(ends: Sequence[Elasticity]) -> float:
    """Return by how much the elasticities to cores and links add up to more than 1; 0: they do not."""
    return max(0.0, sum(each.value for each in ends if each.part.knob in KNOBS and each.at_limit) - 1.0)


def times(
    raised: Sequence[Elasticity], ends: Sequence[Elasticity], factor: float
) -> tuple[float, float, float]:
    """Return how many times as fast a job is foretold to be with more of some parts.

    Args:
        raised: the parts that get more, all at once.
        ends: all parts that a probe has cut.
        factor: how many times as much they get, above 1.

    Returns:
        What is likeliest; and between which it lies with 95 %, as long as nothing that was not cut binds.
    """
    own = [each for each in raised if each.at_limit]
    less = excess(ends)
    value = max(0.0, sum(each.value for each in own) - less)
    low = min(value, sum(each.low for each in own) - less)
    high = max(value, sum(each.high for each in own))
    return factor**value, factor**low, factor**high
