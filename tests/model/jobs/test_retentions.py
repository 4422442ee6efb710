"""How long runs are kept in which detail."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.model.jobs.retentions import DAY_SECONDS, Retention, ageing
from paceline.model.jobs.runs import Detail, RunSummary
from paceline.model.jobs.statuses import JobPhase

RUN = RunSummary(
    name="a", phase=JobPhase.SUCCEEDED, message="", engine="local", directory="/", submitted_at=0.0,
    started_at=0.0, finished_at=0.0, ttl_after_finished_seconds=None, replicas="", labels={},
)  # fmt: skip
POLICY = Retention(runs_seconds=400 * DAY_SECONDS)


@pytest.mark.parametrize(
    ("days", "detail", "becomes"),
    [
        (14, Detail.FULL, "stays"),
        (15, Detail.FULL, Detail.MINUTES),
        (15, Detail.MINUTES, "stays"),
        (181, Detail.FULL, Detail.SUMMARY),
        (181, Detail.MINUTES, Detail.SUMMARY),
        (399, Detail.SUMMARY, "stays"),
        (401, Detail.SUMMARY, None),
        (401, Detail.FULL, None),
    ],
)
def test_what_becomes_of_a_run(days: int, detail: Detail, becomes: Detail | str | None) -> None:
    run = dataclasses.replace(RUN, detail=detail)
    found = ageing(run, POLICY, now=days * DAY_SECONDS)
    assert ("stays" if found is None else found.detail) == becomes


def test_what_goes_on_or_is_kept_for_ever_stays() -> None:
    assert ageing(dataclasses.replace(RUN, phase=JobPhase.RUNNING), POLICY, now=1e12) is None
    forever = Retention(full_seconds=None, minutes_seconds=None, runs_seconds=None)
    assert ageing(RUN, forever, now=1e12) is None
