"""Runs side by side."""

from __future__ import annotations

from typing import Literal

from paceline.model.explanations.findings import Severity
from paceline.surfaces.web.schemas.bases import Document, Schema
from paceline.surfaces.web.schemas.runs import Phase
from paceline.tuning.comparisons import VariantVerdict


class Range(Schema):
    """A value, and between which it lies with 90 %."""

    middle: float
    low: float
    high: float


class Reason(Schema):
    """A cause, in short."""

    code: str
    name: str
    what: str
    severity: Severity


class Side(Schema):
    """A run beside the first one; null is what was not measured.

    Attributes:
        seconds: over which its speed was measured.
        times: as fast as the first one.
        learning: that it learns worse than the first one; empty: nothing shows it.
        loss_alike: after as many examples as all of them have seen.
        diff: of its job file, from that of the first one.
    """

    name: str
    phase: Phase
    seconds: float | None
    examples_per_second: Range | None
    times: Range | None
    verdict: VariantVerdict
    learning: str
    loss: float | None
    loss_alike: float | None
    auc: float | None
    asked_cores: float | None
    used_cores: float | None
    causes: list[Reason]
    diff: str
    facts: dict[str, str]


class RunComparison(Document):
    """Runs side by side; the others are compared with the first.

    Attributes:
        examples: after which their losses are compared; null: not known.
    """

    kind: Literal["RunComparison"] = "RunComparison"
    examples: int | None
    items: list[Side]
