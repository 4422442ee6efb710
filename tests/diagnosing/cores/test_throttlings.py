"""Bursts that a quota cuts."""

from __future__ import annotations

import dataclasses

from support import cases
from support.cases import found

from paceline.diagnosing.cores.throttlings import throttled
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.measures.samples import Sample
from paceline.model.roles import Role

CUT = {"cpu_cores": 0.5, "cpu_limit_cores": 1.0, "throttled_seconds": 0.6}
LOADS = {"ps-0": cases.SERVER, "worker-0": CUT, "worker-1": CUT}
FACTS = (("cores", "2"),)
ASKED = {"worker": {"cpu_cores": 1.0}}


def test_workers_that_stand_still_far_below_their_limit_are_named() -> None:
    (cause,) = found(throttled, cases.recording(LOADS, roles=ASKED, facts=FACTS))
    assert cause.what == (
        "The CPU quota cuts bursts of worker-0, worker-1: 0.60 s throttled in each second, at 50% of the "
        "limit."
    )
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("worker-0", "worker-1"))
    # At least half as much again as now.
    assert cause.changes == (FieldChange(path=("spec", "roles", "worker", "cpu"), value="1500m"),)
    assert cause.gain is not None
    assert (round(cause.gain.low, 2), round(cause.gain.high, 2)) == (1.43, 2.5)
    assert cause.evidence[1].text == "it stood still for 30% to 60% of the time (the kernel adds up cores)"


def test_a_server_costs_no_more_than_trainers_wait() -> None:
    loads = LOADS | {"ps-0": CUT, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
    (cause,) = found(throttled, cases.recording(loads, facts=FACTS))
    assert cause.subjects == ("ps-0",)
    assert cause.gain is not None
    # Trainers compute for 0.6 and read for 0.02 of their time.
    assert round(cause.gain.high, 2) == round(1 / (1 - 0.38), 2)
    assert cause.changes == ()


def test_who_computes_at_its_limit_is_bound_by_that() -> None:
    loads = LOADS | {"worker-0": CUT | {"cpu_cores": 0.95}, "worker-1": CUT | {"cpu_cores": 0.85}}
    assert not found(throttled, cases.recording(loads, facts=FACTS))


def test_seconds_at_the_limit_do_not_count() -> None:
    def in_turns(sample: Sample) -> Sample:
        """Half of the time a worker computes at its limit, and else it rests."""
        if sample.replica.role is Role.PS:
            return sample
        busy = int(sample.at) % 2 == 0
        used, cut = (0.98, 1.2) if busy else (0.1, 0.0)
        return dataclasses.replace(sample, cpu_cores=used, throttled_seconds=cut)

    recording = cases.edited(cases.recording(LOADS, facts=FACTS), samples=in_turns)
    assert not found(throttled, recording)


def test_a_little_throttling_is_normal() -> None:
    loads = LOADS | dict.fromkeys(("worker-0", "worker-1"), CUT | {"throttled_seconds": 0.05})
    assert not found(throttled, cases.recording(loads, facts=FACTS))


def test_what_was_not_measured_is_not_judged() -> None:
    for lacking in ("throttled_seconds", "cpu_limit_cores"):
        loads = LOADS | dict.fromkeys(("worker-0", "worker-1"), CUT | {lacking: None})
        assert not found(throttled, cases.recording(loads, facts=FACTS))


def test_without_the_number_of_cores_the_least_is_not_known() -> None:
    (cause,) = found(throttled, cases.recording(LOADS))
    assert cause.gain is not None
    assert cause.gain.low == 1.0
