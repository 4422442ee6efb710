"""Synchronous steps and their slowest worker."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing import catalogues, chains
from paceline.diagnosing.scripts.synchronous_waits import sync_straggler
from paceline.diagnosing.trainers.slow_hosts import slow_host
from paceline.model.measures.recordings import Recording

RESTS = {"cpu_cores": 0.3, "cpu_limit_cores": 1.0}
WORKS = {"cpu_cores": 0.9, "cpu_limit_cores": 1.0}


def synchronous(second: dict[str, float], *, needed: int = 2, steps: tuple[int, int] = (40, 40)) -> Recording:
    """A job of two workers of which a step needs so many gradients; the load of the second one."""
    loads = {"ps-0": cases.SERVER, "worker-0": RESTS, "worker-1": second}
    made = {
        f"worker-{index}": cases.STEPS | {"steps": count, "examples": count * 64}
        for index, count in enumerate(steps)
    }
    facts = {"replicas_to_aggregate": needed, "total_replicas": 2}
    return cases.asking(cases.recording(loads, steps=made), {"worker-0": facts, "worker-1": facts})


def test_the_worker_that_works_while_the_others_rest_is_the_slowest() -> None:
    (cause,) = found(sync_straggler, synchronous(WORKS))
    assert (cause.subjects, cause.gain) == (("worker-1",), None)
    assert cause.what == "A synchronous step needs 2 gradients of 2 workers, and worker-1 is the slowest."
    assert cause.evidence[1].text == (
        "worker-1 computes or makes batches for 92% of its time, the others for 32%"
    )
    assert "replicas_to_aggregate=1" in cause.next_steps[0]


def test_one_that_makes_fewer_steps_is_too_and_its_host_may_be_why() -> None:
    recording = synchronous({"cpu_cores": 0.29, "cpu_limit_cores": 0.3}, steps=(40, 10))
    (cause,) = found(sync_straggler, recording)
    assert cause.subjects == ("worker-1",)
    causes = [*found(slow_host, recording), cause]
    assert [each.name for each in chains.chained(causes, catalogues.EXPLAINS)] == ["slow-host"]


@pytest.mark.parametrize(
    "recording",
    [
        synchronous(RESTS),
        synchronous(WORKS, needed=1),
        cases.recording({"ps-0": cases.SERVER, "worker-0": RESTS, "worker-1": WORKS}),
    ],
    ids=["all alike", "the last one is not needed", "not synchronous"],
)
def test_nothing_else_is(recording: Recording) -> None:
    assert found(sync_straggler, recording) == ()
