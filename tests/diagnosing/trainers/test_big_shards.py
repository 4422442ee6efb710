"""Trainers that go on when the others have ended."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.trainers.big_shards import big_shard
from paceline.diagnosing.trainers.idle_workers import idle_workers
from paceline.diagnosing.trainers.slow_hosts import slow_host
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording

LOADS = {"ps-0": cases.SERVER, **{f"worker-{index}": cases.TRAINER for index in range(3)}}
EARLY = {"worker-0": (0, 20), "worker-1": (0, 20)}
ENDED = {"phase": ReplicaPhase.SUCCEEDED}
OVER = {"worker-0": ENDED, "worker-1": ENDED}


def _recording(**more: Any) -> Recording:
    return cases.recording(LOADS, **{"seconds": 60, "trained": EARLY, "rows": OVER, **more})


def _after(recording: Recording, second: int, **fields: Any) -> Recording:
    """Return the recording with other samples of worker-0 after a moment."""
    made = [
        dataclasses.replace(each, **fields)
        if str(each.replica) == "worker-0" and each.at > cases.START + second
        else each
        for each in recording.samples
    ]
    return dataclasses.replace(recording, samples=made)


def test_one_that_goes_on_is_found_while_it_runs() -> None:
    (cause,) = found(big_shard, _recording())
    assert cause.what == (
        "worker-2 has more to do: it goes on at the usual rate, 40s so far after the others ended."
    )
    assert cause.subjects == ("worker-2",)
    assert [each.text for each in cause.evidence] == [
        "trained so far: worker-2 60 s, worker-0 20 s, worker-1 20 s"
    ]
    assert cause.gain is not None
    assert cause.gain.high == pytest.approx(60 / (100 / 3))


def test_and_when_all_is_over() -> None:
    (cause,) = found(big_shard, _recording(phase=JobPhase.SUCCEEDED, rows={}))
    assert "40s after the others ended" in cause.what


def test_it_is_no_slow_host_and_no_idle_worker() -> None:
    assert not found(slow_host, _recording(seconds=30))
    assert not found(idle_workers, _recording())


def test_one_that_goes_on_slowly_is_slow() -> None:
    slow = {**cases.STEPS, "steps": 20, "examples": 10_240}
    steps = {"worker-0": cases.STEPS, "worker-1": cases.STEPS, "worker-2": slow}
    assert not found(big_shard, _recording(steps=steps))


def test_the_end_of_a_common_queue_is_none() -> None:
    near = {"worker-0": (0, 56), "worker-1": (0, 57)}
    assert not found(big_shard, _recording(trained=near))


def test_a_little_longer_gains_too_little() -> None:
    assert not found(big_shard, _recording(trained={"worker-0": (0, 54), "worker-1": (0, 54)}))


def test_trainers_that_failed_or_restart_have_not_ended() -> None:
    for phase in (ReplicaPhase.FAILED, ReplicaPhase.BACKING_OFF, ReplicaPhase.STARTING):
        rows = {"worker-0": {"phase": phase}, "worker-1": ENDED}
        assert not found(big_shard, _recording(rows=rows))
    again = {"worker-0": {"attempt": 2, "restarts": 1}, "worker-1": ENDED}
    assert not found(big_shard, _recording(rows=again))


def test_one_that_rests_and_looks_now_and_then_has_ended() -> None:
    waiting = _recording(rows={"worker-1": ENDED})
    assert found(big_shard, _after(waiting, 20, cpu_cores=0.01, voluntary_switches=40))
    assert found(big_shard, _after(waiting, 20, cpu_cores=0.01, network_sent_bytes=2_000))


def test_one_that_is_stuck_works_or_is_not_measured_has_not_ended() -> None:
    waiting = _recording(rows={"worker-1": ENDED})
    assert not found(big_shard, _after(waiting, 20, cpu_cores=0.001, voluntary_switches=0))
    assert not found(big_shard, _after(waiting, 20, cpu_cores=0.01, network_sent_bytes=0))
    assert not found(big_shard, _after(waiting, 20, cpu_cores=0.5, voluntary_switches=40))
    assert not found(big_shard, _after(waiting, 20, cpu_cores=None))


def test_one_done_of_three_is_no_sign() -> None:
    assert not found(big_shard, _recording(trained={"worker-0": (0, 20)}))


def test_workers_that_were_taken_away_do_not_count() -> None:
    recording = _recording(trained={"worker-1": (0, 20), "worker-2": (0, 20)}, rows={})
    spec = recording.run.spec.with_workers(1)
    less = dataclasses.replace(recording, run=dataclasses.replace(recording.run, spec=spec))
    assert not found(big_shard, less)
