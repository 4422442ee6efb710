"""A rank that all others wait for in all-reduce."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.cases import Case
from paceline.diagnosing.diagnoses import judged, slowing
from paceline.diagnosing.trainers.slow_hosts import slow_host
from paceline.diagnosing.trainers.slow_ranks import TOPIC, slow_rank
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Framework
from paceline.model.measures.recordings import Recording

PYTORCH = {"framework": Framework.PYTORCH}
WAITS = {**cases.STEPS, "all_reduce_seconds": 0.6}
LATE = {**cases.STEPS, "all_reduce_seconds": 0.05}
RESTS, WORKS = {**cases.TRAINER, "cpu_cores": 0.3}, {**cases.TRAINER, "cpu_cores": 0.9}


def _recording(
    late: dict[str, Any] = LATE, load: dict[str, Any] = WORKS, waits: dict[str, Any] = WAITS, **more: Any
) -> Recording:
    loads = {"worker-0": RESTS, "worker-1": load, "worker-2": RESTS}
    steps = {"worker-0": waits, "worker-1": late, "worker-2": waits}
    return cases.recording(loads, steps=steps, spec=PYTORCH, **more)


def test_a_rank_that_computes_more_is_named() -> None:
    (cause,) = found(slow_rank, _recording())
    assert cause.what == (
        "worker-1 makes other ranks wait: they spend 60% of their time in all-reduce, it 5%."
    )
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("worker-1",))
    assert [each.text for each in cause.evidence] == [
        "time in all-reduce: worker-1 5%; the median of the others 60%",
        "a step takes worker-1 3.0 times as much CPU time as the others",
    ]
    assert cause.evidence[0].sources[0].field == "all_reduce_seconds"
    assert cause.next_steps[0].startswith("see what worker-1 does in a step and the others do not")
    assert cause.gain is not None
    # Without it a step is as long as that of the others: 0.45 s of each second are left out.
    assert (cause.gain.low, cause.gain.high) == (pytest.approx(1 / 0.45), pytest.approx(1 / 0.45))
    assert not found(slow_host, _recording()), "all make the same steps"


def test_a_rank_with_fewer_cores_is_told_of_them() -> None:
    (cause,) = found(slow_rank, _recording(load={"cpu_cores": 0.49, "cpu_limit_cores": 0.5}))
    assert cause.evidence[1].text == (
        "worker-1 may use 0.50 cores and uses 98% of them, the others may use 1.00"
    )


def test_a_rank_that_waits_for_its_input_is_told_so() -> None:
    (cause,) = found(slow_rank, _recording(late={**LATE, "input_wait_seconds": 0.6}, load=RESTS))
    assert cause.evidence[1].text == "worker-1 waits for its input 60% of the time, the others 2%"
    assert cause.evidence[1].sources[0].what == "steps"


def test_of_a_rank_that_is_late_for_no_reason_that_shows_its_stack_is_looked_at() -> None:
    (cause,) = found(slow_rank, _recording(load=RESTS))
    assert len(cause.evidence) == 1
    assert cause.next_steps == (
        "see what worker-1 does between its steps: py-spy dump --pid PID",
        "paceline logs clicks --role worker --index 1 --tail 20",
    )


def test_two_of_five_are_both_named() -> None:
    names = [f"worker-{index}" for index in range(5)]
    steps = {name: LATE if name in names[:2] else WAITS for name in names}
    (cause,) = found(slow_rank, cases.recording(dict.fromkeys(names, RESTS), steps=steps, spec=PYTORCH))
    assert cause.subjects == ("worker-0", "worker-1")


@pytest.mark.parametrize(
    ("late", "waits"),
    [
        (0.5, 0.6),  # All wait: gradients are large, or their way is slow.
        (0.05, 0.2),  # They wait little.
        (0.0, 0.0),
    ],
)
def test_ranks_that_wait_alike_are_no_stragglers(late: float, waits: float) -> None:
    recording = _recording(
        late={**LATE, "all_reduce_seconds": late}, waits={**WAITS, "all_reduce_seconds": waits}
    )
    assert not found(slow_rank, recording)


@pytest.mark.parametrize(("used_cores", "is_named"), [(0.9, True), (0.3, False)])
def test_a_rank_that_waits_half_as_long_as_the_others_is_late_only_for_a_reason(
    used_cores: float, is_named: bool
) -> None:
    """Measured: of three ranks the one with 2.8 times the CPU time of a step waited 26 %, the others 55 %."""
    late, waits = {**LATE, "all_reduce_seconds": 0.28}, {**WAITS, "all_reduce_seconds": 0.55}
    recording = _recording(late=late, waits=waits, load={**cases.TRAINER, "cpu_cores": used_cores})
    assert bool(found(slow_rank, recording)) is is_named


def test_ranks_that_use_all_their_cores_while_they_wait_would_be_no_faster_without_that() -> None:
    """A quota throttles each in turn: which of them waits depends on whose period ends first."""
    full = {**cases.TRAINER, "cpu_cores": 0.245, "cpu_limit_cores": 0.25}
    steps = {"worker-0": {**LATE, "all_reduce_seconds": 0.09}, "worker-1": WAITS}
    loads = {"worker-0": full, "worker-1": full}
    assert not found(slow_rank, cases.recording(loads, steps=steps, spec=PYTORCH))


def test_one_rank_cannot_be_compared() -> None:
    assert not found(slow_rank, cases.recording({"worker-0": RESTS}, steps={"worker-0": LATE}, spec=PYTORCH))


def test_it_comes_first_of_all_that_is_found() -> None:
    """Also where the others are at the limit of their cores between their waits."""
    recording = _recording(load={"cpu_cores": 1.0, "cpu_limit_cores": 1.0}, facts=(("cores", "2"),))
    causes = slowing(Case.of(recording))
    assert [each.name for each in causes][:1] == [TOPIC.name]


def test_what_is_not_measured_is_said_of_ranks_alone() -> None:
    unseen = cases.recording({"worker-0": RESTS, "worker-1": RESTS}, spec=PYTORCH)
    assert slow_rank.lacks(Case.of(unseen))
    served = cases.recording({"ps-0": cases.SERVER, "worker-0": RESTS, "worker-1": RESTS})
    assert not slow_rank.lacks(Case.of(served))
    assert not slow_rank.lacks(Case.of(cases.recording({"worker-0": RESTS}, spec=PYTORCH)))


def test_what_only_parameter_servers_have_is_not_missed() -> None:
    _, lacking = judged(Case.of(_recording()))
    assert lacking
    assert not [each for each in lacking if "paceline trace" in each or "variables" in each]
    _, of_servers = judged(Case.of(cases.recording({"ps-0": cases.SERVER, "worker-0": RESTS})))
    assert [each for each in of_servers if "paceline trace" in each]
