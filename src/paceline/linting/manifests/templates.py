"""Jinja (and Helm) templates made readable as YAML without moving a single character.

``{% ... %}`` and ``{# ... #}`` become blanks, and so do macros as a whole. ``{{ ... }}`` becomes a run of one
private character for each different expression, so that values stay values, columns stay columns, and equal
expressions stay equal. What a ``{% set x = "..." %}`` says is remembered.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from paceline.specs import problems

_FIRST, _COUNT = 0xE000, 6400
_OPENING = re.compile(r"\{[%#{]")
_CLOSING = {"{%": "%}", "{#": "#}", "{{": "}}"}
_NOT_BREAK = re.compile(r"[^\n\r\x85\u2028\u2029]")
_RUN = re.compile("([\ue000-\uf8ff])\\1*")
_ONLY_RUNS = re.compile("(?m)^[ \\t]*+[\ue000-\uf8ff][\ue000-\uf8ff \\t]*+$")
_SET = re.compile(r"""-?\s*set\s+(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(\d+))\s*-?""")
_WORD = re.compile(r"-?\s*(\w+)")
_NAME = re.compile(r"-?\s*(\w+)\s*-?")


@dataclasses.dataclass(frozen=True)
class Template:
    """A text that YAML can read, and what stands behind its private characters.

    Attributes:
        expressions: as written between the braces, in the order of their private characters.
        literals: variables that the template sets to plain text.
        has_branches: whether there are branches, of which only one would be rendered.
    """

    text: str
    expressions: tuple[str, ...] = ()
    literals: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_branches: bool = False

    def resolved(self, text: str) -> str:
        """Return a value with what is known put in; what is not known stands there as ``{{ name }}``."""
        return _RUN.sub(self._meaning, text)

    def is_open(self, text: str) -> bool:
        """Whether a value depends on an expression that is not known."""
        return "{{" in self.resolved(text)

    def shown(self, text: str) -> str:
        """Return a value for a message: as the template writes it, escaped and cut."""
        return problems.shown(self.resolved(text))

    def _meaning(self, match: re.Match[str]) -> str:
        index = ord(match[1]) - _FIRST
        if index >= len(self.expressions):
            return match[0]
        name = _NAME.fullmatch(self.expressions[index])
        if name is not None and name[1] in self.literals:
            return self.literals[name[1]]
        return "{{ " + self.expressions[index].strip(" -") + " }}"


def neutralised(text: str) -> Template:
    """Return a text with its template language taken out, every line and column in its place."""
    pieces: list[str] = []
    expressions: dict[str, int] = {}
    literals: dict[str, str] = {}
    unclosed: set[str] = set()
    has_branches = False
    macro: int | None = None
    done = 0
    for opening in _tags(text, unclosed):
        start, end = opening
        if start < done:
            continue
        kind, inner = text[start : start + 2], text[start + 2 : end - 2]
        pieces.append(text[done:start])
        done = end
        if kind == "{{":
            number = expressions.setdefault(" ".join(inner.split()), len(expressions))
            pieces.append(_NOT_BREAK.sub(chr(_FIRST + min(number, _COUNT - 1)), text[start:end]))
            continue
        pieces.append(_blank(text[start:end]))
        statement = _WORD.match(inner)
        word = statement[1] if statement and kind == "{%" else ""
        if word == "macro" and macro is None:
            macro = len(pieces)
        elif word == "endmacro" and macro is not None:
            pieces[macro:] = [_blank("".join(pieces[macro:]))]
            macro = None
        elif word == "set" and (found := _SET.fullmatch(inner)):
            literals[found[1]] = next(group for group in found.groups()[1:] if group is not None)
        has_branches = has_branches or word in ("if", "elif", "else", "for")
    pieces.append(text[done:])
    body = _ONLY_RUNS.sub(lambda match: _blank(match[0]), "".join(pieces))
    # ##NAME## is the mark of templates that are filled in by sed first: no literal.
    known = {name: value for name, value in literals.items() if "##" not in value}
    return Template(body, tuple(expressions), known, has_branches)


def _tags(text: str, unclosed: set[str]) -> list[tuple[int, int]]:
    """Return start and end of every tag; an opening that is never closed is no tag."""
    found = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        closing = _CLOSING[opening[0]]
        end = -1 if closing in unclosed else text.find(closing, opening.end())
        if end < 0:
            unclosed.add(closing)
            at = opening.end()
        else:
            found.append((opening.start(), end + 2))
            at = end + 2
    return found


def _blank(text: str) -> str:
    return _NOT_BREAK.sub(" ", text)
