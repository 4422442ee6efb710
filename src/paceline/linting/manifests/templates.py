"""Making Jinja (and Helm) templates readable as YAML without moving a single character.

``{% ... %}`` and ``{# ... #}`` become blanks, and so do whole macros. ``{{ ... }}`` becomes a run of a
private Unicode character, which is the same for equal expressions. This way, values stay values, columns stay
columns, and equal expressions stay equal. The values of ``{% set x = "..." %}`` are remembered.
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
#: A loop over numbers or over literal words: the variable, and one of its values.
_FOR = re.compile(r"""-?\s*+for\s++(\w++)\s++in\s++(?:(range)\b|[\[(]\s*+(?:"([^"]*+)"|'([^']*+)'|(\d++)))""")
_RANGE = re.compile(
    r"""-?\s*+range\s++(?:\$\w++\s*+,\s*+)?\$(\w++)\s*+:=\s*+(?:(until)\b|list\s++"([^"]*+)")"""
)
_SET = re.compile(r"""-?\s*set\s+(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(\d+))\s*-?""")
_WORD = re.compile(r"-?\s*+(\w+)")
#: A line whose value, after the key or the dash of an item, consists only of expressions.
_ONLY_VALUE = re.compile(
    "([ \\t]*+(?:- ++)*+(?:[^\\s#'\"\ue000-\uf8ff-][^:#\ue000-\uf8ff]*+:)?+ *+)"
    "([\ue000-\uf8ff]++)[ \\t]*+\r?$"
)
#: Functions of Helm and Ansible that can produce several lines.
_BLOCKS = re.compile(r"\b(?:n?indent|toYaml|to_nice_yaml|to_yaml)\b")
_MOST_BLANK = 50
#: An expression at the beginning of a line, and by how many columns Helm indents its result.
_BEGIN = re.compile("([\ue000-\uf8ff])\\1*+")
_INDENT = re.compile(r"\|\s*+indent\s++(\d{1,3})\s*+-?$")
_OPENERS = frozenset(("if", "range", "with", "define", "block", "for"))
_ENDERS = frozenset(("end", "endif", "endfor", "endblock", "endwith"))
_BRANCHING = frozenset(("if", "elif", "else", "for", "range", "with"))
_JINJA = (_OPENERS - {"range", "define"} | _ENDERS | {"elif", "else"}) - {"end"}
_HELM = (_OPENERS - {"for"}) | {"else", "end"}
_STATEMENTS = {"{%": _JINJA, "{{": _HELM, "{#": frozenset[str]()}
#: A variable, perhaps with functions of Helm that turn it into text.
_VARIABLE = re.compile(r"-?\s*+\$?(\w++)\s*+(?:\|\s*+(?:quote|string|int|toString)\s*+)*+-?")
_NAME = re.compile(r"-?\s*(\w+)\s*-?")


@dataclasses.dataclass(frozen=True)
class Template:
    """A text that is readable as YAML, and what its private characters stand for.

    Attributes:
        expressions: the texts between the braces, in the order of their private characters.
        literals: variables that the template sets to plain text.
        examples: variables of loops, each with one of its values.
        has_branches: whether the text has branches that rendering may leave out.
        statements: start, end and first word of the control statements (if, else, end, ...).
    """

    text: str
    expressions: tuple[str, ...] = ()
    literals: Mapping[str, str] = dataclasses.field(default_factory=dict)
    examples: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_branches: bool = False
    statements: tuple[tuple[int, int, str], ...] = ()

    def resolved(self, text: str) -> str:
        """Return a value with known expressions filled in; an unknown one is shown as ``{{ name }}``."""
        return _RUN.sub(self._meaning, text)

    def branches(self) -> Iterator[str]:
        """Yield the text with only the first branch of each choice, then with only the last of each."""
        steering = [(start, end) for start, end, _ in self.statements]
        for takes_last in (False, True):
            skipped = _skipped(self.statements, takes_last=takes_last)
            yield _without(self.text, (*skipped, *steering))

    def example(self, text: str) -> str:
        """Return a value with known expressions filled in, and one of its values for each loop variable."""
        return _RUN.sub(lambda match: self.examples.get(self._name(match) or "", self._meaning(match)), text)

    def _name(self, match: re.Match[str]) -> str | None:
        """Return the name of the variable, if an expression consists only of one; else None."""
        index = ord(match[1]) - _FIRST
        found = _VARIABLE.fullmatch(self.expressions[index]) if index < len(self.expressions) else None
        return found[1] if found else None

    def is_open(self, text: str) -> bool:
        """Return whether a value depends on an unknown expression."""
        return "{{" in self.resolved(text)

    def shown(self, text: str) -> str:
        """Return a value for a message: as the template writes it, escaped and shortened."""
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
    """Return a text without its template language; every line and column stays in its place."""
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
    # ##NAME## is a mark that sed replaces before the template is rendered, so it is no literal.
    known = {name: value for name, value in literals.items() if "##" not in value}
    has_branches = any(word in _BRANCHING for _, _, word in statements)
    return Template(body, tuple(expressions), known, examples, has_branches, tuple(statements))


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with some parts blanked."""
    pieces: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if end > done:
            start = max(start, done)
            pieces += (text[done:start], _blank(text[start:end]))
            done = end
    return "".join((*pieces, text[done:]))


def _definitions(statements: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, int]]:
    """Yield the spans of Helm's ``define ... end``, which, like macros, are not part of the document."""
    opened: list[tuple[int, str]] = []
    for start, end, word in statements:
        if word in _OPENERS:
            opened.append((start, word))
        elif word in _ENDERS and opened:
            begin, opener = opened.pop()
            if opener == "define":
                yield begin, end


def _without_blocks(text: str, expressions: Sequence[str]) -> str:
    """Return a text without values that render as blocks, such as ``labels: {{ toYaml . | nindent 4 }}``.

    When the template is rendered, such a value has lines of its own below the key.
    """
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        begin = _BEGIN.match(line)
        if begin is not None and (depth := _INDENT.search(_inner(begin[0], expressions))):
            # The rendered text is indented by this many columns.
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
    """Return the expression that the first private character of a text stands for."""
    index = ord(run[0]) - _FIRST
    return expressions[index] if index < len(expressions) else ""


def _goes_on(head: str, below: Sequence[str]) -> bool:
    """Return whether the lines below a key with a value are indented more and so belong to the value."""
    following = next((line for line in below if line.strip() and not line.lstrip().startswith("#")), "")
    indent = len(following) - len(following.lstrip())
    if not head.strip(" \t-"):  # a list item: lines to the right of its dash belong to it
        return indent > head.rfind("-") >= 0 and ":" in following
    key = len(head) - len(head.lstrip(" \t-"))
    return indent >= key if following.lstrip()[:2] == "- " else indent > key and ":" in following


def _tags(text: str, unclosed: set[str]) -> list[tuple[int, int]]:
    """Return start and end of every tag; an opening that is never closed does not count."""
    tags = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        closing = _CLOSING[opening[0]]
        end = -1 if closing in unclosed else text.find(closing, opening.end())
        if end < 0:
            unclosed.add(closing)
            at = opening.end()
        else:
            tags.append((opening.start(), end + 2))
            at = end + 2
    return tags


def _skipped(statements: Iterable[tuple[int, int, str]], *, takes_last: bool) -> Iterator[tuple[int, int]]:
    """Yield the spans of the branches to leave out: all but the first, or all but the last."""
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
