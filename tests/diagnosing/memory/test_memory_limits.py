"""Memory that nears its limit, or will."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from typing import Any

from support import cases
from support.cases import START, found

from paceline.diagnosing.memory.memory_limits import memory_near_limit
from paceline.diagnosing.memory.memory_requests import memory_over_asked
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId, Role
from paceline.services.observing import diagnosis_runs

MIB = 2**20
LIMIT = 1024 * MIB


def _load(used: int, limit: int | None = LIMIT) -> dict[str, Any]:
    return cases.SERVER | {"memory_bytes": used, "memory_limit_bytes": limit}


def _recording(memory: Callable[[float], float], *, seconds: int = 60, **more: Any) -> Recording:
    """Return the recording of a job whose PS uses so much after so many seconds."""

    def grown(sample: Sample) -> Sample:
        if sample.replica.role is not Role.PS:
            return sample
        return dataclasses.replace(sample, memory_bytes=round(memory(sample.at - START)))

    loads = {"ps-0": _load(0), "worker-0": _load(300 * MIB)}
    roles = {"ps": {"memory_bytes": LIMIT}, "worker": {"memory_bytes": LIMIT}}
    return cases.edited(cases.recording(loads, roles=roles, seconds=seconds, **more), samples=grown)


def test_memory_near_its_limit_is_told_with_what_it_needs() -> None:
    (cause,) = found(memory_near_limit, _recording(lambda _: 950 * MIB))
    assert cause.what == "ps-0 uses 93% of its memory of 1.0 GiB."
    assert cause.subjects == ("ps-0",)
    assert cause.changes == (FieldChange(path=("spec", "roles", "ps", "memory"), value="1216Mi"),)
    assert cause.evidence[0].text == "ps-0 950 MiB of 1.0 GiB"
    assert "spec.roles.ps.memory_growth: {factor: 1.5} gives more after a kill" in cause.next_steps


def test_growth_is_told_with_the_moment_of_the_limit() -> None:
    chance = random.Random(3)
    leak = _recording(lambda at: 300 * MIB + 6 * MIB * at + chance.gauss(0, 8 * MIB))
    (cause,) = found(memory_near_limit, leak)
    # 364 MiB are left after a minute, at 6 MiB a second.
    assert cause.what == (
        "ps-0 uses 64% of its memory of 1.0 GiB, and grows so fast that it will be full in 1m01s to 1m05s."
    )
    assert cause.evidence[1].text == "ps-0 grew by 352 MiB a minute (340 MiB to 364 MiB) over 59s"
    assert cause.evidence[1].sources[0].count == 60
    # More memory only puts off what never ends.
    assert cause.changes == ()
    assert cause.next_steps[0].startswith("find what ps-0 keeps")


def test_an_ended_job_would_have_come_to_its_limit() -> None:
    leak = _recording(lambda at: 300 * MIB + 6 * MIB * at, phase=JobPhase.STOPPED)
    (cause,) = found(memory_near_limit, leak)
    assert "grew so fast that it would have been full 1m01s later" in cause.what


def test_programs_grow_while_they_begin() -> None:
    for slowness in (4, 8, 20, 50):
        rest = _recording(lambda at, slowness=slowness: 600 * MIB * (1 - math.exp(-at / slowness)))
        assert not found(memory_near_limit, rest), slowness
    assert not found(memory_near_limit, _recording(lambda at: 500 * MIB if at > 9 else 50 * MIB * at))


def _importing(
    seconds: int, steps: dict[str, Any], trained: dict[str, tuple[int, int]] | None = None
) -> Recording:
    """A job whose second worker grows by 12 MiB a second."""
    loads = {"ps-0": _load(300 * MIB), "worker-0": _load(300 * MIB), "worker-1": _load(0)}
    recording = cases.recording(loads, steps=steps, trained=trained, seconds=seconds)

    def grown(sample: Sample) -> Sample:
        if str(sample.replica) != "worker-1":
            return sample
        return dataclasses.replace(sample, memory_bytes=round(50 * MIB + 12 * MIB * (sample.at - START)))

    return cases.edited(recording, samples=grown)


def test_imports_and_graphs_that_are_built_are_no_leak() -> None:
    """Before, growth counted from the first sample on where no step was seen yet, and from others' steps."""
    assert not found(memory_near_limit, _importing(30, {}))
    trained = {"worker-0": (5, 40), "worker-1": (35, 40)}
    both = dict.fromkeys(("worker-0", "worker-1"), cases.STEPS)
    assert not found(memory_near_limit, _importing(40, both, trained)), "the other one trains already"
    assert not found(memory_near_limit, _importing(40, {"worker-0": cases.STEPS})), "it has made no step"


def test_what_grows_after_its_first_step_leaks() -> None:
    both = dict.fromkeys(("worker-0", "worker-1"), cases.STEPS)
    (cause,) = found(memory_near_limit, _importing(40, both, {"worker-1": (10, 40)}))
    assert cause.subjects == ("worker-1",)


def test_a_server_that_comes_back_grows_while_it_restores() -> None:
    back = {"ps-0": {"attempt": 2, "restarts": 1}}
    grows = _recording(lambda at: 300 * MIB + 12 * MIB * at, seconds=35, rows=back)
    again = cases.edited(
        grows,
        samples=lambda each: dataclasses.replace(each, attempt=2 if each.replica.role is Role.PS else 1),
    )
    assert found(memory_near_limit, _recording(lambda at: 300 * MIB + 12 * MIB * at, seconds=35))
    assert not found(memory_near_limit, again)


def test_noise_is_no_growth() -> None:
    chance = random.Random(5)
    assert not found(memory_near_limit, _recording(lambda _: chance.gauss(500 * MIB, 30 * MIB)))


def test_a_few_samples_are_not_sure() -> None:
    assert not found(memory_near_limit, _recording(lambda at: 300 * MIB + 30 * MIB * at, seconds=7))


def test_slow_growth_is_no_problem() -> None:
    assert not found(memory_near_limit, _recording(lambda at: 300 * MIB + 0.6 * MIB * at))


def test_a_job_that_ends_before_its_limit_is_well() -> None:
    steps = {"worker-0": cases.STEPS | {"total_steps": 60 * 40 + 40 * 20}}
    assert not found(memory_near_limit, _recording(lambda at: 300 * MIB + 6 * MIB * at, steps=steps))
    more = {"worker-0": cases.STEPS | {"total_steps": 60 * 40 + 40 * 120}}
    (cause,) = found(memory_near_limit, _recording(lambda at: 300 * MIB + 6 * MIB * at, steps=more))
    # 660 MiB now, 6 MiB a second for the two minutes that are left, of which it may use 80 %.
    assert cause.changes == (FieldChange(path=("spec", "roles", "ps", "memory"), value="1728Mi"),)


def test_without_a_limit_nothing_nears() -> None:
    loads = {"ps-0": _load(950 * MIB, None), "worker-0": _load(300 * MIB, None)}
    assert not found(memory_near_limit, cases.recording(loads))


def test_a_replica_that_was_killed_for_it_is_told_of_elsewhere() -> None:
    killed = {"ps-0": {"exit": ExitReason(kind=ExitKind.OUT_OF_MEMORY, signal=9)}}
    assert not found(memory_near_limit, _recording(lambda _: 950 * MIB, rows=killed))


def test_memory_that_is_not_used_is_named_with_what_is_enough() -> None:
    roles = {"ps": {"memory_bytes": 8 * LIMIT}, "worker": {"memory_bytes": LIMIT}}
    loads = {"ps-0": _load(700 * MIB), "ps-1": _load(300 * MIB), "worker-0": _load(400 * MIB)}
    (cause,) = found(memory_over_asked, cases.recording(loads, roles=roles))
    assert cause.what == "Each ps asks for 8.0 GiB of memory; none used more than 700 MiB."
    assert cause.severity.rank == 0
    assert cause.changes == (FieldChange(path=("spec", "roles", "ps", "memory"), value="1280Mi"),)
    assert cause.evidence[0].text == "at most 9% was used; 14.6 GiB of 2 ps rest"


def test_memory_that_is_needed_grows_or_is_hardly_known_is_left_alone() -> None:
    roles = {"ps": {"memory_bytes": 2 * LIMIT}}
    for used, seconds in ((620, 60), (100, 8)):
        loads = {"ps-0": _load(used * MIB), "worker-0": _load(MIB)}
        assert not found(memory_over_asked, cases.recording(loads, roles=roles, seconds=seconds)), used
    small = {"ps": {"memory_bytes": LIMIT // 2}}
    loads = {"ps-0": _load(MIB), "worker-0": _load(MIB)}
    assert not found(memory_over_asked, cases.recording(loads, roles=small))
    growing = _recording(lambda at: MIB * at * 3.0)
    assert [cause.subjects for cause in found(memory_over_asked, growing)] == [("worker-0",)]


def test_a_job_whose_first_step_would_be_seen_does_not_grow_before_it() -> None:
    """It imports TensorFlow and builds a large graph, for longer than others take."""
    grows = _recording(lambda after: 200 * MIB + 3 * MIB * after, seconds=200, steps={})
    assert found(memory_near_limit, grows)
    seen = JobEvent(
        at=START,
        kind=SEEN,
        message="TensorFlow 1.15.5",
        replica=ReplicaId(Role.WORKER, 0),
        attempt=1,
    )
    assert not found(memory_near_limit, dataclasses.replace(grows, events=(seen,)))


def test_a_look_sees_what_grows_in_a_job_whose_steps_are_not_seen() -> None:
    """It reaches two minutes back, and the job began long before."""
    grows = _recording(lambda after: 200 * MIB + 2 * MIB * after, seconds=300, steps={})
    recent = tuple(each for each in grows.samples if each.at > grows.at - diagnosis_runs.REACH_SECONDS)
    look = dataclasses.replace(grows, samples=recent)
    assert [each.subjects for each in found(memory_near_limit, look)] == [("ps-0",)]
    late = tuple(each for each in recent if each.replica.role is Role.WORKER or each.at > grows.at - 60)
    assert not found(memory_near_limit, dataclasses.replace(grows, samples=late)), "it has just begun"
    # One that has just come back has begun with its first sample, as far as is known.
    back = cases.edited(look, samples=lambda each: dataclasses.replace(each, attempt=2))
    rows = tuple(dataclasses.replace(each, attempt=2, restarts=1) for each in look.replicas)
    assert not found(memory_near_limit, dataclasses.replace(back, replicas=rows))
