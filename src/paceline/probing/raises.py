"""Predictions of what more of some parts of a job brings, from what less of each part has cost.

The rate of a job is a concave function of the resources of its parts, and at most doubles if all of them are
doubled. So if elasticities add up to more than 1, several parts are at their limit at once, like links of a
chain: less of any of them costs, and more of one alone brings little. Let ``d`` be the elasticities to less.
The elasticity to more of some parts alone is at least 1 minus the sum of ``d`` over all other parts. This is
the sum of ``d`` over these parts, minus the excess of the sum over all parts above 1 (directional derivatives
of concave functions are superadditive: R. T. Rockafellar, "Convex Analysis", 1970, theorem 23.1). It is at
most the sum over these parts. If latency takes a share of the time, doubling everything less than doubles the
rate, and the lower bound is lower.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import Elasticity

#: Knobs of resources that can be raised; the other knobs are numbers of trainers and shares among neighbours.
KNOBS = (Knob.CPU, Knob.LINK)


def excess(ends: Sequence[Elasticity]) -> float:
    """Return by how much the sum of the elasticities to cores and links exceeds 1; 0: it does not."""
    return max(0.0, sum(each.value for each in ends if each.part.knob in KNOBS and each.at_limit) - 1.0)


def times(
    raised: Sequence[Elasticity], ends: Sequence[Elasticity], factor: float
) -> tuple[float, float, float]:
    """Return the predicted speed-up of a job with more of some parts.

    Args:
        raised: the parts that get more, all at once.
        ends: all parts that a probe has cut.
        factor: the factor on their resources, above 1.

    Returns:
        The likeliest value, and its interval of 95 %, provided that nothing binds that was not cut.
    """
    own = [each for each in raised if each.at_limit]
    less = excess(ends)
    value = max(0.0, sum(each.value for each in own) - less)
    low = min(value, sum(each.low for each in own) - less)
    high = max(value, sum(each.high for each in own))
    return factor**value, factor**low, factor**high
