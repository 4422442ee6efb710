"""Finished runs grow old."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import pytest
from support import filled_homes

from paceline.errors import InvalidInput
from paceline.model.jobs.retentions import DAY_SECONDS, Retention
from paceline.model.jobs.runs import LOCAL, Detail
from paceline.model.jobs.statuses import JobPhase
from paceline.services import retentions
from paceline.services.local import jobs
from paceline.services.observing import diagnosis_summaries
from paceline.services.observing.diagnosis_summaries import SummaryRefresher, Watched
from paceline.services.observing.look_cache import LookCache

ENDED = 1e9 + 11


@pytest.fixture
def old(api: jobs.Jobs) -> jobs.Jobs:
    """Jobs of which one has ended 15 days ago; ``api`` with that clock."""
    folder = api.home.folder("old").path
    for each in ("replicas/ps-0.1/spool.jsonl", "traces/0001/worker-0.1.parquet", "logs/ps-0.1.log"):
        (folder / each).parent.mkdir(parents=True)
        (folder / each).write_text("x")
    filled_homes.fill(api.home, "old", loads=(0.5, 0.9), steps=3)
    filled_homes.fill(api.home, "live", phase=JobPhase.RUNNING, loads=(0.5,))
    return dataclasses.replace(api, clock=lambda: ENDED + 15 * DAY_SECONDS)


def files(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def test_it_is_said_first_and_then_done(old: jobs.Jobs) -> None:
    assert [(each.run.name, each.detail) for each in old.age(dry_run=True)] == [("old", Detail.MINUTES)]
    assert old.get("old").detail is Detail.FULL
    assert [each.run.name for each in old.age()] == ["old"]
    run = old.get("old")
    assert run.detail is Detail.MINUTES
    assert "since 2001-09-24 samples and steps are kept in intervals of a minute" in run.notes[-1]
    # What was found in it is kept before it cannot be found any more.
    assert old.store.conclusion("old") is not None
    folder = old.home.folder("old").path
    assert files(folder) == {"traces/0001/worker-0.1.parquet", "logs/ps-0.1.log"}
    assert old.age() == []


def test_the_summary_and_the_end(old: jobs.Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    why = diagnosis_summaries.conclude(old, "old")
    assert why is None
    found, summary = old.recording("old").conclusion, old.store.diagnosis("old")
    assert found is not None
    later = dataclasses.replace(old, clock=lambda: ENDED + 181 * DAY_SECONDS)
    assert [each.detail for each in later.age()] == [Detail.SUMMARY]
    assert later.store.samples("old") == []
    assert later.recording("old").conclusion == found
    assert later.store.diagnosis("old") == summary
    assert files(later.home.folder("old").path) == {"logs/ps-0.1.log"}
    monkeypatch.setenv(retentions.RUNS, "200d")
    last = dataclasses.replace(old, clock=lambda: ENDED + 201 * DAY_SECONDS)
    assert [each.detail for each in last.age()] == [None]
    assert [run.name for run in last.runs()] == ["live"]
    assert not last.home.folder("old").path.exists()


def test_a_server_does_it_by_itself(old: jobs.Jobs) -> None:
    watched = functools.partial(Watched, old, LookCache(old, lambda: 0.0))
    refresher = SummaryRefresher(old.store, LOCAL, watched, old.clock)
    refresher.go_round()
    assert old.get("old").detail is Detail.MINUTES
    assert refresher.failures == 0


def test_a_policy_is_said_by_the_environment() -> None:
    assert retentions.of_environment({}) == Retention()
    said = {retentions.FULL: "2d", retentions.MINUTES: "forever", retentions.RUNS: "365d"}
    assert retentions.of_environment(said) == Retention(
        full_seconds=2 * DAY_SECONDS, minutes_seconds=None, runs_seconds=365 * DAY_SECONDS
    )
    with pytest.raises(InvalidInput, match="PACELINE_KEEP_RUNS: 'soon' is not a duration"):
        retentions.of_environment({retentions.RUNS: "soon"})
