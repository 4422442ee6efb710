"""Splices: replacements of pieces of a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Splice(NamedTuple):
    """The replacement of the text from ``start`` to ``end`` (character offsets from 0) by ``text``."""

    start: int
    end: int
    text: str = ""


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return a text after splices, whose offsets all refer to the given text.

    Splices must not overlap; splices at the same offset are made in the given order.
    """
    parts = []
    done = 0
    for each in sorted(splices, key=lambda splice: splice.start):
        parts += [text[done : each.start], each.text]
        done = each.end
    return "".join((*parts, text[done:]))
