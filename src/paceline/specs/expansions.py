"""What Kubernetes makes of ``$(NAME)`` in commands and in values of the environment.

``$(NAME)`` is the value of a variable; where nobody knows it, the text stays as it is. ``$$`` is a dollar
sign, so ``$$(NAME)`` is the text ``$(NAME)``. Source: ``third_party/forked/golang/expansion/expand.go`` of
Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


class Expansion(NamedTuple):
    """A text as a container gets it, and the names in it whose values are not known here."""

    text: str
    unknown: tuple[str, ...]


def expand(text: str, values: Mapping[str, str]) -> Expansion:
    """Return a text with the values that are known filled in."""
    unknown: list[str] = []

    def filled(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        if name not in values:
            unknown.append(name)
        return values.get(name, match[0])

    return Expansion(_REFERENCE.sub(filled, text), tuple(unknown))
