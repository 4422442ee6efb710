"""Which ranks wait in a collective call while no step is made, and which ranks never entered it.

Ranks send step reports even while they make no step. Such a report says that no step was made, and how long
the rank waited meanwhile for the gradients of other ranks or for its input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress.silences import Silence
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Evidence
from paceline.model.measures import rates
from paceline.model.measures.samples import StepReport
from paceline.model.words import listed

MOSTLY = Threshold(
    "collectives.mostly", 0.8, Unit.SHARE,
    means="A rank waits in all-reduce, or for its input, if it spends at least this share of its time "
    "without a step there. A rank that comes to the all-reduce late spends less.",
)  # fmt: skip


def waiting(case: Case, trainers: Sequence[Silence]) -> list[Silence]:
    """Return the trainers that have waited in all-reduce since their last step."""
    mostly = case.value(MOSTLY)
    return [each for each in trainers if (_share(case, each, "all_reduce_seconds") or 0.0) >= mostly]


def evidence(case: Case, trainers: Sequence[Silence], found: Sequence[Silence]) -> Iterator[Evidence]:
    """Yield the evidence of which trainers wait for others, and which wait for their input instead."""
    if found:
        names = listed(rank.replica.replica for rank in found)
        yield Evidence(
            text=f"{names} {'waits' if len(found) == 1 else 'wait'} in all-reduce since",
            sources=(case.source("all_reduce_seconds", [rank.replica for rank in found], steps=True),),
        )
    mostly = case.value(MOSTLY)
    reading = [rank for rank in trainers if (_share(case, rank, "input_wait_seconds") or 0.0) >= mostly]
    if reading:
        names = listed(rank.replica.replica for rank in reading)
        yield Evidence(
            text=f"{names} {'waits' if len(reading) == 1 else 'wait'} for input since",
            sources=(case.source("input_wait_seconds", [rank.replica for rank in reading], steps=True),),
        )


def _share(case: Case, trainer: Silence, field: str) -> float | None:
    """Return the share of its time without a step that a trainer spent on a field; None: not reported.

    Args:
        case: the measurements.
        trainer: the trainer, and since when it makes no step.
        field: the field of step reports that has the seconds.
    """

    def seconds(report: StepReport) -> float | None:
        value: float | None = getattr(report, field)
        return value

    later = [
        each
        for each in case.reports.get(trainer.replica.replica, ())
        if each.at > trainer.since and not each.steps
    ]
    return rates.rate(later, seconds)
