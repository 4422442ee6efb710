"""Saved plans of variables: files that ``paceline plan --save`` writes and a job file names."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from paceline.errors import InvalidInput
from paceline.model import saved_plans
from paceline.model.variable_plans import Plan
from paceline.specs import checks, documents, problems

_HINT = "`paceline plan job.yaml --variables FILE --save FILE` writes one."


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Return the plan that a file (JSON or YAML) holds.

    Raises:
        errors.NotFound: there is no such file.
        errors.InvalidInput: it cannot be read, or is no plan.
    """
    file = os.fspath(path)
    document = documents.read(documents.decode(checks.read_bytes(path, _HINT), file), file)
    try:
        return saved_plans.read(plain(document.data))
    except ValueError as error:
        raise InvalidInput(f"{problems.visible(file)}: {error}", _HINT) from error


def plain(data: object) -> Any:
    """Return what was read with numbers and booleans for the leaves that YAML takes for these."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain(value) for value in data]
    return _leaf(data) if isinstance(data, documents.Scalar) else data


def _leaf(scalar: documents.Scalar) -> str | float | bool | None:
    if scalar.kind is documents.Kind.NULL:
        return None
    if scalar.kind is documents.Kind.BOOLEAN:
        return scalar.text.lower() in ("true", "yes", "on")
    for kind in (int, float) if scalar.is_number else ():
        with contextlib.suppress(ValueError):
            return kind(scalar.text)
    return scalar.text
