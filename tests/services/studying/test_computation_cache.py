"""What is computed once for all who ask."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from support import filled_homes
from support.clocks import Clock

from paceline.errors import InvalidInput
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs, state_dirs
from paceline.services.observing.look_cache import LookCache
from paceline.services.studying import computation_cache, predictions
from paceline.services.studying.computation_cache import Advisor


class Made(str):
    """A model that was made."""

    measured = SimpleNamespace(layout=None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def look_cache(api: jobs.Jobs, clock: Clock) -> LookCache:
    return LookCache(api, clock)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the jobs whose speed was looked into."""
    made: list[str] = []

    def model(recording: object) -> Made:
        made.append(recording.run.name)  # type: ignore[attr-defined]
        if len(made) == 1 and made[0] == "unmeasured":
            raise InvalidInput("it was not measured")
        return Made(f"model {len(made)}")

    monkeypatch.setattr(predictions, "model", model)
    monkeypatch.setattr(predictions, "forecast_of", lambda model, layout: None)
    return made


def run_of(home: state_dirs.Home, name: str, phase: JobPhase = JobPhase.SUCCEEDED) -> Run:
    return filled_homes.fill(home, name, phase=phase)


def test_of_a_job_that_has_ended_it_is_computed_once(
    api: jobs.Jobs, look_cache: LookCache, clock: Clock, computed: list[str]
) -> None:
    advisor, run = Advisor(clock), run_of(api.home, "done")
    found = {advisor.model(None, run, look_cache).result(timeout=240) for _ in range(3)}
    clock.now += 1e6
    assert {*found, advisor.model(None, run, look_cache).result(timeout=240)} == {"model 1"}
    assert computed == ["done"]


def test_of_a_job_that_runs_it_grows_old(
    api: jobs.Jobs, look_cache: LookCache, clock: Clock, computed: list[str]
) -> None:
    advisor, run = Advisor(clock), run_of(api.home, "runs", JobPhase.RUNNING)
    assert advisor.model(None, run, look_cache).result(timeout=240) == "model 1"
    clock.now += computation_cache.YOUNG_SECONDS + 1
    # Who asks first gets the old one at once.
    assert advisor.model(None, run, look_cache).result(timeout=240) == "model 1"
    for _ in range(1000):
        if advisor.model(None, run, look_cache).result(timeout=240) == "model 2":
            break
        threading.Event().wait(0.01)
    assert computed == ["runs", "runs"]


def test_what_could_not_be_computed_is_tried_again(
    api: jobs.Jobs, look_cache: LookCache, clock: Clock, computed: list[str]
) -> None:
    advisor, run = Advisor(clock), run_of(api.home, "unmeasured")
    with pytest.raises(InvalidInput):
        advisor.model(None, run, look_cache).result(timeout=240)
    with pytest.raises(InvalidInput):
        advisor.model(None, run, look_cache).result(timeout=240)
    clock.now += computation_cache.FAILED_SECONDS
    with pytest.raises(InvalidInput):  # Still: it is computed anew meanwhile.
        advisor.model(None, run, look_cache).result(timeout=240)
    for _ in range(1000):
        if advisor.model(None, run, look_cache).exception(timeout=240) is None:
            break
        threading.Event().wait(0.01)
    assert computed == ["unmeasured"] * 2


def test_as_many_are_kept_as_people_look_at(
    api: jobs.Jobs, look_cache: LookCache, clock: Clock, computed: list[str]
) -> None:
    advisor = Advisor(clock)
    runs = [run_of(api.home, f"done-{number}") for number in range(computation_cache.MOST_JOBS + 1)]
    for run in [*runs, runs[-1]]:
        advisor.model(None, run, look_cache).result(timeout=240)
    assert len(computed) == len(runs)
    advisor.model(None, runs[0], look_cache).result(timeout=240)
    assert computed[-1] == "done-0"
