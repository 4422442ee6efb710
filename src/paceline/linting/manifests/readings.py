"""Reading of Kubernetes objects from files of many documents, which continues after unreadable documents."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.linting.manifests import templates
from paceline.model.explanations import findings
from paceline.specs import DocumentError, Problem
from paceline.specs.job_file import sections
from paceline.specs.yaml_text import documents, problems, streams
from paceline.specs.yaml_text.documents import Path, Scalar

#: A line that starts with a tag of a template that may fill something in: no comment, and no end of a block.
_FILLS = re.compile(r"\s*+\{[{%]-?\s*+(?!end|else|elif|/\*)")


@dataclasses.dataclass(frozen=True, slots=True)
class FixedSpot:
    """A fixed position, for findings without a path."""

    place: findings.TextPosition

    def position(self, path: Path, *, key: bool = False) -> findings.TextPosition:
        """Return the position, whatever the path."""
        return self.place


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One object of a file, or a fragment of one.

    Attributes:
        document: the document that contains the object.
        path: path of the object in the document; empty unless it is an item of a List.
        data: the fields of the object.
        template: the template, which knows what the private characters in values stand for.
        source: the text of the document as in the file.
    """

    document: documents.Document
    path: Path
    data: Mapping[str, Any]
    template: templates.Template
    source: str

    def text(self, *path: str) -> str | None:
        """Return a value as text, with its private characters; None if there is no such value."""
        value: Any = self.data
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return value.text if isinstance(value, Scalar) else None

    def is_filled_in(self, path: Path) -> bool:
        """Return whether a template fills in fields of the mapping at a path, so that some are unknown."""
        value: Any = self.document.data
        for part in path:
            value = value[part]
        fields = list(value) if isinstance(value, Mapping) else []
        begin, _ = self.document.place(path, key=True)
        lines = [self.document.place((*path, key), key=True)[0] for key in fields]
        first, *below = self.document.lines[begin - 1 : max(lines, default=begin) + 1]
        is_open = begin not in lines and any(brace in first for brace in ("{{", "{%"))
        return is_open or any(map(_FILLS.match, below))

    @property
    def kind(self) -> str:
        """The kind of the object; empty for a fragment."""
        return self.text("kind") or ""

    def mappings(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield every mapping of the object with its path, outermost first."""
        yield from _mappings(self.data, self.path)

    def pods(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield every pod spec of the object: all mappings with containers."""
        return ((path, part) for path, part in self.mappings() if isinstance(part.get("containers"), list))

    def containers(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield every container of the object except init containers."""
        for path, pod in self.pods():
            for index, container in enumerate(pod["containers"]):
                if isinstance(container, Mapping):
                    yield (*path, "containers", index), container


@dataclasses.dataclass(frozen=True)
class ManifestFile:
    """The content of a file of manifests.

    Attributes:
        failures: documents that cannot be read, and why.
        words: the words of the file's comments and of its name, in lower case.
    """

    manifests: tuple[Manifest, ...]
    failures: tuple[Problem, ...]
    words: frozenset[str]

    def containers(self) -> Iterator[tuple[Manifest, Path, Mapping[str, Any]]]:
        """Yield every container of all objects, as `Manifest.containers` does."""
        for manifest in self.manifests:
            for path, container in manifest.containers():
                yield manifest, path, container


def read(text: str | bytes, file: str) -> ManifestFile:
    """Return the content of a file of manifests; unreadable documents are among the failures."""
    try:
        source = documents.decode(text, file)
    except DocumentError as error:
        return ManifestFile((), error.problems, frozenset())
    template = templates.neutralised(streams.without_directives(source))
    manifests: list[Manifest] = []
    failures: list[Problem] = []
    lines = documents.split_lines(source)
    for count, (start, end, line) in enumerate(streams.cuts(template.text)):
        if count == streams.MAX_DOCUMENTS:
            message = f"there are more than {streams.MAX_DOCUMENTS} documents; what follows was not checked"
            failures.append(problems.at(file, lines, (line, 1), (), message))
            break
        try:
            document = _document(template, (start, end), file, line, lines)
        except DocumentError as error:
            failures.extend(_readable(template, problem) for problem in error.problems)
            continue
        if _is_json_patch(document.data):
            continue
        if not isinstance(document.data, Mapping) and not sections.is_empty(document.data):
            failures.append(document.problem((), "a Kubernetes object is a mapping (key: value)"))
        manifests.extend(_objects(document, template, source[start:end]))
    return ManifestFile(tuple(manifests), tuple(failures), _words(source, file))


def field(data: Mapping[str, Any], *path: str) -> Any:
    """Return the value at a path below a mapping, or None."""
    value: Any = data
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def scalar(data: Mapping[str, Any], *path: str) -> Scalar | None:
    """Return the leaf at a path below a mapping, or None."""
    value = field(data, *path)
    return value if isinstance(value, Scalar) else None


def _document(
    template: templates.Template, cut: tuple[int, int], file: str, line: int, lines: tuple[str, ...]
) -> documents.Document:
    """Return a document with all branches of its template or, if that is not valid YAML, with one of each."""
    start, end = cut
    try:
        return documents.read(template.text[start:end], file, first_line=line, lines=lines)
    except DocumentError:
        for text in template.branches():
            with contextlib.suppress(DocumentError):
                return documents.read(text[start:end], file, first_line=line, lines=lines)
        raise


def _is_json_patch(data: Any) -> bool:
    """Return whether a document is a JSON patch (RFC 6902), as overlays of kustomize have them."""
    items = data if isinstance(data, list) else []
    return bool(items) and all(isinstance(each, Mapping) and {"op", "path"} <= each.keys() for each in items)


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
