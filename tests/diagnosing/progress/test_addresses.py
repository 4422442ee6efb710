"""Addresses in the script that are not the job's."""

from __future__ import annotations

import dataclasses

from support import cases
from support.cases import START, found

from paceline.agent.paceline_agent import oddities
from paceline.diagnosing import diagnoses
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import addresses
from paceline.diagnosing.progress.addresses import other_addresses
from paceline.diagnosing.progress.untrained import nothing_trained
from paceline.instrumentation.paceline_instrumentation import servers
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER}
OTHERS = (
    f"{addresses.NOT_THE_JOBS}/job:ps/task:0 is localhost:2222, and no replica of the job has that address"
)
HELLO = "TensorFlow 1.15.5 on Python 3.7.17"


def said(*messages: str, steps: bool = False, phase: JobPhase = JobPhase.RUNNING) -> Recording:
    events = [
        JobEvent(at=START + 5, kind=SEEN, message=message, replica=ReplicaId.parse("worker-0"))
        for message in messages
    ]
    recording = cases.recording(LOADS, phase=phase, events=events)
    return recording if steps else dataclasses.replace(recording, steps=())


def test_all_who_say_it_say_it_alike() -> None:
    assert addresses.NOT_THE_JOBS == servers.NOT_THE_JOBS == oddities.NOT_THE_JOBS


def test_they_are_told_of() -> None:
    (cause,) = found(other_addresses, said(HELLO, OTHERS))
    assert cause.what == "The script of worker-0 has addresses that are not the job's."
    assert cause.severity is Severity.WARNING
    assert cause.evidence[0].text == f"worker-0: {OTHERS}"


def test_where_it_trains_all_the_same_it_is_a_remark() -> None:
    (cause,) = found(other_addresses, said(HELLO, OTHERS, steps=True))
    assert cause.severity is Severity.INFO
    assert cause.what.endswith("its replicas find each other only because they share a machine.")


def test_that_nothing_was_trained_follows_from_it() -> None:
    recording = said(HELLO, OTHERS, phase=JobPhase.SUCCEEDED)
    assert found(nothing_trained, recording)
    (cause,) = diagnoses.slowing(Case.of(recording))
    assert cause.name == "other-addresses"
    assert [each.name for each in cause.effects] == ["nothing-trained"]


def test_other_words_are_none() -> None:
    assert not found(other_addresses, said(HELLO))
