"""What comes before experiments, and when windows of time cannot be compared because of it."""

from __future__ import annotations

import pytest
from support import cases

from paceline.probing import occupations
from paceline.probing.occupations import Occupation

#: One worker makes no steps from second 10 to 16; the evaluator computes from second 20 to 24.
JOB = cases.edited(
    cases.recording({"worker-0": {}, "worker-1": {}, "evaluator-0": {"cpu_cores": 0.9}}, seconds=30),
    samples=lambda sample: sample if 20 < sample.at - cases.START <= 24 else None,
    steps=lambda report: (
        None if str(report.replica) == "worker-0" and 10 < report.at - cases.START < 16 else report
    ),
)


def span(since: float, until: float) -> tuple[float, float]:
    return cases.START + since, cases.START + until


@pytest.mark.parametrize(
    ("known", "occupation"),
    [(8.0, None), (12.0, None), (15.5, Occupation.STAND), (21.0, Occupation.EVALUATION), (28.0, None)],
)
def test_what_comes_first(known: float, occupation: Occupation | None) -> None:
    until = cases.START + known
    seen = cases.edited(JOB, steps=lambda report: report if report.at <= until else None)
    assert occupations.current(seen, until, until + 2.0) is occupation


def test_spans_of_which_one_has_more_of_it_cannot_be_compared() -> None:
    assert occupations.difference(JOB, [span(2, 5), span(6, 9)]) is None
    assert occupations.difference(JOB, [span(6, 9), span(11, 14)]) is Occupation.STAND
    assert occupations.difference(JOB, [span(11, 14), span(12.5, 15.5)]) is None, "it stands in both"
    assert occupations.difference(JOB, [span(17, 20), span(21, 24)]) is Occupation.EVALUATION


def test_a_trainer_that_is_paused_stands_still_by_intent() -> None:
    assert occupations.difference(JOB, [span(6, 9), span(11, 14)], paused=["worker-0"]) is None
