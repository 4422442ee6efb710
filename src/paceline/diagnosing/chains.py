"""Which cause follows from which: what is told first, and what belongs to it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence

from paceline.model.explanations.causes import Cause
from paceline.model.explanations.findings import Severity


def chained(
    found: Sequence[Cause], explains: Mapping[str, Sequence[str]], sparing: Collection[str] = ()
) -> tuple[Cause, ...]:
    """Return the causes that follow from no other, what matters most first, each with its effects.

    Args:
        found: all causes.
        explains: by name of a cause the names of what follows from it, nearest first.
        sparing: names of causes that make no job slower.
    """
    ordered = sorted(found, key=lambda cause: _weight(cause, sparing))
    roots = [each for each in ordered if not _explained(each, ordered, explains)]
    left = [each for each in ordered if not any(each is root for root in roots)]
    made = []
    for root in roots:
        effects = [root]
        for cause in effects:  # which grows meanwhile: effects have effects
            own = [each for each in left if _follows(each, cause, explains)]
            names = explains.get(cause.name, ())
            effects += sorted(own, key=lambda each: names.index(each.name))
            left = [each for each in left if not any(each is effect for effect in own)]
        made.append(dataclasses.replace(root, effects=tuple(effects[1:])))
    return tuple(made)


def _weight(cause: Cause, sparing: Collection[str]) -> tuple[bool, int, bool, float]:
    gain = math.sqrt(cause.gain.low * cause.gain.high) if cause.gain else 1.0
    return cause.is_past, -cause.severity.rank, cause.name in sparing, -gain


def _explained(cause: Cause, others: Sequence[Cause], explains: Mapping[str, Sequence[str]]) -> bool:
    return any(_follows(cause, other, explains) for other in others)


def _follows(effect: Cause, cause: Cause, explains: Mapping[str, Sequence[str]]) -> bool:
    """Whether one is an effect of the other: by their kinds, and about the same replicas where both say.

    What is only remarked has no effect that is worse.
    """
    if effect is cause or effect.name not in explains.get(cause.name, ()):
        return False
    if cause.severity is Severity.INFO and effect.severity is not Severity.INFO:
        return False
    shared = not effect.subjects or not cause.subjects or bool(set(effect.subjects) & set(cause.subjects))
    return shared
