"""Kubernetes' expansion of ``$(NAME)`` in commands and in values of environment variables.

``$(NAME)`` becomes the value of a variable; it stays unchanged if the variable is unknown. ``$$`` becomes a
dollar sign, so ``$$(NAME)`` becomes the text ``$(NAME)``. Source:
``third_party/forked/golang/expansion/expand.go`` of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

#: More than a container can receive (``MAX_ARG_STRLEN`` of Linux is 128 KiB).
MOST_CHARACTERS = 1 << 20


class Expansion(NamedTuple):
    """A text as the container receives it, and the names in it that have no known value."""

    text: str
    unknown: tuple[str, ...]


class TooLong(ValueError):
    """The expanded text is longer than anything that a container can receive."""


def expand(text: str, values: Mapping[str, str]) -> Expansion:
    """Return a text with all known values filled in.

    Raises:
        TooLong: the text grows beyond ``MOST_CHARACTERS``. A few variables, each of which contains the one
            before twice, would expand to gigabytes.
    """
    unknown: list[str] = []
    pieces: list[str] = []
    size = done = 0
    for begin, end in _references(text):
        name = text[begin + 2 : end - 1]
        if end - begin == 2:  # $$
            filled = "$"
        elif name in values:
            filled = values[name]
        else:
            unknown.append(name)
            filled = text[begin:end]
        pieces += (text[done:begin], filled)
        size += begin - done + len(filled)
        done = end
        if size > MOST_CHARACTERS:
            raise TooLong(f"it expands to more than {MOST_CHARACTERS:,} characters")
    return Expansion("".join((*pieces, text[done:])), tuple(unknown))


def _references(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each ``$(NAME)`` and ``$$``; every character is scanned twice at most."""
    begin, close = text.find("$"), -1
    while begin >= 0:
        end = begin + 1
        if text.startswith("$", end):
            end += 1
            yield begin, end
        elif text.startswith("(", end):
            if close < end:
                close = text.find(")", end)
                if close < 0:
                    close = len(text)  # No later parenthesis is closed either.
            if close < len(text):
                end = close + 1
                yield begin, end
        begin = text.find("$", end)
