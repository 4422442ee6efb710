"""The places of features side by side in an example: of their ids, and of their vectors in an embedding.

A feature has one id and one vector. A feature that takes several values (`features.Several`) has a place for
each of its ids, and as many vectors unless a combiner combines them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from paceline.training import features


def ids(feature: features.Categorical) -> int:
    """Return how many columns of `Examples.ids` a feature takes."""
    return feature.length if isinstance(feature, features.Several) else 1


def vectors(feature: features.Categorical) -> int:
    """Return how many vectors a feature has in an embedding."""
    return ids(feature) if combiner(feature) is None else 1


def combiner(feature: features.Categorical) -> features.Combiner | None:
    """Return how the vectors of a feature are combined; None if each vector stays by itself."""
    return feature.combiner if isinstance(feature, features.Several) else None


def width(known: Iterable[features.Categorical], size: Callable[[features.Categorical], int]) -> int:
    """Return how many places all features take together; `size` (`ids` or `vectors`) counts those of one."""
    return sum(map(size, known))


def find(
    wanted: Iterable[features.Categorical],
    known: Sequence[features.Categorical],
    size: Callable[[features.Categorical], int],
) -> list[int]:
    """Return the places of the wanted features among the places of all known features."""
    starts = list(itertools.accumulate(map(size, known), initial=0))
    firsts = [(starts[known.index(each)], size(each)) for each in wanted]
    return [first + i for first, count in firsts for i in range(count)]
