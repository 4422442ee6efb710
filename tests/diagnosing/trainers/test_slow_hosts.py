"""Stragglers that lack CPU."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.trainers.big_shards import big_shard
from paceline.diagnosing.trainers.slow_disks import slow_disk
from paceline.diagnosing.trainers.slow_hosts import slow_host
from paceline.model.explanations.causes import Cause, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Host
from paceline.model.measures.recordings import Recording

HALF = {**cases.STEPS, "steps": 20, "examples": 10_240}
STEPS = {"worker-0": cases.STEPS, "worker-1": cases.STEPS, "worker-2": HALF}
LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
WHAT = "worker-2 trains at 50% of the others' rate because its host is slower."


def _recording(own: dict[str, Any], **more: Any) -> Recording:
    return cases.recording({**LOADS, "worker-2": own}, **{"steps": STEPS, **more})


def _cause(own: dict[str, Any], **more: Any) -> Cause:
    (cause,) = found(slow_host, _recording(own, **more))
    return cause


def test_fewer_cores_are_named() -> None:
    cause = _cause({"cpu_cores": 0.29, "cpu_limit_cores": 0.3})
    assert cause.what == WHAT
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("worker-2",))
    assert [each.text for each in cause.evidence] == [
        "examples a second in the time that all train: worker-2 10,240; the median of the others 20,480",
        "worker-2 may use 0.30 cores and uses 97% of them, the others may use 1.00",
    ]
    assert cause.evidence[0].sources[0].what == "steps"
    assert cause.changes == ()
    assert cause.next_steps == (
        "give worker-2 as many cores as the others have (1.00): its limit is smaller",
    )
    assert cause.gain is not None
    assert cause.gain.high == pytest.approx(2.0)


def test_a_smaller_host_of_the_job_file_is_named() -> None:
    hosts = (Host(name="big", cpu_cores=8.0), Host(name="small", cpu_cores=0.3))
    rows = {"worker-2": {"host": "small"}, "worker-0": {"host": "big"}}
    cause = _cause({"cpu_cores": 0.29, "cpu_limit_cores": 1.0}, spec={"hosts": hosts}, rows=rows)
    assert cause.subjects == ("worker-2", "small")
    assert cause.next_steps[0].endswith("its host small is smaller")


def test_a_chief_with_fewer_cores_gets_those_of_the_others() -> None:
    own = {"cpu_cores": 0.29, "cpu_limit_cores": 0.3}
    loads = {"ps-0": cases.SERVER, "chief-0": own, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
    steps = {"chief-0": HALF, "worker-0": cases.STEPS, "worker-1": cases.STEPS}
    (cause,) = found(slow_host, cases.recording(loads, steps=steps, roles={"chief": {"cpu_cores": 0.3}}))
    assert cause.changes == (FieldChange(path=("spec", "roles", "chief", "cpu"), value=1.0),)


def test_neighbours_are_named() -> None:
    loads = {"cpu_cores": 0.3, "cpu_limit_cores": 1.0, "neighbours_cpu_cores": 2.3}
    cause = _cause(loads)
    assert cause.what == WHAT
    assert cause.evidence[1].text == (
        "other programs use 0.90 cores where worker-2 may use 1.00; it gets 0.30"
    )


def test_slower_cores_are_named() -> None:
    cause = _cause({"cpu_cores": 0.6, "cpu_limit_cores": 1.0})
    assert cause.evidence[1].text == "an example takes worker-2 2.0 times as much CPU time as the others"


def test_threads_that_make_room_are_named() -> None:
    others = {**cases.TRAINER, "involuntary_switches": 20}
    own = {"cpu_cores": 0.3, "cpu_limit_cores": 1.0, "involuntary_switches": 400}
    loads = {"ps-0": cases.SERVER, "worker-0": others, "worker-1": others, "worker-2": own}
    (cause,) = found(slow_host, cases.recording(loads, steps=STEPS))
    assert "had to make room for others 400 times a second, those of the other trainers 20" in (
        cause.evidence[1].text
    )


def test_two_of_them_are_told_together() -> None:
    slow = {"cpu_cores": 0.29, "cpu_limit_cores": 0.3}
    loads = {**LOADS, "worker-2": slow, "worker-3": slow, "worker-4": cases.TRAINER}
    steps = {**STEPS, "worker-3": HALF, "worker-4": cases.STEPS}
    (cause,) = found(slow_host, cases.recording(loads, steps=steps))
    assert cause.what == (
        "worker-2, worker-3 train at 50% of the others' rate because their hosts are slower."
    )


def test_equal_trainers_are_none() -> None:
    assert not found(slow_host, _recording(cases.TRAINER, steps=None))


def test_without_a_sign_of_lacking_cpu_nothing_is_said() -> None:
    assert not found(slow_host, _recording({"cpu_cores": 0.3, "cpu_limit_cores": 1.0}))


def test_it_is_no_slow_disk_and_no_big_shard() -> None:
    recording = _recording({"cpu_cores": 0.29, "cpu_limit_cores": 0.3})
    assert not found(slow_disk, recording)
    assert not found(big_shard, recording)


def test_a_full_link_or_lost_packets_are_another_cause() -> None:
    own = {"cpu_cores": 0.6, "cpu_limit_cores": 1.0}
    lossy = {**own, "retransmitted_segments": 30, "sent_segments": 1_000}
    assert not found(slow_host, _recording(lossy))
    hosts = (Host(name="thin", bandwidth_bits_per_second=8_000_000),)
    moving = {**own, "network_received_bytes": 950_000, "network_sent_bytes": 100_000}
    rows = {"worker-2": {"host": "thin"}}
    assert not found(slow_host, _recording(moving, spec={"hosts": hosts}, rows=rows))


def test_among_many_with_a_common_queue_it_hardly_matters() -> None:
    loads = {"ps-0": cases.SERVER, **{f"worker-{index}": cases.TRAINER for index in range(12)}}
    loads["worker-2"] = {"cpu_cores": 0.29, "cpu_limit_cores": 0.3}
    steps = {name: HALF if name == "worker-2" else cases.STEPS for name in loads if name != "ps-0"}
    recording = cases.recording(loads, steps=steps, spec={"training": {"epochs": 1}})
    (cause,) = found(slow_host, recording)
    assert (cause.severity, cause.gain) == (Severity.INFO, None)


def test_without_what_it_needs_to_know_nothing_is_said() -> None:
    steps = {name: {**each, "input_wait_seconds": None} for name, each in STEPS.items()}
    assert not found(slow_host, _recording({"cpu_cores": 0.6, "cpu_limit_cores": 1.0}, steps=steps))
    recording = _recording({"cpu_cores": 0.29, "cpu_limit_cores": 0.3})
    blind = [
        dataclasses.replace(each, cpu_cores=None, cpu_limit_cores=None)
        if str(each.replica) == "worker-2"
        else each
        for each in recording.samples
    ]
    assert not found(slow_host, dataclasses.replace(recording, samples=blind))
