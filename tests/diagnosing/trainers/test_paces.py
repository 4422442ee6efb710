"""Rates of trainers beside each other."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import cases

from paceline.diagnosing.cases import Case
from paceline.diagnosing.trainers import paces
from paceline.model.measures.recordings import Recording

LOADS = {"ps-0": cases.SERVER, **{f"worker-{index}": cases.TRAINER for index in range(3)}}
HALF = {**cases.STEPS, "steps": 20, "examples": 10_240}


def _slow(recording: Recording) -> list[str]:
    return [str(each.trainer.replica) for each in paces.stragglers(Case.of(recording))]


def _steps(**own: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"worker-{index}": own.get(f"worker_{index}", cases.STEPS) for index in range(3)}


def test_a_trainer_below_the_others_is_a_straggler() -> None:
    recording = cases.recording(LOADS, steps=_steps(worker_2=HALF))
    (found,) = paces.stragglers(Case.of(recording))
    assert (str(found.trainer.replica), found.share) == ("worker-2", 0.5)


def test_two_of_three_may_be_slow() -> None:
    assert _slow(cases.recording(LOADS, steps=_steps(worker_1=HALF, worker_2=HALF))) == [
        "worker-1",
        "worker-2",
    ]


def test_a_little_slower_is_none() -> None:
    little = {**cases.STEPS, "steps": 31, "examples": 31 * 512}
    assert not _slow(cases.recording(LOADS, steps=_steps(worker_2=little)))


def test_batches_of_other_sizes_are_not_compared() -> None:
    small = {**cases.STEPS, "steps": 40, "examples": 5_120}
    assert not _slow(cases.recording(LOADS, steps=_steps(worker_2=small)))


def test_without_examples_steps_are_compared() -> None:
    reports = {name: {**each, "examples": None} for name, each in _steps(worker_2=HALF).items()}
    (found,) = paces.stragglers(Case.of(cases.recording(LOADS, steps=reports)))
    assert found.pace.unit == "steps"


def test_only_the_time_that_all_train_counts() -> None:
    # worker-2 joined for the last seconds, in which all are as slow.
    recording = cases.recording(LOADS, trained={"worker-2": (20, 30)})
    slow_end = [
        dataclasses.replace(each, examples=10_240, steps=20) if each.at > cases.START + 20 else each
        for each in recording.steps
    ]
    assert not _slow(dataclasses.replace(recording, steps=slow_end))


def test_too_little_time_together_says_nothing() -> None:
    assert not _slow(cases.recording(LOADS, steps=_steps(worker_2=HALF), trained={"worker-2": (27, 30)}))


def test_pauses_of_the_chief_are_not_its_pace() -> None:
    recording = cases.recording(LOADS)
    paused = [
        dataclasses.replace(each, steps=2, examples=1_024)
        if str(each.replica) == "worker-0" and each.at > cases.START + 18
        else each
        for each in recording.steps
    ]
    assert not _slow(dataclasses.replace(recording, steps=paused))


def test_reports_without_intervals_have_no_rate() -> None:
    recording = cases.recording(LOADS, steps=_steps(worker_2=HALF))
    timeless = [dataclasses.replace(each, interval_seconds=None) for each in recording.steps]
    assert not _slow(dataclasses.replace(recording, steps=timeless))


def test_with_shares_of_their_own_all_may_wait_for_the_slowest() -> None:
    recording = cases.recording(LOADS, steps=_steps(worker_2=HALF))
    shared = cases.recording(LOADS, steps=_steps(worker_2=HALF), spec={"training": {"epochs": 1}})
    gains = [paces.gain(case, paces.stragglers(case)) for case in map(Case.of, (recording, shared))]
    assert [round(each.high, 2) for each in gains] == [2.0, 1.2]
