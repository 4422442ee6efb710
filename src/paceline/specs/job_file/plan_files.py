"""Saved variable plans: files that ``paceline plan --save`` writes and that a job file can name."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from paceline.errors import InvalidInput
from paceline.model.variables import saved_plans
from paceline.model.variables.variable_plans import Plan
from paceline.specs.job_file import checks
from paceline.specs.yaml_text import documents, problems

#: A tag makes a boolean of any text.
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_HINT = "`paceline plan job.yaml --variables FILE --save FILE` writes one."


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Return the plan in a file (JSON or YAML).

    Raises:
        errors.NotFound: there is no such file.
        errors.InvalidInput: the file cannot be read, or is not a plan.
    """
    try:
        return saved_plans.read(load_plain(path, _HINT))
    except ValueError as error:
        raise InvalidInput(f"{problems.visible(os.fspath(path))}: {error}", _HINT) from error


def load_plain(path: str | os.PathLike[str], hint: str) -> Any:
    """Return the data of a file (YAML or JSON) as plain values.

    Raises:
        errors.NotFound: there is no such file; the error has the hint.
        errors.InvalidInput: the file cannot be read.
    """
    with problems.hinted(hint):
        return plain_text(checks.read_bytes(path, hint), file=os.fspath(path))


def plain_text(text: str | bytes, file: str = "job.yaml") -> Any:
    """Return the data of a text (YAML or JSON) as plain values.

    Raises:
        problems.DocumentError: the text cannot be read.
    """
    document = documents.read(documents.decode(text, file), file)
    if document.faults:
        raise problems.DocumentError(document.faults)
    return plain(document.data)


def plain(data: object) -> Any:
    """Return parsed data with the leaves as plain values: numbers, booleans, None or text."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain(value) for value in data]
    return _leaf(data) if isinstance(data, documents.Scalar) else data


def _leaf(scalar: documents.Scalar) -> str | float | bool | None:
    if scalar.kind is documents.ScalarKind.NULL:
        return None
    if scalar.kind is documents.ScalarKind.BOOLEAN:
        return _BOOLEANS.get(scalar.text.lower(), scalar.text)
    for kind in (int, float) if scalar.is_number else ():
        with contextlib.suppress(ValueError):
            return kind(scalar.text)
    return scalar.text
