"""Chains of causes: which cause follows from which, and in which order causes are shown."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence

from paceline.model.explanations.causes import Cause
from paceline.model.explanations.findings import Severity


def chained(
    found: Sequence[Cause], explains: Mapping[str, Sequence[str]], sparing: Collection[str] = ()
) -> tuple[Cause, ...]:
    """Return the causes that follow from no other cause, the most important first, each with its effects.

    Args:
        found: all causes.
        explains: maps the name of a cause to the names of the causes that follow from it, nearest first.
        sparing: names of causes that make no job slower.
    """
    ordered = sorted(found, key=lambda cause: _weight(cause, sparing))
    roots = [each for each in ordered if not _explained(each, ordered, explains)]
    left = [each for each in ordered if not any(each is root for root in roots)]
    made = []
    for root in roots:
        effects = [root]
        for cause in effects:  # The list grows while it is iterated over: effects have effects of their own.
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
    """Whether one cause is an effect of another.

    The kind of the cause has to explain the kind of the effect. If both name subjects, they share at least
    one. A cause of severity INFO has no effect of a higher severity.
    """
    if effect is cause or effect.name not in explains.get(cause.name, ()):
        return False
    if cause.severity is Severity.INFO and effect.severity is not Severity.INFO:
        return False
    shared = not effect.subjects or not cause.subjects or bool(set(effect.subjects) & set(cause.subjects))
    return shared
