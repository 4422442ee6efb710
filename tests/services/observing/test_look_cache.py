"""Looks that many share."""

from __future__ import annotations

import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import filled_homes

from paceline.errors import NotFound
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import jobs
from paceline.services.observing import diagnosis_runs
from paceline.services.observing.look_cache import MOST_JOBS, SNAPSHOT_SECONDS, LookCache


@pytest.fixture
def counted(api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the jobs of which a snapshot was made."""
    made: list[str] = []
    snapshot = jobs.Jobs.snapshot

    def counting(self: jobs.Jobs, name: str) -> object:
        made.append(name)
        return snapshot(self, name)

    monkeypatch.setattr(jobs.Jobs, "snapshot", counting)
    return made


def test_many_who_ask_at_once_get_one_look(api: jobs.Jobs, counted: list[str]) -> None:
    filled_homes.fill(api.home, "clicks", phase=JobPhase.RUNNING)
    now = [0.0]
    look_cache = LookCache(api, lambda: now[0])
    barrier = threading.Barrier(8)

    def ask(_: int) -> object:
        barrier.wait()
        return look_cache.snapshot(api.get("clicks"))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert counted == ["clicks"]
    assert all(each is found[0] for each in found)
    now[0] += SNAPSHOT_SECONDS
    assert look_cache.snapshot(api.get("clicks"), waits=True) is not found[0]
    assert counted == ["clicks", "clicks"]


def test_of_many_jobs_those_are_kept_that_were_asked_for_last(api: jobs.Jobs, counted: list[str]) -> None:
    names = [f"job-{number}" for number in range(MOST_JOBS + 1)]
    for name in names:
        filled_homes.fill(api.home, name, phase=JobPhase.RUNNING)
    look_cache = LookCache(api, lambda: 0.0)
    for name in names:
        look_cache.snapshot(api.get(name))
    look_cache.snapshot(api.get(names[-1]))
    assert counted == names
    look_cache.snapshot(api.get(names[0]))
    assert counted == [*names, names[0]]


def test_a_job_that_is_not_there_any_more(api: jobs.Jobs) -> None:
    look_cache = LookCache(api, lambda: 0.0)
    deleted = filled_homes.fill(api.home, "clicks")
    api.store.delete_run("clicks")
    with pytest.raises(NotFound):
        look_cache.look(deleted)
    filled_homes.fill(api.home, "clicks")
    assert look_cache.look(api.get("clicks")).recording.run.name == "clicks"


def test_what_was_seen_before_its_end_is_no_look_at_a_job_that_has_ended(api: jobs.Jobs) -> None:
    filled_homes.fill(api.home, "clicks", phase=JobPhase.RUNNING)
    look_cache = LookCache(api, lambda: 0.0)
    before = look_cache.course(api.get("clicks"))
    assert look_cache.snapshot(api.get("clicks")).run.phase is JobPhase.RUNNING
    state = api.store.load_state("clicks")
    api.store.save_state("clicks", dataclasses.replace(state, phase=JobPhase.SUCCEEDED), at=2e9)
    ended = api.get("clicks")
    assert look_cache.snapshot(ended).run.phase is JobPhase.SUCCEEDED
    assert look_cache.look(ended).recording.run.phase is JobPhase.SUCCEEDED
    assert look_cache.course(ended) is not before


def test_another_job_of_a_name_is_another_job(api: jobs.Jobs) -> None:
    filled_homes.fill(api.home, "clicks", phase=JobPhase.RUNNING)
    look_cache = LookCache(api, lambda: 0.0)
    assert look_cache.snapshot(api.get("clicks")).run.submitted_at == 1e9
    api.store.delete_run("clicks")
    filled_homes.fill(api.home, "clicks", phase=JobPhase.RUNNING, submitted_at=2e9)
    assert look_cache.snapshot(api.get("clicks")).run.submitted_at == 2e9
    assert look_cache.look(api.get("clicks")).recording.run.submitted_at == 2e9


def test_a_caller_that_can_have_the_last_look_does_not_wait(
    api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled_homes.fill(api.home, "clicks", phase=JobPhase.RUNNING)
    now = [0.0]
    look_cache = LookCache(api, lambda: now[0])
    first = look_cache.snapshot(api.get("clicks"))
    now[0] += SNAPSHOT_SECONDS
    begun, goes_on = threading.Event(), threading.Event()
    snapshot = jobs.Jobs.snapshot

    def slow(self: jobs.Jobs, name: str) -> object:
        begun.set()
        goes_on.wait(240)
        return snapshot(self, name)

    monkeypatch.setattr(jobs.Jobs, "snapshot", slow)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look_cache.snapshot, api.get("clicks"), waits=True)
        begun.wait(240)
        assert look_cache.snapshot(api.get("clicks")) is first
        goes_on.set()
        assert looking.result() is not first


@pytest.mark.parametrize(
    ("name", "owner", "seconds", "phase"),
    [
        ("snapshot", jobs.Jobs, SNAPSHOT_SECONDS, JobPhase.RUNNING),
        ("look", diagnosis_runs.Looker, diagnosis_runs.LOOK_SECONDS, JobPhase.SUCCEEDED),
    ],
)
def test_it_is_seen_anew_while_a_page_has_what_was_seen_last(
    api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch, name: str, owner: type, seconds: float, phase: JobPhase
) -> None:
    filled_homes.fill(api.home, "clicks", phase=phase)
    now = [0.0]
    see = getattr(LookCache(api, lambda: now[0]), name)
    first = see(api.get("clicks"))
    goes_on = threading.Event()
    really = getattr(owner, name)

    def slow(*arguments: object) -> object:
        goes_on.wait(240)
        return really(*arguments)

    monkeypatch.setattr(owner, name, slow)
    now[0] += seconds
    assert see(api.get("clicks")) is first
    goes_on.set()
    deadline = time.monotonic() + 240
    while (second := see(api.get("clicks"))) is first:
        assert time.monotonic() < deadline
    # What was seen long ago is too old for a page that comes then.
    now[0] += 2 * seconds
    assert see(api.get("clicks")) is not second
