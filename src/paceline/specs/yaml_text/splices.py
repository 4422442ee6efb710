"""Splices: pieces of a text that others take the place of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Splice(NamedTuple):
    """What stands from ``start`` to ``end`` (characters from 0) becomes ``text``."""

    start: int
    end: int
    text: str = ""


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return a text with splices made, all of them given for the text as it is.

    They do not overlap; two at one place stay in the given order.
    """
    parts = []
    done = 0
    for each in sorted(splices, key=lambda splice: splice.start):
        parts += [text[done : each.start], each.text]
        done = each.end
    return "".join((*parts, text[done:]))
