"""Training that stands still."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support import cases
from support.cases import START, found

from paceline.diagnosing.progress.absences import waiting_at_start
from paceline.diagnosing.progress.hangs import hang
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Framework, Instrumentation
from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.observing.diagnosis_runs import REACH_SECONDS

SWITCHES = {"voluntary_switches": 400, "involuntary_switches": 30}
SERVER, TRAINER = cases.SERVER | SWITCHES, cases.TRAINER | SWITCHES
LOADS = {"ps-0": SERVER, "worker-0": TRAINER, "worker-1": TRAINER}
STILL = {"cpu_cores": 0.01, "voluntary_switches": 0, "involuntary_switches": 0}
WAITS = {"cpu_cores": 0.02, "voluntary_switches": 25, "involuntary_switches": 0}


def _standing(
    after: float, *, stopped: tuple[str, ...] = (), busy: tuple[str, ...] = (), seconds: int = 60, **more: Any
) -> Recording:
    """Return the recording of a job, of a minute or so, that makes no step after so many seconds."""

    def load(sample: Sample) -> Sample:
        name = str(sample.replica)
        if sample.at <= START + after or name in busy:
            return sample
        return dataclasses.replace(sample, **(STILL if name in stopped else WAITS))

    def until(report: StepReport) -> StepReport | None:
        return report if report.at <= START + after else None

    return cases.edited(cases.recording(LOADS, seconds=seconds, **more), samples=load, steps=until)


def test_a_job_whose_trainers_make_no_steps_any_more_hangs() -> None:
    (cause,) = found(hang, _standing(30))
    assert cause.what == "No trainer has made a step for 30s, and all still live."
    assert (cause.severity, cause.subjects) == (Severity.ERROR, ("worker-0", "worker-1"))
    assert [each.text for each in cause.evidence] == [
        "the last report of a step (1,200); before, one came every 1.0s",
        "worker-0, worker-1: 0.04 cores used since",
    ]
    assert cause.evidence[0].at == START + 30


@pytest.mark.parametrize(("at", "is_hang"), [(30, False), (20, True)])
def test_a_trainer_whose_steps_are_not_seen_any_more_may_make_some(at: int, is_hang: bool) -> None:
    said = JobEvent(
        at=START + at,
        kind=SEEN,
        message="its steps are not seen: there were 5 errors of its own",
        replica=ReplicaId.parse("worker-1"),
    )
    assert bool(found(hang, _standing(30, seconds=300, events=(said,)))) is is_hang


def test_the_process_that_was_stopped_is_named() -> None:
    (cause,) = found(hang, _standing(30, stopped=("ps-0",)))
    assert cause.what == ("No trainer has made a step for 30s, and the process of ps-0 does nothing at all.")
    assert cause.subjects == ("ps-0",)


def test_one_stopped_worker_is_named_while_others_train() -> None:
    loads = LOADS | {"worker-1": TRAINER | STILL}

    def until(report: StepReport) -> StepReport | None:
        return None if str(report.replica) == "worker-1" and report.at > START + 30 else report

    recording = cases.edited(cases.recording(loads, seconds=60), steps=until)
    (cause,) = found(hang, recording)
    assert cause.what == (
        "worker-1 has made no step for 30s: its process does nothing at all, while others train."
    )
    # One that merely has nothing to do is no hang.
    idle = cases.edited(cases.recording(LOADS | {"worker-1": TRAINER | WAITS}, seconds=60), steps=until)
    assert not found(hang, idle)


RANKS = {f"worker-{index}": TRAINER for index in range(3)}
WAITING, READING = {"all_reduce_seconds": 1.0}, {"all_reduce_seconds": 0.0, "input_wait_seconds": 1.0}


def _absent(ways: dict[str, dict[str, float]], **more: Any) -> Recording:
    """Return the recording of ranks that make no step after half a minute, and do something else by name."""

    def load(sample: Sample) -> Sample:
        return sample if sample.at <= START + 30 else dataclasses.replace(sample, **WAITS)

    def still(report: StepReport) -> StepReport | None:
        way = ways.get(str(report.replica))
        if report.at <= START + 30 or way is None:
            return report if report.at <= START + 30 else None
        return dataclasses.replace(
            report, steps=0, examples=0, step=1200, **{"input_wait_seconds": 0.0, **way}
        )

    recording = cases.recording(RANKS, seconds=60, spec={"framework": Framework.PYTORCH}, **more)
    return cases.edited(recording, samples=load, steps=still)


def test_the_rank_that_does_not_come_to_the_all_reduce_is_named() -> None:
    ways = {"worker-0": WAITING, "worker-1": {"all_reduce_seconds": 0.0}, "worker-2": WAITING}
    (cause,) = found(hang, _absent(ways))
    assert cause.what == ("No trainer has made a step for 30s, and worker-1 does not come to the all-reduce.")
    assert cause.subjects == ("worker-1",)
    assert [each.text for each in cause.evidence][-1] == "worker-0, worker-2 wait in all-reduce since"
    assert cause.next_steps[0].startswith("paceline logs clicks --role worker --index 1")


def test_a_rank_that_says_nothing_while_others_wait_does_not_come_either() -> None:
    (cause,) = found(hang, _absent({"worker-0": WAITING, "worker-1": WAITING}))
    assert cause.subjects == ("worker-2",)


def test_a_rank_that_waits_for_its_input_is_told_so() -> None:
    (cause,) = found(hang, _absent({"worker-0": READING, "worker-1": WAITING, "worker-2": WAITING}))
    assert cause.subjects == ("worker-0",)
    assert [each.text for each in cause.evidence][-1] == "worker-0 waits for input since"


def test_ranks_that_all_wait_are_told_of_together() -> None:
    (cause,) = found(hang, _absent(dict.fromkeys(RANKS, WAITING)))
    assert cause.what == "No trainer has made a step for 30s, and all still live."
    assert cause.subjects == ("worker-0", "worker-1", "worker-2")
    assert cause.evidence[-1].text == "worker-0, worker-1, worker-2 wait in all-reduce since"


def test_a_short_pause_is_none() -> None:
    assert not found(hang, _standing(48))
    assert found(hang, _standing(44))


def test_slow_steps_take_their_time() -> None:
    def slowly(report: StepReport) -> StepReport | None:
        if int(report.at - START) % 10 or report.at > START + 30:
            return None
        return dataclasses.replace(report, interval_seconds=10.0)

    recording = cases.edited(_standing(60), steps=slowly, samples=_waiting)
    assert not found(hang, recording)


def _waiting(sample: Sample) -> Sample:
    return sample if sample.at <= START + 30 else dataclasses.replace(sample, **WAITS)


def test_a_pause_like_those_before_is_none() -> None:
    def with_pause(report: StepReport) -> StepReport | None:
        second = report.at - START
        return None if 10 < second < 28 or second > 40 else report

    assert not found(hang, cases.edited(_standing(60), steps=with_pause, samples=_waiting))


def test_trainers_that_compute_may_be_evaluating() -> None:
    assert not found(hang, _standing(20, busy=("worker-0",)))


def test_an_evaluation_or_an_event_explains_a_pause() -> None:
    worker = ReplicaId(Role.WORKER, 0)
    evaluated = EvaluationReport(replica=worker, attempt=1, at=START + 55)
    assert not found(hang, _standing(30, evaluations=(evaluated,)))
    beside = dataclasses.replace(evaluated, replica=ReplicaId(Role.EVALUATOR, 0))
    assert found(hang, _standing(30, evaluations=(beside,)))
    scaled = JobEvent(at=START + 50, kind="scaled", message="3 workers are wanted")
    assert not found(hang, _standing(30, events=(scaled,)))
    note = JobEvent(at=START + 50, kind="note", message="2 lines dropped")
    assert found(hang, _standing(30, events=(note,)))


def test_who_waits_for_a_restart_does_not_hang() -> None:
    for phase in (ReplicaPhase.STARTING, ReplicaPhase.BACKING_OFF):
        standing = _standing(30)
        rows = [
            dataclasses.replace(row, phase=phase if row.replica.role is Role.PS else row.phase)
            for row in standing.replicas
        ]
        assert not found(hang, dataclasses.replace(standing, replicas=rows))
    restarting = dataclasses.replace(standing.run, phase=JobPhase.RESTARTING)
    assert not found(hang, dataclasses.replace(standing, run=restarting))


def test_after_a_restart_trainers_get_their_time_again() -> None:
    """The PS came back ten seconds ago."""
    standing = _standing(30)
    rows = [
        dataclasses.replace(row, attempt=2) if row.replica.role is Role.PS else row
        for row in standing.replicas
    ]

    def again(sample: Sample) -> Sample:
        second = sample.replica.role is Role.PS and sample.at > START + 50
        return dataclasses.replace(sample, attempt=2) if second else sample

    assert not found(hang, dataclasses.replace(cases.edited(standing, samples=again), replicas=rows))


def test_a_job_that_has_made_its_steps_or_is_lost_does_not_hang() -> None:
    steps = dict.fromkeys(("worker-0", "worker-1"), cases.STEPS | {"total_steps": 1200})
    assert not found(hang, _standing(30, steps=steps))
    assert not found(hang, _standing(30, lost=True))
    assert not found(hang, _standing(30, phase=JobPhase.STOPPED))
    ended = {"worker-1": {"phase": ReplicaPhase.SUCCEEDED}}
    standing = _standing(30)
    rows = [dataclasses.replace(row, **ended.get(str(row.replica), {})) for row in standing.replicas]
    assert not found(hang, dataclasses.replace(standing, replicas=rows))


@pytest.mark.parametrize("total_steps", [None, 1200])
def test_trainers_that_wait_for_one_that_has_ended_hang(total_steps: int | None) -> None:
    steps = dict.fromkeys(("worker-0", "worker-1"), cases.STEPS | {"total_steps": total_steps})

    def ended(recording: Recording, index: int = 0) -> Recording:
        name = ReplicaId(Role.WORKER, index)
        rows = [
            dataclasses.replace(row, phase=ReplicaPhase.SUCCEEDED) if row.replica == name else row
            for row in recording.replicas
        ]
        exit_event = JobEvent(at=START + 31, kind="replica-exited", message="", replica=name)
        samples = [each for each in recording.samples if each.replica != name or each.at <= START + 31]
        return dataclasses.replace(recording, replicas=rows, events=(exit_event,), samples=samples)

    (cause,) = found(hang, ended(_standing(30, seconds=200, steps=steps)))
    assert cause.what == (
        "No trainer has made a step for 2m49s, and worker-0 had ended without an error before: "
        "others may wait for it."
    )
    assert cause.subjects == ("worker-1",)
    assert (cause.evidence[-1].text, cause.evidence[-1].at) == ("worker-0 ended", START + 31)
    # An export, an evaluation; and what has only begun.
    assert not found(hang, ended(_standing(30, seconds=200, steps=steps, busy=("worker-1",))))
    assert not found(hang, ended(_standing(30, seconds=120, steps=steps)))
    # Who ends the job may copy what it exports; what it does before the last step is nothing of the kind.
    assert bool(found(hang, ended(_standing(30, seconds=200, steps=steps), index=1))) == (total_steps is None)

    # A look reaches two minutes back, and knows the last report of each trainer.
    (cause,) = found(hang, reached(ended(_standing(30, seconds=200, steps=steps))))
    assert cause.what.startswith("No trainer has made a step for 2m49s, and worker-0 had ended")
    assert not found(hang, reached(ended(_standing(30, seconds=200, steps=steps, busy=("worker-1",)))))


def reached(recording: Recording) -> Recording:
    """Return what a look has of a recording."""
    since = max(each.at for each in recording.samples) - REACH_SECONDS
    newest = {each.replica: each for each in recording.steps if each.at < since}
    return dataclasses.replace(
        recording,
        samples=[each for each in recording.samples if each.at >= since],
        steps=[*newest.values(), *(each for each in recording.steps if each.at >= since)],
    )


@pytest.mark.parametrize("seconds", [60, 140, 160, 300, 3000])
def test_a_hang_is_named_however_long_ago_it_began(seconds: int) -> None:
    for busy in ((), ("worker-0", "worker-1")):
        standing = _standing(30, seconds=seconds, busy=busy)
        assert [each.subjects for each in found(hang, reached(standing))] == [
            each.subjects for each in found(hang, standing)
        ]
    assert found(hang, _standing(30, seconds=seconds))


def test_a_trainer_whose_steps_were_never_seen_does_not_begin_for_ever() -> None:
    def of_others(report: StepReport) -> StepReport | None:
        return None if report.replica == ReplicaId(Role.WORKER, 1) else report

    for seconds, is_said in ((100, False), (300, True)):
        standing = cases.edited(_standing(30, seconds=seconds), steps=of_others)
        assert bool(found(hang, standing)) == bool(found(hang, reached(standing))) == is_said


def test_when_samples_end_nothing_is_known() -> None:
    def early(sample: Sample) -> Sample | None:
        return sample if sample.at <= START + 36 else None

    assert not found(hang, cases.edited(_standing(30), samples=early))


def test_a_job_that_has_not_begun_does_not_hang() -> None:
    assert not found(hang, _standing(0))


def _starting(seconds: int, absent: dict[str, Any], **more: Any) -> Recording:
    waits = {"cpu_cores": 0.02, "cpu_limit_cores": 1.0, "threads": 60, "memory_bytes": 400 << 20}
    loads = {"ps-0": waits, "ps-1": waits | absent, "worker-0": waits, "worker-1": waits}
    return cases.recording(loads, steps={}, seconds=seconds, **more)


def test_the_replica_that_never_began_is_named() -> None:
    (cause,) = found(waiting_at_start, _starting(25, {"threads": 2, "memory_bytes": 30 << 20}))
    assert cause.what == (
        "After 25s there is no step and no replica computes: ps-1 looks as if it had never begun."
    )
    assert cause.subjects == ("ps-1",)
    assert [each.text for each in cause.evidence] == [
        "all 4 replicas together use 0.08 cores",
        "ps-1 has 2 threads, the others 60",
    ]
    assert cause.next_steps[0] == "paceline logs clicks --role ps --index 1 --tail 20"


def test_little_memory_and_little_computing_betray_it_too() -> None:
    absent = {"threads": None, "memory_bytes": 30 << 20, "cpu_cores": 0.001}
    (cause,) = found(waiting_at_start, _starting(25, absent))
    assert cause.subjects == ("ps-1",)


def test_a_replica_without_a_process_is_named() -> None:
    rows = {"ps-1": {"phase": ReplicaPhase.PENDING}}
    recording = _starting(30, {}, phase=JobPhase.STARTING)
    pending = [dataclasses.replace(row, **rows.get(str(row.replica), {})) for row in recording.replicas]
    (cause,) = found(waiting_at_start, dataclasses.replace(recording, replicas=pending))
    assert cause.what == "ps-1 has not come for 30s, and 3 other replicas wait."
    assert cause.evidence[0].text == "ps-1 is pending; no step was reported yet"


def test_a_job_that_computes_trains_or_has_just_begun_is_let_alone() -> None:
    absent = {"threads": 2}
    assert not found(waiting_at_start, _starting(15, absent))
    assert not found(waiting_at_start, _starting(40, absent | {"cpu_cores": 0.8}))
    assert not found(waiting_at_start, cases.recording(LOADS, seconds=60))
    assert not found(waiting_at_start, _starting(40, absent, lost=True))
    assert not found(waiting_at_start, _starting(40, absent, phase=JobPhase.STOPPED))


def test_where_nothing_tells_replicas_apart_it_takes_longer_and_names_none() -> None:
    assert not found(waiting_at_start, _starting(60, {}))
    (cause,) = found(waiting_at_start, _starting(100, {}))
    assert cause.what == (
        "After 1m40s there is no step and no replica computes: "
        "the replicas wait for each other, or for input."
    )
    assert cause.subjects == ()


@pytest.mark.parametrize(("seconds", "is_said"), [(46, False), (100, True)])
def test_trainers_that_all_read_from_a_slow_disk_get_their_time(seconds: int, is_said: bool) -> None:
    """On a new machine TensorFlow takes most of a minute to read; parameter servers do without."""
    serves = {"cpu_cores": 0.02, "cpu_limit_cores": 1.0, "threads": 60, "memory_bytes": 400 << 20}
    reads = serves | {"threads": 2, "memory_bytes": 60 << 20}
    loads = {"ps-0": serves, "ps-1": serves, "worker-0": reads, "worker-1": reads}
    recording = cases.recording(loads, steps={}, seconds=seconds)
    assert bool(found(waiting_at_start, recording)) is is_said


def test_what_was_not_measured_is_not_called_idle() -> None:
    assert not found(waiting_at_start, _starting(100, {"cpu_cores": None}))
    nothing = cases.edited(_starting(100, {}), samples=lambda sample: None)
    assert not found(waiting_at_start, nothing)


def _sleeping(seconds: int, every: int) -> Recording:
    """A job whose scripts make a step and then sleep, again and again; they use hardly any core."""
    rests = {"cpu_cores": 0.02, "cpu_limit_cores": 1.0, "threads": 60, "memory_bytes": 400 << 20}
    loads = {"ps-0": rests, "worker-0": rests, "worker-1": rests}
    slept = {"steps": 1, "input_wait_seconds": every - 0.1}
    steps = {"worker-0": slept, "worker-1": slept}
    return cases.edited(
        cases.recording(loads, steps=steps, seconds=seconds),
        steps=lambda each: (
            dataclasses.replace(each, interval_seconds=float(every))
            if (each.at - START) % every == 0
            else None
        ),
    )


@pytest.mark.parametrize("seconds", [45, 59, 100, 179])
def test_a_script_that_sleeps_between_its_steps_neither_hangs_nor_waits_for_a_replica(seconds: int) -> None:
    recording = _sleeping(seconds, 20)
    assert not found(hang, recording)
    assert not found(waiting_at_start, recording)


def test_a_script_whose_steps_are_not_seen_may_sleep_between_them() -> None:
    """Before, it was said that there is no step, though it was only not seen."""
    off = {"instrumentation": Instrumentation.OFF}
    assert not found(waiting_at_start, _starting(100, {}, spec=off))
    assert not found(waiting_at_start, _starting(100, {}, spec={"framework": Framework.PLAIN}))
    unseen = JobEvent(
        at=START + 30,
        kind=SEEN,
        message="its steps are not seen: python -I",
        replica=ReplicaId.parse("worker-0"),
    )
    assert not found(waiting_at_start, _starting(100, {}, events=(unseen,)))
    # The library tells its steps by itself, whatever is looked into.
    assert found(waiting_at_start, _starting(100, {}, spec=off | {"training": {"epochs": 1}}))
