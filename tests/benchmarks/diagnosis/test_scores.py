"""The scores of diagnosis."""

from __future__ import annotations

from typing import Any

from benchmarks.diagnosis import scores
from benchmarks.diagnosis.labels import HEALTHY


def _row(cause: str, said: str, told: list[str] | None = None) -> dict[str, Any]:
    return {"key": cause, "cause": cause, "said": said, "told": told or [], "also": [], "accepted": []}


def test_an_info_on_a_healthy_run_is_no_mistake_and_an_alarm_is_one() -> None:
    right = _row("compute-bound", "compute-bound", ["compute-bound"])
    remark = _row(HEALTHY, "compute-bound")
    alarm = _row(HEALTHY, "compute-bound", ["compute-bound"])
    assert scores.scores([right, remark]) == {"compute-bound": (1.0, 1.0)}
    assert scores.scores([right, remark, alarm]) == {"compute-bound": (0.5, 1.0)}
    assert [each.said for each in scores.mistakes([right, remark, alarm])] == ["compute-bound"]


def test_a_cause_that_is_missed_costs_recall_and_what_is_said_for_it_precision() -> None:
    rows = [_row("hang", "hang", ["hang"]), _row("hang", "killed", ["killed"]), _row("killed", "killed")]
    assert scores.scores(rows) == {"hang": (1.0, 0.5), "killed": (0.5, 1.0)}


def test_a_cause_that_may_stand_for_another_is_right() -> None:
    pair = {**_row("slow-disk", "memory-over-asked"), "accepted": ["memory-over-asked"]}
    assert scores.is_right(pair)
    assert scores.scores([pair]) == {"slow-disk": (None, 1.0)}
