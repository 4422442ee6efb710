"""Job files: read, checked and turned into a `JobSpec`, or refused with everything that is wrong."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import pydantic
from pydantic_core import ErrorDetails

from paceline import errors
from paceline.model import findings, jobs
from paceline.specs import conversions, documents, problems, sections, shapes

_WANTED = {
    "model_type": "a mapping (key: value) is wanted",
    "dict_type": "a mapping (key: value) is wanted",
    "list_type": "a list is wanted: [a, b] or one '- item' a line",
}

#: Only the first of these many are put into words; 20 are shown.
_MAX_TRANSLATED = 500


@dataclasses.dataclass(frozen=True)
class JobFile:
    """A job file that was read.

    Attributes:
        spec: what it asks for.
        text: its text, as submitted.
        file: its name, as positions show it.
        document: its data and where each part stands.
    """

    spec: jobs.JobSpec
    text: str
    file: str
    document: documents.Document = dataclasses.field(repr=False, compare=False)

    @property
    def path(self) -> pathlib.Path:
        """Where the file is; ``working_dir`` counts from its folder."""
        return pathlib.Path(self.file)

    def position(self, path: documents.Path, *, key: bool = False) -> findings.Position:
        """Return where a field such as ``("spec", "roles", "ps", "cpu")`` stands, or the nearest above it.

        Args:
            path: keys and indices from the top.
            key: the place of the key instead of that of its value.
        """
        return self.document.position(path, key=key)


def load_job(path: str | os.PathLike[str]) -> JobFile:
    """Return the job file at a path.

    Raises:
        errors.NotFound: there is no such file.
        errors.InvalidInput: it cannot be read as text; `problems.JobFileError` when it is no job.
    """
    name = os.fspath(path)
    shown = problems.visible(name)
    try:
        with open(name, "rb") as stream:
            data = stream.read(documents.MAX_BYTES + 1)
    except FileNotFoundError as error:
        hint = "`paceline init` writes a job file to start from."
        raise errors.NotFound(f"{shown}: there is no such file", hint) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise errors.InvalidInput(f"{shown}: the file cannot be read: {reason}") from error
    return parse_job(data, file=name)


def parse_job(text: str | bytes, file: str = "job.yaml") -> JobFile:
    """Return the job that a text describes.

    Args:
        text: the YAML, or the bytes of the file.
        file: its name, for positions.

    Raises:
        problems.JobFileError: what is wrong, everything at once.
    """
    text = documents.decode(text, file)
    document = documents.read(text, file)
    if sections.is_empty(document.data):
        raise problems.failure(
            file, document.lines, (1, 1), "the file is empty; a job file starts with apiVersion"
        )
    if not isinstance(document.data, dict):
        what = "a list" if isinstance(document.data, list) else "a single text"
        message = f"the file is {what}; a job file is a mapping that starts with apiVersion"
        raise problems.failure(file, document.lines, document.place(()), message)
    return JobFile(_checked(document), text, file, document)


def _checked(document: documents.Document) -> jobs.JobSpec:
    try:
        section = shapes.JobSection.model_validate(document.data)
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False, include_input=True)[:_MAX_TRANSLATED]
        raise _error([*document.faults, *(_problem(document, detail) for detail in details)]) from error
    found = [*document.faults, *conversions.contradictions(document, section)]
    if found:
        raise _error(found)
    return conversions.job_spec(section, tuple(document.data["spec"]["roles"]))


def _error(found: Iterable[problems.Problem]) -> problems.JobFileError:
    unique = {(problem.position, problem.message): problem for problem in found}
    ordered = sorted(unique.values(), key=lambda p: (p.position.line, p.position.column))
    return problems.JobFileError(ordered)


def _problem(document: documents.Document, detail: ErrorDetails) -> problems.Problem:
    path = tuple(part for part in detail["loc"] if part != "[key]")
    kind, given = detail["type"], detail["input"]
    if kind == "missing":
        known = _section_at(path[:-1])
        what = known.model_fields[str(path[-1])].description if known is not None else None
        explained = f" ({what})" if what else ""
        return document.problem(path, f"the key is missing{explained}", key=True)
    if kind == "extra_forbidden":
        return document.problem(path, _unknown_key(document, path), key=True)
    if kind == "job_file":
        return document.problem(path, detail["ctx"]["message"], key=detail["loc"][-1] == "[key]")
    wanted = _WANTED.get(kind, detail["msg"])
    return document.problem(path, f"{_described(given)}; {wanted}")


def _described(given: object) -> str:
    if isinstance(given, documents.Scalar):
        if given.kind is documents.Kind.NULL:
            return "there is no value"
        return f"this is {problems.shown(given.text)}"
    return "this is a list" if isinstance(given, list) else "this is a mapping"


def _unknown_key(document: documents.Document, path: documents.Path) -> str:
    section = _section_at(path[:-1])
    known = tuple(section.model_fields) if section is not None else ()
    key = str(path[-1])
    parent: Any = document.data
    for part in path[:-1]:
        parent = parent[part]
    unused = [name for name in known if not isinstance(parent, Mapping) or name not in parent]
    close = problems.did_you_mean(key, unused)
    return f"unknown key {problems.shown(key)}; the keys here are {', '.join(known)}{close}"


def _section_at(path: documents.Path) -> type[sections.Section] | None:
    """Return the model of the mapping at a path."""
    current: Any = shapes.JobSection
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
