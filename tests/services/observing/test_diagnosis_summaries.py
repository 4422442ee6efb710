"""How jobs do, in a line each."""

from __future__ import annotations

import dataclasses
import functools
import math
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import filled_homes

from paceline.errors import EngineError, StoreError
from paceline.model.jobs.runs import LOCAL, Run
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.local import jobs
from paceline.services.observing.diagnosis_summaries import SummaryRefresher, Watched, trend
from paceline.services.observing.look_cache import LookCache
from paceline.stores import recordings

RECORDING = (
    Path(__file__).parents[3]
    / "benchmarks/diagnosis/recordings/ps-cpu-bound.gross.deepfm-large-plain-4.parquet"
)


def report(at: float, examples: int | None) -> StepReport:
    return StepReport(replica=ReplicaId(Role.WORKER, 0), attempt=1, at=at, examples=examples)


def test_a_trend_has_gaps_where_no_trainer_reported() -> None:
    told = [report(0.0, 10), report(10.0, 20), report(11.0, None), report(40.0, 30)]
    assert trend(told, 4) == (1.0, 2.0, None, 3.0)
    assert trend([], 4) == trend([report(0.0, 10)], 4) == ()


def test_over_next_to_no_time_there_is_no_trend() -> None:
    assert trend([report(0.0, 10), report(1e-320, 20)], 2) == ()


@given(
    st.lists(st.builds(report, st.floats(0, 1e6), st.none() | st.integers(0, 10**9)), max_size=20),
    st.integers(1, 30),
)
def test_a_trend_has_all_examples(told: list[StepReport], stretches: int) -> None:
    found = trend(told, stretches)
    if found:
        assert len(found) == stretches
        times = [each.at for each in told if each.examples is not None]
        width = (max(times) - min(times)) / stretches
        assert sum(filter(None, found)) * width == pytest.approx(sum(each.examples or 0 for each in told))


def keeping(api: jobs.Jobs, look_cache: LookCache) -> SummaryRefresher:
    return SummaryRefresher(api.store, LOCAL, functools.partial(Watched, api, look_cache), api.clock)


@pytest.fixture
def refresher(api: jobs.Jobs) -> SummaryRefresher:
    return keeping(api, LookCache(api, lambda: 0.0))


def test_a_job_that_has_ended_is_looked_at_once(
    api: jobs.Jobs, refresher: SummaryRefresher, tmp_path: Path
) -> None:
    name = filled_homes.keep(api.store, recordings.read(RECORDING), tmp_path)
    refresher.go_round()
    found = api.store.diagnosis(name)
    assert found is not None
    assert (found.code, found.severity) == ("PS101", "warning")
    assert found.examples_per_second == pytest.approx(18_300, rel=0.05)
    assert len(found.trend) == 20
    assert found.imbalance == pytest.approx(1.04, abs=0.01)
    assert found.codes[0] == "PS101"
    assert found.used_cores == pytest.approx(0.41, abs=0.01)
    assert api.store.unconcluded(ended_before=math.inf) == []
    refresher.go_round()
    assert api.store.diagnosis(name) == found


def test_one_job_that_cannot_be_looked_at_keeps_no_other_from_it(
    api: jobs.Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "bad", "worse"):
        filled_homes.fill(api.home, name, loads=(0.5, 0.9), steps=3)
    look_cache = LookCache(api, lambda: 0.0)
    look = look_cache.look

    def broken(run: Run) -> object:
        if run.name == "bad":
            raise StoreError("it is damaged")
        return look(run) if run.name == "good" else 1 / 0

    monkeypatch.setattr(look_cache, "look", broken)
    refresher = keeping(api, look_cache)
    refresher.go_round()
    assert api.store.diagnosis("good") is not None
    assert api.store.diagnosis("bad") is None
    assert refresher.failures == 1


def test_it_ends_when_it_is_told(refresher: SummaryRefresher) -> None:
    thread = threading.Thread(target=refresher.run)
    thread.start()
    refresher.end()
    thread.join(240)
    assert not thread.is_alive()


def test_a_job_that_cannot_be_deleted_keeps_no_other_one(
    api: jobs.Jobs, refresher: SummaryRefresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = dataclasses.replace(filled_homes.spec_of("first"), ttl_after_finished_seconds=1.0)
    for name in ("first", "second"):
        filled_homes.fill(api.home, name, spec=dataclasses.replace(spec, name=name))
    delete = jobs.Jobs.delete

    def refused(self: jobs.Jobs, name: str) -> None:
        if name == tried[0]:
            raise EngineError("its group is busy")
        delete(self, name)

    tried = [run.name for run in api.runs()]
    monkeypatch.setattr(jobs.Jobs, "delete", refused)
    refresher.go_round()
    assert [run.name for run in api.runs()] == tried[:1]
