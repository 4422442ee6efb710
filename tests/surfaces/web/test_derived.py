"""Schemas that follow from dataclasses: what `documents.plain` makes of a value is what its schema takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic
import pytest

from paceline.model.explanations.findings import Severity
from paceline.model.instants import UnixSeconds
from paceline.model.roles import ReplicaId
from paceline.stores import encodings
from paceline.surfaces import documents
from paceline.surfaces.web.schemas import derived


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step.

    Attributes:
        low, high: the interval of its time,
            in seconds.
        of: who made it.
    """

    low: float
    high: float
    of: ReplicaId
    at: UnixSeconds | None = None
    severity: Severity = Severity.INFO
    within: tuple[Step, ...] = ()
    pairs: tuple[tuple[str, float], ...] = ()
    shares: Mapping[str, float] = dataclasses.field(default_factory=dict)
    lines: Sequence[str] = ()


STEP = Step(low=1.0, high=2.0, of=ReplicaId.parse("ps-0"))
WHOLE = dataclasses.replace(
    STEP, at=1_700_000_000.5, within=(STEP,), pairs=(("a", 1.0),), shares={"a": 0.5}, lines=("x",)
)


@pytest.mark.parametrize("value", [STEP, WHOLE])
def test_the_document_of_a_value_has_its_schema_and_is_read_back(value: Step) -> None:
    found = documents.plain(value)
    made = derived.schema(Step).model_validate(found)
    assert made.model_dump(mode="json") == found
    assert encodings.value(Step, found) == value


def test_moments_are_texts() -> None:
    assert documents.plain(WHOLE)["at"] == "2023-11-14T22:13:20.500Z"
    (at, nothing) = derived.schema(Step).model_json_schema()["$defs"]["Step"]["properties"]["at"]["anyOf"]
    assert (at["type"], at["format"], nothing["type"]) == ("string", "date-time", "null")
    with pytest.raises(ValueError, match="at is 'yesterday', not a time"):
        encodings.value(Step, {**documents.plain(STEP), "at": "yesterday"})


def test_what_the_docstring_says_of_fields_is_in_the_schema() -> None:
    described = derived.schema(Step).model_json_schema()["$defs"]["Step"]
    meanings = {name: field.get("description") for name, field in described["properties"].items()}
    assert described["description"] == "A step."
    assert meanings["low"] == meanings["high"] == "the interval of its time, in seconds."
    assert (meanings["of"], meanings["lines"]) == ("who made it.", None)


def test_fields_that_documents_lack_or_have_besides() -> None:
    made = derived.document(Step, "Steps", omit={"within", "shares"}, of=int, more=str | None)
    body: dict[str, Any] = {
        key: value for key, value in documents.plain(STEP).items() if key not in ("within", "shares")
    }
    whole = documents.document("Steps", {**body, "of": 3, "more": None})
    assert made.model_validate(whole).model_dump(mode="json") == whole
    for wrong in ({**whole, "within": []}, {**whole, "kind": "Step"}, {**whole, "of": "ps-0"}):
        with pytest.raises(pydantic.ValidationError):
            made.model_validate(wrong)
