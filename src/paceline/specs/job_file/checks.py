"""Checking of a document against a section, which describes every error and its place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_args

import pydantic
from pydantic_core import ErrorDetails

from paceline import errors
from paceline.specs.job_file import sections
from paceline.specs.yaml_text import documents, problems

Root = type[sections.Section]
_Checked = TypeVar("_Checked", bound=sections.Section)

_WANTED = {
    "model_type": "a mapping (key: value) is wanted",
    "dict_type": "a mapping (key: value) is wanted",
    "list_type": "a list is wanted: [a, b] or one '- item' a line",
}

#: How many errors are turned into messages at most; 20 are shown.
_MAX_TRANSLATED = 500


def read_bytes(path: str | os.PathLike[str], hint: str) -> bytes:
    """Return the content of a file, at most one byte more than the limit.

    Args:
        path: path of the file.
        hint: hint for the error if there is no such file.

    Raises:
        errors.NotFound: there is no such file.
        errors.InvalidInput: the file cannot be read.
    """
    name = os.fspath(path)
    shown = problems.visible(name)
    try:
        with open(name, "rb") as stream:
            return stream.read(documents.MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise errors.NotFound(f"{shown}: there is no such file", hint) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise errors.InvalidInput(f"{shown}: the file cannot be read: {reason}") from error


def check(
    document: documents.Document,
    root: type[_Checked],
    what: str,
    contradictions: Callable[[documents.Document, _Checked], Iterator[problems.Problem]],
) -> _Checked:
    """Return a document as a section.

    Args:
        document: the whole file.
        root: the section that the document has to be.
        what: name of this kind of file in messages, such as "a job file".
        contradictions: finds errors between fields that are valid by themselves.

    Raises:
        problems.DocumentError: the document has errors; the exception holds all of them.
    """
    first = next(iter(root.model_fields))
    if sections.is_empty(document.data):
        message = f"the file is empty; {what} starts with {first}"
        raise problems.failure(document.file, document.lines, (1, 1), message)
    if not isinstance(document.data, dict):
        given = "a list" if isinstance(document.data, list) else "a single text"
        message = f"the file is {given}; {what} is a mapping that starts with {first}"
        raise problems.failure(document.file, document.lines, document.place(()), message)
    try:
        section = root.model_validate(document.data)
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False, include_input=True)[:_MAX_TRANSLATED]
        found = [*document.faults, *(_problem(document, root, detail) for detail in details)]
        raise _error(found) from error
    found = [*document.faults, *contradictions(document, section)]
    if found:
        raise _error(found)
    return section


def _error(found: Iterable[problems.Problem]) -> problems.DocumentError:
    unique = {(problem.position, problem.message): problem for problem in found}
    ordered = sorted(unique.values(), key=lambda p: (p.position.line, p.position.column))
    return problems.DocumentError(ordered)


def _problem(document: documents.Document, root: Root, detail: ErrorDetails) -> problems.Problem:
    path = tuple(part for part in detail["loc"] if part != "[key]")
    kind, given = detail["type"], detail["input"]
    if kind == "missing":
        known = _section_at(root, path[:-1])
        what = known.model_fields[str(path[-1])].description if known is not None else None
        explained = f" ({what})" if what else ""
        return document.problem(path, f"the key is missing{explained}", key=True)
    if kind == "extra_forbidden":
        return document.problem(path, _unknown_key(document, root, path), key=True)
    if kind == "job_file":
        return document.problem(path, detail["ctx"]["message"], key=detail["loc"][-1] == "[key]")
    wanted = _WANTED.get(kind, detail["msg"])
    return document.problem(path, f"{_described(given)}; {wanted}")


def _described(given: object) -> str:
    if isinstance(given, documents.Scalar):
        if given.kind is documents.ScalarKind.NULL:
            return "there is no value"
        return f"this is {problems.shown(given.text)}"
    return "this is a list" if isinstance(given, list) else "this is a mapping"


def _unknown_key(document: documents.Document, root: Root, path: documents.Path) -> str:
    section = _section_at(root, path[:-1])
    known = tuple(section.model_fields) if section is not None else ()
    key = str(path[-1])
    parent: Any = document.data
    for part in path[:-1]:
        parent = parent[part]
    unused = [name for name in known if not isinstance(parent, Mapping) or name not in parent]
    close = problems.did_you_mean(key, unused)
    return f"unknown key {problems.shown(key)}; the keys here are {', '.join(known)}{close}"


def _section_at(root: Root, path: documents.Path) -> type[sections.Section] | None:
    """Return the model of the mapping at a path."""
    current: Any = root
    for part in path:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part)
        found = _section_in(field.annotation) if field is not None else None
        if found is None:
            return None
        current = found
    section: type[sections.Section] = current
    return section


def _section_in(annotation: Any) -> type[sections.Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, sections.Section):
        return annotation
    return next((found for a in get_args(annotation) if (found := _section_in(a)) is not None), None)
