"""Studies that take many runs: experiments, and searches for a better job file."""

from __future__ import annotations

from typing import Literal

from paceline.surfaces.web.schemas.bases import Document, Instant, Schema
from paceline.surfaces.web.schemas.measurements import FieldChange
from paceline.tuning.comparisons import VariantVerdict


class Study(Schema):
    """How far a study is.

    Attributes:
        is_complete: whether nothing is left to be run.
    """

    name: str
    kind: Literal["Experiment", "Tuning"]
    changed_at: Instant
    done: int
    planned: int
    is_complete: bool


class StudyList(Document):
    """Studies, the last changed first."""

    kind: Literal["StudyList"] = "StudyList"
    items: list[Study]


class Outcome(Schema):
    """What was measured of a run; speeds in stretches of time that follow each other."""

    examples_per_second: list[float]
    asked_cores: float | None
    used_cores: float | None
    failure: str


class Variant(Schema):
    """A job file with changes."""

    name: str
    changes: list[FieldChange]


class Repeat(Schema):
    """A run of a variant; ``cause`` is that of its being no faster, by its name."""

    variant: str
    number: int
    run: str
    outcome: Outcome
    cause: str


class Comparison(Schema):
    """A variant beside the baseline; of three numbers the first is the middle, then low and high."""

    variant: str
    runs: int
    examples_per_second: tuple[float, float, float] | None
    times: tuple[float, float, float] | None
    effect: float | None
    verdict: VariantVerdict
    causes: list[str]


class Experiment(Document):
    """Variants of a job, compared."""

    kind: Literal["Experiment"] = "Experiment"
    name: str
    source: str
    base: str
    variants: list[Variant]
    baseline: str
    repeats: int
    seconds: float
    done: list[Repeat]
    facts: list[tuple[str, str]]
    compared: list[Comparison]


class Judgement(Schema):
    """What a trial is worth against the best one before it."""

    kept: bool
    times: float
    low: float
    high: float
    why: str


class Trial(Schema):
    """A job that was run to see how it does; ``changes`` are the names of what was changed."""

    number: int
    run: str
    base: int | None
    changes: list[str]
    outcome: Outcome | None
    judgement: Judgement | None


class Result(Schema):
    """What came out of a search so far; null is what was not measured."""

    factor: float | None
    factor_low: float | None
    factor_high: float | None
    pairs: int
    examples_per_second_before: float | None
    examples_per_second_after: float | None
    auc_before: float | None
    auc_after: float | None
    auc_examples: int | None
    trials: int
    kept: int


class Tuning(Document):
    """A search for a better job file; ``ended`` says why it went no further, and is empty until then."""

    kind: Literal["Tuning"] = "Tuning"
    name: str
    job: str
    goal: str
    most_trials: int
    source: str
    best_source: str | None
    ended: str
    trials: list[Trial]
    result: Result
