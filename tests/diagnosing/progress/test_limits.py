"""Replicas at their limit while others wait: such a job is never called fine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import cases
from support.cases import found
from support.examples import examples

from paceline.diagnosing.cases import Case
from paceline.diagnosing.diagnoses import diagnose, judged
from paceline.diagnosing.progress.limits import at_limit
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.causes import Explanation
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Host
from paceline.model.measures.recordings import Recording
from paceline.stores import recordings
from paceline.surfaces.views import headlines

CORPUS = Path(__file__).parents[3] / "benchmarks/diagnosis/recordings"
FULL, WAITING = {"cpu_cores": 0.92, "cpu_limit_cores": 1.0}, {"cpu_cores": 0.3, "cpu_limit_cores": 1.0}
BUSY = {"cpu_cores": 0.95, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": FULL, "ps-1": FULL, "worker-0": WAITING, "worker-1": WAITING}


def answer(recording: Recording) -> Explanation:
    situation = Situation.of(recording.run, recording.replicas, recording.events, now=recording.at)
    return diagnose(recording, situation)


def test_seen_only_from_outside_the_servers_are_what_is_wrong() -> None:
    recording = cases.recording(LOADS, steps={}, seconds=120)
    (cause,) = found(at_limit, recording)
    assert cause.what == "ps-0, ps-1 are at their limit while trainers wait."
    assert cause.severity is Severity.WARNING
    assert [each.text for each in cause.evidence] == [
        "ps-0 uses 0.92 of 1.00 cores", "ps-1 uses 0.92 of 1.00 cores",
        "worker-0, worker-1: 30% of their cores used",
    ]  # fmt: skip
    why = answer(recording)
    assert why.summary == "clicks runs, for 2m00s, with all of its 4 replicas, and could be faster"
    assert "at their limit" in headlines.finding(why).plain


def test_another_rule_that_says_why_is_told_alone() -> None:
    causes, _ = judged(Case.of(cases.recording(LOADS)))
    names = [each.name for each in causes]
    assert "too-few-ps" in names
    assert "at-limit" not in names
    assert found(at_limit, cases.recording(LOADS))


@pytest.mark.parametrize(
    "recording",
    [
        cases.recording(LOADS, steps={}, seconds=60),
        cases.recording(LOADS | {"worker-0": BUSY, "worker-1": BUSY}, steps={}, seconds=120),
        cases.recording(LOADS, lost=True),
        # All cores of the machine are used: trainers could do no more if servers could.
        cases.recording(LOADS, facts=(("cores", "2"),)),
        cases.recording({name: {"cpu_cores": 0.9} for name in LOADS}, facts=(("cores", "4"),)),
        cases.recording(LOADS | {"ps-0": WAITING, "ps-1": WAITING}),
    ],
    ids=["it may still begin", "trainers work", "lost", "the machine is full", "no limits", "servers rest"],
)
def test_what_is_no_limit_or_lets_none_wait_is_no_cause(recording: Recording) -> None:
    assert found(at_limit, recording) == ()


def test_a_full_link_is_a_limit_too() -> None:
    hosts = tuple(Host(name=name, bandwidth_bits_per_second=8_000_000) for name in ("a", "b", "c"))
    quiet = {"cpu_cores": 0.2, "cpu_limit_cores": 1.0, "network_received_bytes": 1, "network_sent_bytes": 1}
    loads = {
        "ps-0": quiet | {"network_sent_bytes": 900_000}, "worker-0": quiet, "worker-1": quiet,
    }  # fmt: skip
    rows = {"ps-0": {"host": "a"}, "worker-0": {"host": "b"}, "worker-1": {"host": "c"}}
    recording = cases.recording(loads, rows=rows, spec={"hosts": hosts}, steps={}, seconds=120)
    (cause,) = found(at_limit, recording)
    assert cause.subjects == ("ps-0", "a")
    assert cause.evidence[0].text == "the link of a, where ps-0 is, is used to 90%"


def test_a_full_link_that_another_rule_names_is_said_once_and_as_a_warning() -> None:
    recording = recordings.read(CORPUS / "worker-link-one.medium.deepfm-small-trio-4.parquet")
    assert found(at_limit, recording)
    causes, _ = judged(Case.of(recording))
    severities = {cause.name: cause.severity for cause in causes}
    assert severities["worker-link"] is Severity.WARNING
    assert "at-limit" not in severities


def test_a_trainer_for_which_all_others_wait_in_each_step_is_one() -> None:
    server = cases.SERVER
    loads = {"ps-0": server, "worker-0": BUSY, "worker-1": WAITING, "worker-2": WAITING}
    steps = dict.fromkeys(("worker-0", "worker-1", "worker-2"), cases.STEPS | {"input_wait_seconds": 0.0})
    (cause,) = found(at_limit, cases.recording(loads, steps=steps))
    assert cause.subjects == ("worker-0",)
    # Who does not wait makes more steps.
    faster = steps | {"worker-1": cases.STEPS | {"steps": 80, "examples": 40_960, "input_wait_seconds": 0.0}}
    assert not found(at_limit, cases.recording(loads, steps=faster))


USES = st.sampled_from([0.01, 0.2, 0.5, 0.79, 0.81, 0.9, 1.0])
REPLICAS = ("ps-0", "ps-1", "ps-2", "worker-0", "worker-1", "worker-2")


@st.composite
def loads(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    return {
        name: {"cpu_cores": draw(USES), "cpu_limit_cores": draw(st.sampled_from([1.0, 1.0, None]))}
        for name in REPLICAS
    }


@settings(max_examples=examples(200), deadline=None)
@given(loads(), st.booleans(), st.sampled_from([(), (("cores", "64"),), (("cores", "2"),)]))
def test_a_job_with_a_replica_at_its_limit_that_others_wait_for_is_never_fine(
    loads: dict[str, dict[str, Any]], is_seen: bool, facts: tuple[tuple[str, str], ...]
) -> None:
    recording = cases.recording(loads, steps=None if is_seen else {}, seconds=95, facts=facts)
    told = found(at_limit, recording)
    why = answer(recording)
    if told:
        assert not why.summary.startswith("nothing is wrong")
        bad = {
            subject
            for cause in why.causes
            for each in (cause, *cause.effects)
            if each.severity is not Severity.INFO
            for subject in each.subjects
        }
        assert all(set(cause.subjects) & bad for cause in told)
        assert "nothing is wrong" not in headlines.finding(why).plain


def test_what_the_model_says_that_binds_the_rules_say_too() -> None:
    """Two servers share the link of a host, so that no rule of a server's own link speaks of it."""
    bytes_a_second = {"network_received_bytes": 1_800_000, "network_sent_bytes": 1_780_000}
    server = {"cpu_cores": 0.2, "cpu_limit_cores": 1.0, **bytes_a_second}
    loads = {"ps-0": server, "ps-1": server, "worker-0": WAITING, "worker-1": WAITING}
    hosts = tuple(Host(name=name, bandwidth_bits_per_second=30_000_000) for name in "ab")
    rows = {name: {"host": "a" if name.startswith("ps") else "b"} for name in loads}
    recording = cases.recording(loads, rows=rows, spec={"hosts": hosts}, seconds=120)
    why = answer(recording)
    assert why.outlook is not None
    assert why.outlook.binds == "link of a"
    assert not why.summary.startswith("nothing is wrong")
    assert {"ps-0", "ps-1"} <= {subject for cause in why.causes for subject in cause.subjects}


def test_cores_of_the_machine_that_replicas_share_may_be_what_trainers_wait_for() -> None:
    """A server without a limit shares the machine. That hosts are emulated sets no other limit."""
    hosts, facts = {"hosts": (Host(name="a"),)}, (("cores", "2"),)
    rests = {"cpu_cores": 0.05, "cpu_limit_cores": 1.0}
    resting = {"worker-0": rests, "worker-1": rests}
    shared = {"ps-0": {"cpu_cores": 1.8}, **resting}
    (cause,) = found(at_limit, cases.recording(shared, facts=facts, spec=hosts))
    assert cause.what == "The CPU of this machine is used to 95%, and trainers wait for it."
    assert cause.subjects == ("ps-0",)
    # All have cores of their own, so no trainer waits for the machine itself.
    apart = {"ps-0": {"cpu_cores": 1.8, "cpu_limit_cores": 4.0}, **resting}
    assert not found(at_limit, cases.recording(apart, facts=facts, spec=hosts))
