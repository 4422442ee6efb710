"""Words for people that several places use."""

from __future__ import annotations

from collections.abc import Iterable

#: So many names are said; of others, how many there are.
SHOWN = 4


def counted(number: int, noun: str) -> str:
    """Return how many there are of something: ``1 cut``, ``3 cuts``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Iterable[object]) -> str:
    """Return some names, and how many more there are."""
    known = [str(name) for name in names]
    more = len(known) - SHOWN
    return ", ".join(known[:SHOWN]) + (f" and {more} more" if more > 0 else "")
