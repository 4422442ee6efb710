"""Layouts that a job could have, rated by the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from paceline.model.studies.tunings import Objective
from paceline.modelling import predictions
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout
from paceline.modelling.predictions import Speed
from paceline.tuning.shapes import JobShape

#: Among layouts whose scores differ by at most this share, the smallest one is the best.
AS_GOOD = 0.02
_FIELDS = tuple(field.name for field in dataclasses.fields(JobShape))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout that a job could have.

    Attributes:
        cores: the cores that the job would ask for; None: they are not limited.
    """

    shape: JobShape
    layout: ModelLayout
    cores: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """A candidate with its predicted speed and its score."""

    candidate: Candidate
    speed: Speed
    score: float


def rated(candidates: Iterable[Candidate], costs: Costs, objective: Objective) -> list[Rated]:
    """Return the candidates within the limits of the objective, with their predicted speeds."""
    found = []
    every = list(candidates)
    speeds = predictions.speeds([(each.layout, costs) for each in every])
    for each, speed in zip(every, speeds, strict=True):
        if objective.allows(speed.examples_per_second, each.cores):
            score = objective.score(speed.examples_per_second, each.cores)
            found.append(Rated(candidate=each, speed=speed, score=score))
    return found


def best(found: Sequence[Rated]) -> Rated | None:
    """Return the smallest candidate whose score is within `AS_GOOD` of the highest; None: there is none."""
    if not found:
        return None
    least = max(each.score for each in found) * (1 - AS_GOOD)
    return min((each for each in found if each.score >= least), key=_size)


def _size(each: Rated) -> tuple[float, int, float]:
    layout = each.candidate.layout
    return each.candidate.cores or 0.0, len(layout.servers) + layout.trainer_count, -each.score


def promising(now: JobShape, found: Sequence[Rated]) -> Iterator[Rated]:
    """Yield the best candidate, and for each field the best of those that differ from ``now`` in it alone."""
    alone = [
        [each for each in found if _differences(now, each.candidate.shape) == {field}] for field in _FIELDS
    ]
    told: list[JobShape] = []
    for group in (found, *alone):
        chosen = best(group)
        if chosen is not None and chosen.candidate.shape not in told:
            told.append(chosen.candidate.shape)
            yield chosen


def _differences(one: JobShape, other: JobShape) -> set[str]:
    return {name for name in _FIELDS if getattr(one, name) != getattr(other, name)}
