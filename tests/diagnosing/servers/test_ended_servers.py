"""Servers that have ended without an error while trainers need them."""

from __future__ import annotations

import dataclasses

import pytest
from support import cases
from support.cases import START, found

from paceline.diagnosing.servers.ended_servers import ps_ended
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import RestartPolicy, RestartWhen
from paceline.model.jobs.runs import JobEvent
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId, Role

LOADS = {"ps-0": cases.SERVER, "ps-1": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
ENDED = {"ps-1": {"phase": ReplicaPhase.SUCCEEDED, "exit": ExitReason(kind=ExitKind.COMPLETED, code=0)}}


def job(*, ended_after: float = 60, steps_until: float = 60, **more: object) -> Recording:
    event = JobEvent(
        at=START + ended_after, kind="replica-exited", message="completed", replica=ReplicaId(Role.PS, 1)
    )
    recording = cases.recording(LOADS, rows=ENDED, seconds=120, events=(event,))
    recording = cases.edited(
        recording, steps=lambda report: report if report.at <= START + steps_until else None
    )
    return dataclasses.replace(recording, **more)  # type: ignore[arg-type]


def test_a_server_that_ended_while_trainers_wait_is_an_error() -> None:
    (cause,) = found(ps_ended, job())
    assert cause.what == "ps-1 has ended without an error, and worker-0, worker-1 still run."
    assert cause.severity is Severity.ERROR
    assert [each.text for each in cause.evidence] == ["ps-1: completed, 1m00s ago"]
    assert "server.join()" in cause.next_steps[0]
    assert cause.next_steps[-1].startswith("spec.roles.ps.restart: {when: always}")


def test_also_when_there_was_never_a_step() -> None:
    assert found(ps_ended, job(ended_after=10, steps_until=0))
    assert found(ps_ended, job(events=(), steps_until=0))


@pytest.mark.parametrize(
    "recording",
    [
        job(steps_until=120),
        job(ended_after=100, steps_until=100),
        dataclasses.replace(job(), run=dataclasses.replace(job().run, phase=JobPhase.STOPPING)),
        cases.recording(LOADS, seconds=120),
    ],
    ids=["they train all the same", "it has only just ended", "the job ends", "all run"],
)
def test_what_does_no_harm_is_not_told(recording: Recording) -> None:
    assert found(ps_ended, recording) == ()


def test_trainers_that_are_done_need_none() -> None:
    done = ENDED | {f"worker-{index}": {"phase": ReplicaPhase.SUCCEEDED} for index in (0, 1)}
    recording = cases.recording(LOADS, rows=done, steps={}, seconds=120)
    assert found(ps_ended, recording) == ()


def test_that_it_is_always_started_again_is_not_proposed_twice() -> None:
    again = {"ps": {"restart": RestartPolicy(when=RestartWhen.ALWAYS)}}
    recording = cases.recording(LOADS, rows=ENDED, roles=again, steps={}, seconds=120)
    (cause,) = found(ps_ended, recording)
    assert not any("restart:" in each for each in cause.next_steps)
