"""Phrases for users that several modules share."""

from __future__ import annotations

from collections.abc import Iterable

#: The number of names that a list shows; the others are counted.
SHOWN = 4


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 cut``, ``3 cuts``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Iterable[object]) -> str:
    """Return the first names, and how many more there are."""
    known = [str(name) for name in names]
    more = len(known) - SHOWN
    return ", ".join(known[:SHOWN]) + (f" and {more} more" if more > 0 else "")
