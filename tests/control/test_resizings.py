"""Other cores and memory for replicas of a job that runs, for good and for a time."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.control import allowances, events, machines, resizings, states
from paceline.control.resizings import Resize
from paceline.errors import InvalidInput
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import Autoscale, CoreRange, CpuPolicy, JobSpec, Override, RoleSpec
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import ReplicaId, Role
from paceline.specs import dump_job, parse_job
from paceline.specs.edits import edits

PS0, PS1, W0 = (ReplicaId.parse(name) for name in ("ps-0", "ps-1", "worker-0"))
GIB = 1 << 30
JOB = JobSpec(
    name="job",
    command=("train",),
    roles=(
        RoleSpec(role=Role.PS, replicas=2, cpu_cores=1.0, memory_bytes=GIB),
        RoleSpec(role=Role.WORKER, replicas=2, cpu_cores=0.5),
    ),
)


def running(spec: JobSpec = JOB) -> states.JobState:
    state, _ = machines.advance(states.initial(spec), events.Begin())
    for replica in spec.replicas():
        state, _ = machines.advance(state, events.ReplicaStarted(replica=replica, attempt=1))
    return state


def advanced(state: states.JobState, *happened: events.Event) -> states.JobState:
    for event in happened:
        state, wanted = machines.advance(state, event)
        assert wanted == []
        assert states.broken_invariants(state) == []
    return state


def cut(target: str = "ps-0", cores: float = 0.7, until: float = 10.0) -> Adjustment:
    return Adjustment(knob=Knob.CPU, target=target, value=cores, until=until)


def test_one_replica_gets_more_and_the_others_stay() -> None:
    spec = resizings.resized(JOB, Resize(target="ps-0", cpu_cores=1.5))
    assert [spec.role_of(each).cpu_cores for each in (PS0, PS1, W0)] == [1.5, 1.0, 0.5]
    assert spec.role_of(PS0).memory_bytes == GIB
    assert spec.asked_cores == pytest.approx(3.5)


def test_a_role_gets_more_and_what_single_replicas_had_goes() -> None:
    one = resizings.resized(JOB, Resize(target="ps-0", cpu_cores=1.5, memory_bytes=2 * GIB))
    spec = resizings.resized(one, Resize(target="ps", cpu_cores=2.0))
    assert [spec.role_of(each).cpu_cores for each in (PS0, PS1)] == [2.0, 2.0]
    assert spec.overrides == {PS0: Override(memory_bytes=2 * GIB)}, "its memory was not asked about"


@pytest.mark.parametrize(
    "resize",
    [
        Resize(target="ps-0", cpu_cores=1.5),
        Resize(target="ps-1", memory_bytes=2 * GIB),
        Resize(target="worker", cpu_cores=0.25, memory_bytes=GIB),
        Resize(target="ps", cpu_cores=2.0),
        Resize(target="ps", cpu_cores=2.0, memory_bytes=GIB // 2),
    ],
    ids=resizings.sentence,
)
def test_the_job_file_says_so_too(resize: Resize) -> None:
    before = resizings.resized(JOB, Resize(target="ps-0", cpu_cores=3.0, memory_bytes=3 * GIB))
    for spec in (JOB, before):
        source = edits.edited(dump_job(spec), resizings.changes(spec, resize))
        assert parse_job(source).spec == resizings.resized(spec, resize)


@pytest.mark.parametrize(
    ("resize", "why"),
    [
        (Resize(target="ps-2", cpu_cores=2.0), "it has no ps-2 .it has ps-0 to ps-1, worker-0 to worker-1."),
        (Resize(target="chief", cpu_cores=2.0), "it has no chief"),
        (Resize(target="ps-0", memory_bytes=1 << 20), "at least 32.0 MiB"),
        (Resize(target="ps-0", cpu_cores=1e-4), "at least 1m CPU"),
        (Resize(target="ps", cpu_cores=1.0), "each ps with 1 CPU is what it has already"),
    ],
)
def test_what_cannot_be_is_said(resize: Resize, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        assert not (found := resizings.conflict(JOB, resize)), found


def test_cores_of_its_own_are_given_when_a_replica_begins() -> None:
    spec = JobSpec(name="job", roles=(RoleSpec(role=Role.PS, cpu_cores=1.0, cpu_policy=CpuPolicy.EXCLUSIVE),))
    assert "exclusive" in (resizings.conflict(spec, Resize(target="ps-0", cpu_cores=2.0)) or "")
    assert resizings.conflict(spec, Resize(target="ps-0", memory_bytes=GIB)) is None


@pytest.mark.parametrize("target", ["", "ps-", "ps-x", "job", "ps_0", "worker-1.1"])
def test_what_names_nothing_is_wrong(target: str) -> None:
    with pytest.raises(InvalidInput, match="neither a replica nor a role"):
        resizings.asked(target, cpu_cores=1.0)


def test_a_role_stays_within_what_autoscaling_may_give_it() -> None:
    spec = dataclasses.replace(JOB, autoscale=Autoscale(ranges={Role.PS: CoreRange(0.5, 2.0)}))
    assert resizings.conflict(spec, Resize(target="ps", cpu_cores=2.0)) is None
    assert resizings.conflict(spec, Resize(target="worker", cpu_cores=4.0)) is None
    refused = resizings.conflict(spec, Resize(target="ps", cpu_cores=2.5))
    assert refused == "autoscale keeps the cores of each ps between 500m and 2"


def test_a_resize_of_nothing_is_wrong() -> None:
    with pytest.raises(InvalidInput, match="nothing is to change"):
        resizings.asked("ps-0")


def test_a_job_that_runs_goes_on_with_it_and_its_next_attempts_too() -> None:
    wanted = resizings.resized(JOB, Resize(target="ps-0", cpu_cores=1.5, memory_bytes=2 * GIB))
    state = advanced(running(), events.ResizeRequested(spec=wanted))
    assert state.phase is JobPhase.RUNNING
    assert state.replica(PS0).memory_bytes == 2 * GIB
    assert state.replica(PS1).memory_bytes == GIB
    assert allowances.allowance(state, PS0).cpu_cores == 1.5
    assert list(resizings.differences(JOB, state.spec)) == [
        "ps-0 has 1500m CPU (had 1 CPU)",
        "ps-0 has 2.0 GiB of memory (had 1.0 GiB of memory)",
    ]


def test_a_resize_takes_over_no_more_than_sizes() -> None:
    others = JOB.with_workers(9)
    state = advanced(running(), events.ResizeRequested(spec=others))
    assert state.spec == JOB


def test_a_job_that_ends_is_not_resized() -> None:
    state, _ = machines.advance(running(), events.StopRequested())
    wanted = resizings.resized(JOB, Resize(target="ps-0", cpu_cores=1.5))
    for event in (events.ResizeRequested(spec=wanted), events.AdjustRequested(adjustments=(cut(),))):
        assert machines.advance(state, event) == (state, [])


def test_what_is_for_a_time_ends_by_itself() -> None:
    state = advanced(running(), events.AdjustRequested(adjustments=(cut(), cut("worker-0", 0.3, 20.0))))
    assert [each.cpu_cores for each in allowances.allowances(state)] == [0.7, 1.0, 0.3, 0.5]
    state = advanced(state, events.TimePassed(now=9.0))
    assert allowances.allowance(state, PS0).cpu_cores == 0.7
    state = advanced(state, events.TimePassed(now=10.0))
    assert [each.cpu_cores for each in allowances.allowances(state)] == [1.0, 1.0, 0.3, 0.5]
    assert state.spec == JOB


def test_a_newer_one_takes_the_place_of_an_older_and_one_that_is_over_puts_it_back() -> None:
    state = advanced(
        running(),
        events.AdjustRequested(adjustments=(cut(),)),
        events.AdjustRequested(adjustments=(cut(cores=0.5),)),
    )
    assert state.adjustments == (cut(cores=0.5),)
    state = advanced(state, events.AdjustRequested(adjustments=(cut(until=0.0),)), events.TimePassed(now=1.0))
    assert state.adjustments == ()


def test_a_job_that_is_to_end_has_all_that_it_had() -> None:
    pause = Adjustment(knob=Knob.PAUSE, target="worker-1", value=1, until=10.0)
    state = advanced(running(), events.AdjustRequested(adjustments=(cut(), pause)))
    assert allowances.allowance(state, ReplicaId.parse("worker-1")).is_paused
    state, _ = machines.advance(state, events.StopRequested())
    assert state.adjustments == ()


def test_cores_of_its_own_have_a_quota_while_they_are_adjusted_only() -> None:
    role = RoleSpec(role=Role.WORKER, cpu_cores=2.0, cpu_policy=CpuPolicy.EXCLUSIVE)
    state = running(JobSpec(name="job", roles=(role,)))
    assert allowances.allowance(state, W0).cpu_cores is None
    state = advanced(state, events.AdjustRequested(adjustments=(cut("worker-0", 1.4),)))
    assert allowances.allowance(state, W0).cpu_cores == 1.4


def test_links_are_those_of_hosts() -> None:
    link = Adjustment(knob=Knob.LINK, target="a", value=21e6, until=1.0)
    assert allowances.links((cut(), link)) == {"a": 21_000_000}
