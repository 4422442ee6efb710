"""The base of all sections of a job file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from paceline.specs.yaml_text import documents


class Section(BaseModel):
    """A mapping with known keys only. A key without a value counts as not given."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {k: v for k, v in value.items() if not is_empty(v)}


def is_empty(value: object) -> bool:
    """Return whether a value is YAML's null: nothing after the colon, ``~`` or ``null``."""
    return isinstance(value, documents.Scalar) and value.kind is documents.ScalarKind.NULL
