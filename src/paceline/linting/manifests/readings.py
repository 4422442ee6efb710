"""Kubernetes objects read from a file of many documents; one that cannot be read does not hide the others."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.linting.manifests import templates
from paceline.model import findings
from paceline.specs import JobFileError, Problem, documents, problems, sections
from paceline.specs.documents import Path, Scalar

_SEPARATOR = re.compile(r"(?m)^(?:---(?=[ \t\r\n]|$)|\.\.\.[ \t]*\r?$)")
_DIRECTIVE = re.compile(r"(?m)^%(?:YAML|TAG)[^\n\r]*")
_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")

MAX_DOCUMENTS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Spot:
    """A fixed position, for what has no path."""

    place: findings.Position

    def position(self, path: Path, *, key: bool = False) -> findings.Position:
        """Return the position, whatever the path."""
        return self.place


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One object of a file, or a fragment of one.

    Attributes:
        document: the document that it stands in.
        path: where in the document it stands; empty unless it is an item of a List.
        data: its fields.
        template: what stands behind the private characters in its values.
        source: the document as the file has it.
    """

    document: documents.Document
    path: Path
    data: Mapping[str, Any]
    template: templates.Template
    source: str

    def text(self, *path: str) -> str | None:
        """Return a value as text, with its private characters; None when there is none."""
        value: Any = self.data
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return value.text if isinstance(value, Scalar) else None

    @property
    def kind(self) -> str:
        """The kind of the object; empty for a fragment."""
        return self.text("kind") or ""

    def mappings(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield every mapping of the object with its path, outermost first."""
        yield from _mappings(self.data, self.path)

    def pods(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield every pod spec of the object: whatever has containers."""
        return ((path, part) for path, part in self.mappings() if isinstance(part.get("containers"), list))

    def containers(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield every container of the object, those for initialisation left out."""
        for path, pod in self.pods():
            for index, container in enumerate(pod["containers"]):
                if isinstance(container, Mapping):
                    yield (*path, "containers", index), container


@dataclasses.dataclass(frozen=True)
class ManifestFile:
    """Everything that a file of manifests holds.

    Attributes:
        failures: documents that cannot be read, and why.
        words: the words of its comments and of its name, in lower case.
    """

    manifests: tuple[Manifest, ...]
    failures: tuple[Problem, ...]
    words: frozenset[str]


def read(text: str | bytes, file: str) -> ManifestFile:
    """Return what a file of manifests holds; whatever cannot be read is among the failures."""
    try:
        source = documents.decode(text, file)
    except JobFileError as error:
        return ManifestFile((), error.problems, frozenset())
    template = templates.neutralised(_DIRECTIVE.sub(lambda match: " " * len(match[0]), source))
    manifests: list[Manifest] = []
    failures: list[Problem] = []
    lines = documents.split_lines(source)
    for count, (start, end, line) in enumerate(_chunks(template.text)):
        if count == MAX_DOCUMENTS:
            message = f"there are more than {MAX_DOCUMENTS} documents; what follows was not checked"
            failures.append(problems.at(file, lines, (line, 1), (), message))
            break
        try:
            document = documents.read(template.text[start:end], file, first_line=line, lines=lines)
        except JobFileError as error:
            failures.extend(_readable(template, problem) for problem in error.problems)
            continue
        if not isinstance(document.data, Mapping) and not sections.is_empty(document.data):
            failures.append(document.problem((), "a Kubernetes object is a mapping (key: value)"))
        manifests.extend(_objects(document, template, source[start:end]))
    return ManifestFile(tuple(manifests), tuple(failures), _words(source, file))


def field(data: Mapping[str, Any], *path: str) -> Any:
    """Return what stands at a path below a mapping, or None."""
    value: Any = data
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def scalar(data: Mapping[str, Any], *path: str) -> Scalar | None:
    """Return the leaf at a path below a mapping, or None."""
    value = field(data, *path)
    return value if isinstance(value, Scalar) else None


def _chunks(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and first line of each document."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text) if match.start() > 0)]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield start + 3 * text.startswith("...", start), end, line
        line += len(_BREAK.findall(text, start, end))


def _objects(document: documents.Document, template: templates.Template, source: str) -> Iterator[Manifest]:
    data = document.data
    if not isinstance(data, Mapping):
        return
    items = data.get("items")
    if isinstance(items, list) and data.get("kind") == Scalar("List"):
        for index, item in enumerate(items):
            if isinstance(item, Mapping):
                yield Manifest(document, ("items", index), item, template, source)
        return
    yield Manifest(document, (), data, template, source)


def _mappings(value: Any, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        yield path, value
        for key, part in value.items():
            yield from _mappings(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _mappings(part, (*path, index))


def _readable(template: templates.Template, problem: Problem) -> Problem:
    return dataclasses.replace(problem, message=template.resolved(problem.message))


def _words(source: str, file: str) -> frozenset[str]:
    comments = re.findall(r"(?m)^[ \t]*#([^\n\r]{0,500})", source)
    return frozenset(
        word.lower() for text in (*comments, file) for word in re.findall(r"[A-Za-z]{4,40}", text)
    )
