"""Where the features of an example lie side by side: its ids, and its vectors in an embedding.

A feature has one id and one vector. One that takes several values (`features.Several`) has a place for each
of its ids, and as many vectors if no combiner puts these together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from paceline.training import features


def ids(feature: features.Categorical) -> int:
    """How many columns of `Examples.ids` a feature takes."""
    return feature.length if isinstance(feature, features.Several) else 1


def vectors(feature: features.Categorical) -> int:
    """How many vectors a feature has in an embedding."""
    return ids(feature) if combiner(feature) is None else 1


def combiner(feature: features.Categorical) -> features.Combiner | None:
    """How the vectors of a feature are put together; None where each is left as it is."""
    return feature.combiner if isinstance(feature, features.Several) else None


def width(known: Iterable[features.Categorical], size: Callable[[features.Categorical], int]) -> int:
    """How many places all features take, each as many as `size` (`ids` or `vectors`) says."""
    return sum(map(size, known))


def find(
    wanted: Iterable[features.Categorical],
    known: Sequence[features.Categorical],
    size: Callable[[features.Categorical], int],
) -> list[int]:
    """The places of the features wanted among all those of the features known."""
    starts = list(itertools.accumulate(map(size, known), initial=0))
    firsts = [(starts[known.index(each)], size(each)) for each in wanted]
    return [first + i for first, count in firsts for i in range(count)]
