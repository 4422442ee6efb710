"""Jinja (and Helm) templates made readable as YAML without moving a single character.

``{% ... %}`` and ``{# ... #}`` become blanks, and so do macros as a whole. ``{{ ... }}`` becomes a run of one
private character for each different expression, so that values stay values, columns stay columns, and equal
expressions stay equal. What a ``{% set x = "..." %}`` says is remembered.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from paceline.specs.yaml_text import problems

_FIRST, _COUNT = 0xE000, 6400
_OPENING = re.compile(r"\{[%#{]")
_CLOSING = {"{%": "%}", "{#": "#}", "{{": "}}"}
_NOT_BREAK = re.compile(r"[^\n\r\x85\u2028\u2029]")
_RUN = re.compile("([\ue000-\uf8ff])\\1*")
_ONLY_RUNS = re.compile("(?m)^[ \\t]*+[\ue000-\uf8ff][\ue000-\uf8ff \\t]*+$")
#: A variable of a loop over numbers, or over words that stand there: one of its values.
_FOR = re.compile(r"""-?\s*+for\s++(\w++)\s++in\s++(?:(range)\b|[\[(]\s*+(?:"([^"]*+)"|'([^']*+)'|(\d++)))""")
_RANGE = re.compile(
    r"""-?\s*+range\s++(?:\$\w++\s*+,\s*+)?\$(\w++)\s*+:=\s*+(?:(until)\b|list\s++"([^"]*+)")"""
)
_SET = re.compile(r"""-?\s*set\s+(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(\d+))\s*-?""")
_WORD = re.compile(r"-?\s*+(\w+)")
#: A line whose value, after the key or the mark of an item, is expressions alone.
_ONLY_VALUE = re.compile(
    "([ \\t]*+(?:- ++)*+(?:[^\\s#'\"\ue000-\uf8ff-][^:#\ue000-\uf8ff]*+:)?+ *+)"
    "([\ue000-\uf8ff]++)[ \\t]*+\r?$"
)
#: Functions of Helm that make many lines.
_BLOCKS = re.compile(r"\b(?:n?indent|toYaml|to_nice_yaml|to_yaml)\b")
_MOST_BLANK = 50
#: An expression at the beginning of a line, and how far Helm moves what it makes to the right.
_BEGIN = re.compile("([\ue000-\uf8ff])\\1*+")
_INDENT = re.compile(r"\|\s*+indent\s++(\d{1,3})\s*+-?$")
_OPENERS = frozenset(("if", "range", "with", "define", "block", "for"))
_ENDERS = frozenset(("end", "endif", "endfor", "endblock", "endwith"))
_BRANCHING = frozenset(("if", "elif", "else", "for", "range", "with"))
_JINJA = (_OPENERS - {"range", "define"} | _ENDERS | {"elif", "else"}) - {"end"}
_HELM = (_OPENERS - {"for"}) | {"else", "end"}
_STATEMENTS = {"{%": _JINJA, "{{": _HELM, "{#": frozenset[str]()}
#: A variable, also through Helm's functions that make text of it.
_VARIABLE = re.compile(r"-?\s*+\$?(\w++)\s*+(?:\|\s*+(?:quote|string|int|toString)\s*+)*+-?")
_NAME = re.compile(r"-?\s*(\w+)\s*-?")


@dataclasses.dataclass(frozen=True)
class Template:
    """A text that YAML can read, and what stands behind its private characters.

    Attributes:
        expressions: as written between the braces, in the order of their private characters.
        literals: variables that the template sets to plain text.
        examples: variables of loops, each with one of its values.
        has_branches: whether there are branches, of which only one would be rendered.
        statements: start, end and first word of what steers the template (if, else, end, ...).
    """

    text: str
    expressions: tuple[str, ...] = ()
    literals: Mapping[str, str] = dataclasses.field(default_factory=dict)
    examples: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_branches: bool = False
    statements: tuple[tuple[int, int, str], ...] = ()

    def resolved(self, text: str) -> str:
        """Return a value with what is known put in; what is not known stands there as ``{{ name }}``."""
        return _RUN.sub(self._meaning, text)

    def branches(self) -> Iterator[str]:
        """Yield the text with only the first branch of each choice, and with only the last of each."""
        steering = [(start, end) for start, end, _ in self.statements]
        for takes_last in (False, True):
            skipped = _skipped(self.statements, takes_last=takes_last)
            yield _without(self.text, (*skipped, *steering))

    def example(self, text: str) -> str:
        """Return a value with what is known put in, and of variables of loops one of their values."""
        return _RUN.sub(lambda match: self.examples.get(self._name(match) or "", self._meaning(match)), text)

    def _name(self, match: re.Match[str]) -> str | None:
        """Return the name of the variable that an expression is, if it is no more."""
        index = ord(match[1]) - _FIRST
        found = _VARIABLE.fullmatch(self.expressions[index]) if index < len(self.expressions) else None
        return found[1] if found else None

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
    examples: dict[str, str] = {}
    unclosed: set[str] = set()
    statements: list[tuple[int, int, str]] = []
    macro: int | None = None
    done = 0
    for start, end in _tags(text, unclosed):
        kind, inner = text[start : start + 2], text[start + 2 : end - 2]
        statement = _WORD.match(inner) if kind != "{#" else None
        word = statement[1] if statement else ""
        if word in _STATEMENTS[kind]:
            statements.append((start, end, word))
        pieces.append(text[done:start])
        done = end
        if kind == "{{":
            if word == "range" and (loop := _RANGE.match(inner)):
                examples[loop[1]] = loop[3] or "0"
            number = expressions.setdefault(" ".join(inner.split()), len(expressions))
            pieces.append(_NOT_BREAK.sub(chr(_FIRST + min(number, _COUNT - 1)), text[start:end]))
            continue
        pieces.append(_blank(text[start:end]))
        if word == "macro" and macro is None:
            macro = len(pieces)
        elif word == "endmacro" and macro is not None:
            pieces[macro:] = [_blank("".join(pieces[macro:]))]
            macro = None
        elif word == "for" and (loop := _FOR.match(inner)):
            examples[loop[1]] = next((group for group in loop.groups()[2:] if group is not None), "0")
        elif word == "set" and (found := _SET.fullmatch(inner)):
            literals[found[1]] = next(group for group in found.groups()[1:] if group is not None)
    pieces.append(text[done:])
    body = _without("".join(pieces), _definitions(statements))
    body = _ONLY_RUNS.sub(lambda match: _blank(match[0]), body)
    body = _without_blocks(body, tuple(expressions))
    # ##NAME## is the mark of templates that are filled in by sed first: no literal.
    known = {name: value for name, value in literals.items() if "##" not in value}
    has_branches = any(word in _BRANCHING for _, _, word in statements)
    return Template(body, tuple(expressions), known, examples, has_branches, tuple(statements))


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with parts of it blank."""
    pieces: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if end > done:
            start = max(start, done)
            pieces += (text[done:start], _blank(text[start:end]))
            done = end
    return "".join((*pieces, text[done:]))


def _definitions(statements: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, int]]:
    """Yield where Helm's ``define ... end`` stand: like macros, they are no part of the document."""
    opened: list[tuple[int, str]] = []
    for start, end, word in statements:
        if word in _OPENERS:
            opened.append((start, word))
        elif word in _ENDERS and opened:
            begin, opener = opened.pop()
            if opener == "define":
                yield begin, end


def _without_blocks(text: str, expressions: Sequence[str]) -> str:
    """Return a text without the values that are whole blocks, such as ``labels: {{ toYaml . | nindent 4 }}``.

    What such a value is stands on lines of its own, between the key and what comes after it.
    """
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        begin = _BEGIN.match(line)
        if begin is not None and (depth := _INDENT.search(_inner(begin[0], expressions))):
            # What it makes begins that far to the right.
            spaces = min(int(depth[1]), len(begin[0]) - 1)
            lines[number] = " " * spaces + line[spaces:]
        value = _ONLY_VALUE.match(line)
        if value is None:
            continue
        if _BLOCKS.search(_inner(value[2], expressions)) or _goes_on(
            value[1], lines[number + 1 : number + 1 + _MOST_BLANK]
        ):
            lines[number] = value[1] + _blank(line[len(value[1]) :])
    return "".join(lines)


def _inner(run: str, expressions: Sequence[str]) -> str:
    """Return the expression that the private characters at the beginning of a text stand for."""
    index = ord(run[0]) - _FIRST
    return expressions[index] if index < len(expressions) else ""


def _goes_on(head: str, below: Sequence[str]) -> bool:
    """Whether what stands below a key with a value is part of that value: it is indented further."""
    following = next((line for line in below if line.strip() and not line.lstrip().startswith("#")), "")
    indent = len(following) - len(following.lstrip())
    if not head.strip(" \t-"):  # an item of a list: what belongs to it stands right of its dash
        return indent > head.rfind("-") >= 0 and ":" in following
    key = len(head) - len(head.lstrip(" \t-"))
    return indent >= key if following.lstrip()[:2] == "- " else indent > key and ":" in following


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


def _skipped(statements: Iterable[tuple[int, int, str]], *, takes_last: bool) -> Iterator[tuple[int, int]]:
    """Yield where the branches stand that are not taken: all but the first, or all but the last."""
    opened: list[list[int]] = []
    for start, end, word in statements:
        if word in _OPENERS:
            opened.append([start])
        elif word in ("else", "elif") and opened:
            opened[-1].append(start)
        elif word in _ENDERS and opened:
            begins = opened.pop()
            if len(begins) > 1:
                yield (begins[0], begins[-1]) if takes_last else (begins[1], end)


def _blank(text: str) -> str:
    return _NOT_BREAK.sub(" ", text)
