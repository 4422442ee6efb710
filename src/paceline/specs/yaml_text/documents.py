"""Reading of YAML into plain data that remember the place of each part.

PyYAML's composer makes nodes with line and column. This module turns them into mappings, lists and `Scalar`
leaves, and a table from path to place. No objects are constructed from tags, so no text can run code. A leaf
keeps the text as written: ``1.10`` and ``0x1F`` stay as the user typed them, and ``no`` is recognized as a
boolean of YAML 1.1 without being converted.

Limits stop hostile text early: 1 MiB, 50 levels, and 20 000 values after aliases are followed.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import Resolver
from yaml.scanner import Scanner

from paceline.model.explanations import findings
from paceline.specs.yaml_text import problems

MAX_BYTES = 1 << 20
MAX_DEPTH = 50
MAX_VALUES = 20_000

Path = tuple[str | int, ...]
L = TypeVar("L", bound="Loader")

BREAKS = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_FORBIDDEN = re.compile(
    "[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_KINDS = {
    "tag:yaml.org,2002:bool": "boolean",
    "tag:yaml.org,2002:int": "integer",
    "tag:yaml.org,2002:float": "float",
    "tag:yaml.org,2002:null": "null",
}
_ARTICLES = {"boolean": "a boolean", "integer": "an integer", "float": "a number", "null": "empty"}
MERGE = "tag:yaml.org,2002:merge"
_STANDARD_TAG = "tag:yaml.org,2002:"
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?", re.ASCII)


class ScalarKind(enum.StrEnum):
    """The type of a scalar in YAML 1.1, the version that Kubernetes' tools use."""

    TEXT = "text"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    NULL = "null"


@dataclasses.dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf: its text as written, and its type in YAML. A quoted text is always text."""

    text: str
    kind: ScalarKind = ScalarKind.TEXT

    @property
    def is_number(self) -> bool:
        """Whether the leaf is an unquoted number (``1e-3`` counts, although it is text in YAML 1.1)."""
        return self.kind in (ScalarKind.INTEGER, ScalarKind.FLOAT)


@dataclasses.dataclass(frozen=True, slots=True)
class SourcePlace:
    """The places of a key and its value, as (line, column) from 1; for a list item, both are the same."""

    key: tuple[int, int]
    value: tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Document:
    """One YAML document: its data, the place of each part, and the errors that do not stop the reader."""

    file: str
    lines: tuple[str, ...]
    data: Any
    places: dict[Path, SourcePlace]
    faults: tuple[problems.Problem, ...]

    def place(self, path: Path, *, key: bool = False) -> tuple[int, int]:
        """Return line and column of a path, or of the nearest part above it that exists."""
        for end in range(len(path), -1, -1):
            place = self.places.get(path[:end])
            if place is not None:
                return place.key if key or end < len(path) else place.value
        return (1, 1)

    def position(self, path: Path, *, key: bool = False) -> findings.TextPosition:
        """Return the position of a path, or of the nearest part above it that exists."""
        line, column = self.place(path, key=key)
        return findings.TextPosition(file=self.file, line=line, column=column)

    def problem(self, path: Path, message: str, *, key: bool = False) -> problems.Problem:
        """Return a problem at a path, with its excerpt."""
        return problems.at(self.file, self.lines, self.place(path, key=key), path, message)


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a text, split at the line breaks of YAML."""
    return tuple(BREAKS.split(text))


def decode(text: str | bytes, file: str) -> str:
    """Return the text of a file after the checks that need no YAML parser.

    Raises:
        problems.DocumentError: the file is not UTF-8, is too large, or has characters that YAML forbids.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    size = len(data)
    if size > MAX_BYTES:
        raise problems.failure(
            file, (), (1, 1), f"the file has {size} bytes; the limit is {MAX_BYTES} (1 MiB)"
        )
    try:
        text = data.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        lines = split_lines(data[: error.start].decode("utf-8", "replace"))
        byte = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        message = f"the file is not UTF-8 text: {byte}; save it as UTF-8"
        raise problems.failure(file, lines, (len(lines), len(lines[-1]) + 1), message) from error
    text = text.removeprefix("\ufeff")
    bad = _FORBIDDEN.search(text)
    if bad is not None:
        lines = split_lines(text)
        above = split_lines(text[: bad.start()])
        raise problems.failure(
            file,
            lines,
            (len(above), len(above[-1]) + 1),
            f"the character {bad[0]!a} cannot stand in YAML; remove it",
        )
    return text


def read(text: str, file: str, *, first_line: int = 1, lines: tuple[str, ...] | None = None) -> Document:
    """Return the only document of a YAML text that `decode` has checked.

    Args:
        text: the YAML text.
        file: name of the file, for positions.
        first_line: the line of the file at which the text starts.
        lines: all lines of the file, if the text is only a part of it.

    Raises:
        problems.DocumentError: the text is not YAML, or is beyond the limits.
    """
    lines = split_lines(text) if lines is None else lines
    _, node = composed(Loader, text, file, first_line=first_line, lines=lines)
    builder = _Builder(file, lines, first_line)
    data = Scalar("", ScalarKind.NULL) if node is None else builder.value(node, (), None, 0)
    return Document(file, lines, data, builder.places, tuple(builder.faults))


def composed(
    loader: type[L], text: str, file: str, *, first_line: int, lines: tuple[str, ...]
) -> tuple[L, yaml.Node | None]:
    """Return the root node of the only document of a text, and the loader that made it (see `read`).

    Raises:
        problems.DocumentError: the text is not YAML, or is beyond the limits.
    """
    try:
        made = loader(text)
        return made, made.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _syntax(file, lines, error, first_line) from error
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: a numeric escape that stands for no character, such as "\\UFFFFFFFF".
        message = f"this is not YAML: {problems.visible(str(error))}"
        raise problems.failure(file, lines, (first_line, 1), message) from error


class Loader(Reader, Scanner, Parser, Composer, Resolver):
    """PyYAML's pure-Python front end without a constructor; it enforces limits while it composes nodes."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        Resolver.__init__(self)
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node; exceeding a limit is an error."""
        self._values += 1
        if self._depth >= MAX_DEPTH:
            self._refuse(f"the nesting is deeper than {MAX_DEPTH} levels")
        if self._values > MAX_VALUES:
            self._refuse(f"there are more than {MAX_VALUES} values")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def _refuse(self, problem: str) -> None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


class _Builder:
    """Turns nodes into data and places; it follows aliases and merge keys, and enforces the limits."""

    def __init__(self, file: str, lines: tuple[str, ...], first_line: int) -> None:
        self.places: dict[Path, SourcePlace] = {}
        self.faults: list[problems.Problem] = []
        self._file = file
        self._lines = lines
        self._offset = first_line - 1
        self._open: set[int] = set()
        self._spent = 0

    def value(self, node: yaml.Node, path: Path, key: tuple[int, int] | None, depth: int) -> Any:
        here = self._mark(node.start_mark)
        self.places[path] = SourcePlace(key or here, here)
        self._spend(path, here, depth)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path, here)
        if id(node) in self._open:
            raise self._failure(path, here, "an alias (*name) refers to the value that it stands in")
        self._open.add(id(node))
        try:
            if not node.tag.startswith(_STANDARD_TAG):
                self._fault(path, here, f"the tag {node.tag!r} is not allowed; remove it")
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, i), None, depth + 1) for i, item in enumerate(node.value)]
            return self._mapping(node, path, depth) if isinstance(node, yaml.MappingNode) else None
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode, path: Path, here: tuple[int, int]) -> Scalar:
        if not node.tag.startswith(_STANDARD_TAG):
            self._fault(path, here, f"the tag {node.tag!r} is not allowed; remove it")
        text = str(node.value)
        bad = next((c for c in text if c == "\0" or "\ud800" <= c <= "\udfff"), None)
        if bad is not None:
            self._fault(path, here, f"the character {bad!a} cannot stand in a value; remove it")
        return scalar_of(node)

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        seen: dict[str, tuple[int, int]] = {}
        for key_node, value_node in node.value:
            if key_node.tag == MERGE:
                continue
            here = self._mark(key_node.start_mark)
            key = self._key(key_node, path, here)
            if key is None:
                continue
            if key in seen:
                line, column = seen[key]
                message = (
                    f"the key {problems.shown(key)} is given twice: first at line {line}, column {column}"
                )
                self._fault((*path, key), here, f"{message}, again here; keep one of them")
                continue
            seen[key] = here
            result[key] = self.value(value_node, (*path, key), here, depth + 1)
        for source in self._merged(node, path):
            for key, value in self._mapping_of(source, path, depth).items():
                result.setdefault(key, value)
        return result

    def _mapping_of(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        """Return the data that a merge key adds; keys that exist already keep their places."""
        mine, self.places = self.places, {}
        here = self._mark(node.start_mark)
        self._spend(path, here, depth)
        if id(node) in self._open:
            raise self._failure(path, here, "a merge key (<<) refers to the mapping that it stands in")
        self._open.add(id(node))
        try:
            result = self._mapping(node, path, depth + 1)
        finally:
            self._open.discard(id(node))
        brought = {p: place for p, place in self.places.items() if not _covered(p, mine, len(path) + 1)}
        self.places = {**brought, **mine}
        return result

    def _merged(self, node: yaml.MappingNode, path: Path) -> Iterator[yaml.MappingNode]:
        for key_node, value_node in node.value:
            if key_node.tag != MERGE:
                continue
            sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for source in sources:
                if isinstance(source, yaml.MappingNode):
                    yield source
                else:
                    message = "a merge key (<<) takes a mapping or a list of mappings"
                    self._fault(path, self._mark(key_node.start_mark), message)

    def _key(self, node: yaml.Node, path: Path, here: tuple[int, int]) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            what = "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
            self._fault(path, here, f"a key must be text, not {what}")
            return None
        scalar = scalar_of(node)
        if scalar.kind is not ScalarKind.TEXT:
            written = scalar.text or "(empty)"
            quoted = problems.quoted(scalar.text)
            what = f"the key {problems.shown(written)} is {_ARTICLES[scalar.kind]} to YAML"
            self._fault(path, here, f"{what}, not text; write {quoted}")
            return None
        if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in scalar.text):
            self._fault(
                path, here, f"the key {problems.shown(scalar.text)} has characters that are not allowed"
            )
            return None
        return scalar.text

    def _spend(self, path: Path, here: tuple[int, int], depth: int) -> None:
        self._spent += 1
        if self._spent > MAX_VALUES or depth > MAX_DEPTH:
            limits = f"{MAX_VALUES} values or {MAX_DEPTH} levels"
            raise self._failure(path, here, f"aliases (*name) unfold to more than {limits}")

    def _mark(self, mark: Any) -> tuple[int, int]:
        return (mark.line + 1 + self._offset, mark.column + 1)

    def _fault(self, path: Path, here: tuple[int, int], message: str) -> None:
        self.faults.append(problems.at(self._file, self._lines, here, path, message))

    def _failure(self, path: Path, here: tuple[int, int], message: str) -> problems.DocumentError:
        return problems.failure(self._file, self._lines, here, message, path)


def _covered(path: Path, mine: dict[Path, SourcePlace], length: int) -> bool:
    """Return whether the mapping itself already has the key that a merge key would add at this path."""
    return path[:length] in mine


def scalar_of(node: yaml.ScalarNode) -> Scalar:
    """Return the leaf of a scalar node."""
    text = str(node.value)
    kind = ScalarKind(_KINDS.get(node.tag, "text"))
    if node.style is None and kind is ScalarKind.TEXT and _NUMBER.fullmatch(text):
        kind = ScalarKind.FLOAT
    return Scalar(text, kind)


def _syntax(
    file: str, lines: tuple[str, ...], error: yaml.MarkedYAMLError, first_line: int
) -> problems.DocumentError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + first_line, mark.column + 1) if mark is not None else (first_line, 1)
    problem = str(error.problem or error.context or error)
    source = lines[line - 1] if line <= len(lines) else ""
    if "'\\t'" in problem or source[: len(source) - len(source.lstrip())].count("\t"):
        message = "a tab stands where YAML wants spaces; indent with spaces"
    elif error.context == "expected a single document in the stream":
        message = "a second document starts here (---); write one job in each file"
    elif "undefined alias" in problem:
        message = f"{problems.visible(problem)}; an anchor (&name) must come before its alias (*name)"
    elif problem.startswith(("the nesting", "there are more")):
        message = problem
    else:
        context = f" ({problems.visible(error.context)})" if error.context and error.problem else ""
        message = f"this is not YAML: {problems.visible(problem)}{context}"
    return problems.failure(file, lines, (line, column), message)
