"""Tracks the findings of a running job: which ones appeared, which ones are over.

Measurements are noisy: a finding counts once it was present in two looks in a row, and is over once it was
absent in three. A look that could not judge a finding counts as neither. A finding that turns out to be the
effect of another one is still present, and is not reported again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.explanations.findings import Severity

#: How many looks in a row must have a finding before it is reported.
TO_APPEAR = 2
#: How many looks in a row must be without a finding before it is over.
TO_GO = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FindingChange:
    """A finding that appeared, or is over; in the latter case, ``cause`` is as it was last seen."""

    cause: Cause
    is_over: bool


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)
class _Known:
    """A finding that is present, or was recently."""

    cause: Cause
    seen: int = 0
    missed: int = 0
    is_told: bool = False

    def is_about(self, cause: Cause) -> bool:
        """Return whether a cause is this finding: the same kind and, if both have subjects, a common one."""
        mine, other = set(self.cause.subjects), set(cause.subjects)
        return self.cause.name == cause.name and (not mine or not other or bool(mine & other))


class FindingDebounce:
    """Takes one explanation after the other, and returns what changed.

    Args:
        least: milder findings are not reported.
        to_appear: how many looks in a row must have a finding before it is reported.
    """

    def __init__(self, least: Severity = Severity.WARNING, *, to_appear: int = TO_APPEAR) -> None:
        self._least = least
        self._to_appear = to_appear
        self._known: list[_Known] = []

    @property
    def awaits_confirmation(self) -> bool:
        """Whether the last look had a finding that has to be there once more before it is reported."""
        return any(known.seen and not known.is_told for known in self._known)

    def look(self, found: Explanation, *, unjudged: Collection[str] = ()) -> tuple[FindingChange, ...]:
        """Return what changed: findings that appeared, the primary one first, then findings that are over.

        Args:
            found: the present explanation.
            unjudged: names of causes that could not be judged now.
        """
        there: list[_Known] = []
        appeared = []
        for cause in found.causes:
            if self._counts(cause):
                known = self._noted(cause, there)
                if not known.is_told and known.seen >= self._to_appear:
                    known.is_told = True
                    appeared.append(FindingChange(cause=cause, is_over=False))
        for cause in _effects(found.causes):
            # An effect of another finding is not reported. A finding reported before is not over, though.
            for known in self._known:
                if known.is_told and known not in there and known.is_about(cause):
                    known.missed = 0
                    there.append(known)
        return (*appeared, *self._gone(there, unjudged))

    def _counts(self, cause: Cause) -> bool:
        return not cause.is_past and cause.severity.rank >= self._least.rank

    def _noted(self, cause: Cause, there: list[_Known]) -> _Known:
        """Count a cause towards the finding that it belongs to, or towards a new one."""
        free = (each for each in self._known if each not in there and each.is_about(cause))
        known = next(free, None)
        if known is None:
            known = _Known(cause=cause)
            self._known.append(known)
        known.cause, known.seen, known.missed = cause, known.seen + 1, 0
        there.append(known)
        return known

    def _gone(self, there: Sequence[_Known], unjudged: Collection[str]) -> tuple[FindingChange, ...]:
        over, kept = [], []
        for known in self._known:
            if known not in there and known.cause.name not in unjudged:
                known.seen, known.missed = 0, known.missed + 1
            if known.is_told and known.missed >= TO_GO:
                over.append(FindingChange(cause=known.cause, is_over=True))
            elif known.is_told or not known.missed:
                kept.append(known)
        self._known = kept
        return tuple(over)


def _effects(causes: Sequence[Cause]) -> list[Cause]:
    return [each for cause in causes for effect in cause.effects for each in (effect, *_effects([effect]))]
