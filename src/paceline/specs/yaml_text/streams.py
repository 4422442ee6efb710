"""Cutting of a file into YAML documents at the lines ``---`` and ``...``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paceline.specs.yaml_text import documents

_SEPARATOR = re.compile(r"(?m)^(?:---(?=[ \t\r\n]|$)|\.\.\.[ \t]*\r?$)")
_DIRECTIVE = re.compile(r"(?m)^%(?:YAML|TAG)[^\n\r]*")

#: The most documents in a file; real files of manifests have fewer.
MAX_DOCUMENTS = 1000


def without_directives(text: str) -> str:
    """Return a text with its ``%YAML`` and ``%TAG`` lines blanked; all offsets stay the same."""
    return _DIRECTIVE.sub(lambda match: " " * len(match[0]), text)


def cuts(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the end and the first line number of each document of a text without directives."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text) if match.start() > 0)]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield start + 3 * text.startswith("...", start), end, line
        line += len(documents.BREAKS.findall(text, start, end))
