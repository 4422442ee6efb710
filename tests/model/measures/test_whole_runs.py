"""Snapshots of whole runs against numbers worked out by hand, and against anything that a store may hold."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import measured_runs
from support.examples import examples
from support.measured_runs import START, replica, report, sample

from paceline.model.jobs.runs import JobEvent, ReplicaRow
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures import snapshots
from paceline.model.measures.intervals import Interval, covered_seconds
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId, Role

PS0, PS1 = replica(Role.PS, 0), replica(Role.PS, 1)
WORKER0, WORKER1 = replica(Role.WORKER, 0), replica(Role.WORKER, 1)


def rows(*ids: ReplicaId, **facts: Any) -> list[ReplicaRow]:
    return [
        ReplicaRow(replica=of, **{"phase": ReplicaPhase.SUCCEEDED, "attempt": 1, "restarts": 0, **facts})
        for of in ids
    ]


def test_the_rate_of_all_is_over_the_time_in_which_any_worker_trained() -> None:
    steps = [
        report(WORKER0, 10, interval_seconds=10.0, examples=1000, steps=10, step=12),
        report(WORKER1, 15, interval_seconds=10.0, examples=500, steps=5, step=15),
        # No worker trained from 15 to 25: a restart.
        report(WORKER0, 30, interval_seconds=5.0, examples=500, steps=5, step=20),
    ]
    recording = Recording(
        run=measured_runs.run(), at=START, replicas=rows(WORKER0, WORKER1, restarts=1), steps=steps
    )
    whole = snapshots.of_whole_run(recording)
    assert whole.examples == 2000
    assert whole.examples_per_second == pytest.approx(2000 / 20)  # 0 to 15 and 25 to 30
    assert [r.examples_per_second for r in whole.replicas] == [pytest.approx(100), pytest.approx(50)]
    assert whole.step == 20
    assert whole.restarts == 2
    assert whole.elapsed_seconds == 100
    assert whole.interval == Interval(since=START, until=START + 30)


def test_a_time_without_steps_at_either_end_is_no_training() -> None:
    """A trainer that waits for the others, or exports its model, reports that it makes no step."""
    steps = [
        report(WORKER0, 30, interval_seconds=30.0, examples=0, steps=0),
        report(WORKER0, 40, interval_seconds=10.0, examples=1000, steps=10),
        report(WORKER0, 50, interval_seconds=10.0, examples=0, steps=0),
        report(WORKER0, 60, interval_seconds=10.0, examples=1000, steps=10),
        report(WORKER0, 600, interval_seconds=540.0, examples=0, steps=0),
    ]
    recording = Recording(run=measured_runs.run(), at=START, replicas=rows(WORKER0), steps=steps)
    whole = snapshots.of_whole_run(recording)
    assert whole.interval == Interval(since=START + 30, until=START + 60)
    assert whole.examples_per_second == pytest.approx(2000 / 30)
    assert whole.replicas[0].steps_per_second == pytest.approx(20 / 30)


def test_means_leave_out_what_lies_outside_of_training() -> None:
    samples = [
        sample(PS0, 5, cpu_cores=8.0, memory_bytes=100, network_received_bytes=1_000_000),
        sample(PS0, 11, cpu_cores=1.0, memory_bytes=300, network_received_bytes=100),
        sample(PS0, 14, interval_seconds=3.0, cpu_cores=2.0, memory_bytes=200, network_received_bytes=500),
        sample(PS0, 40, cpu_cores=8.0, memory_bytes=900),
    ]
    steps = [report(WORKER0, 20, interval_seconds=10.0, examples=1)]
    recording = Recording(run=measured_runs.run(), at=START, replicas=rows(PS0), samples=samples, steps=steps)
    (found,) = snapshots.of_whole_run(recording).replicas
    assert found.cpu_cores == pytest.approx((1.0 + 3 * 2.0) / 4)
    assert found.cpu_cores_max == 2.0
    assert found.memory_bytes == 900
    assert found.received_bytes_per_second == pytest.approx(600 / 4)
    assert found.sent_bytes_per_second is None


def test_shares_are_of_the_time_in_which_they_were_measured() -> None:
    samples = [
        sample(PS0, 1, throttled_seconds=0.5, voluntary_switches=90, involuntary_switches=10),
        sample(PS0, 2, throttled_seconds=0.0, voluntary_switches=50),
        sample(PS0, 3),
    ]
    steps = [
        report(WORKER0, 1, input_wait_seconds=0.25, all_reduce_seconds=0.125),
        report(WORKER0, 2),
        report(WORKER1, 3, input_wait_seconds=0.75),
    ]
    recording = Recording(
        at=START, run=measured_runs.run(), replicas=rows(PS0, WORKER0, WORKER1), samples=samples, steps=steps
    )
    whole = snapshots.of_whole_run(recording)
    assert whole.replicas[0].throttled_share == pytest.approx(0.25)
    assert whole.replicas[0].switches_per_second == pytest.approx(100)
    assert whole.replicas[1].input_wait_share == pytest.approx(0.25)
    assert whole.replicas[1].all_reduce_share == pytest.approx(0.125)
    assert whole.replicas[2].all_reduce_share is None
    assert whole.input_wait_share == pytest.approx(0.5)


def test_a_hot_ps_is_named() -> None:
    loads = {PS0: 3.0, PS1: 0.5, replica(Role.PS, 2): 0.5}
    samples = [
        sample(of, 1, cpu_cores=load, network_received_bytes=200, network_sent_bytes=100, memory_bytes=7)
        for of, load in loads.items()
    ]
    recording = Recording(run=measured_runs.run(), at=START, replicas=rows(*loads), samples=samples)
    servers = snapshots.of_whole_run(recording).servers
    assert servers is not None
    cpu, network = servers.imbalances
    assert (cpu.resource, network.resource) == ("CPU", "network")
    assert servers.loads("CPU") == loads
    assert cpu.max_over_mean == pytest.approx(3 / (4 / 3))
    assert cpu.gini == pytest.approx(2 * (0.5 + 1.0 + 9.0) / (3 * 4) - 4 / 3)
    assert cpu.hot == servers.hot == PS0
    assert network.max_over_mean == pytest.approx(1)
    assert network.hot is None
    assert servers.max_over_mean == pytest.approx(2.25)


def test_the_load_of_a_single_ps_is_not_uneven_but_unknown() -> None:
    recording = Recording(
        at=START, run=measured_runs.run(), replicas=rows(PS0), samples=[sample(PS0, 1, cpu_cores=1.0)]
    )
    servers = snapshots.of_whole_run(recording).servers
    assert servers is not None
    assert servers.max_over_mean is None


def test_what_was_not_measured_is_none_and_never_zero() -> None:
    recording = Recording(
        at=START,
        run=measured_runs.run(phase=JobPhase.RUNNING, notes=("no root", "no root")),
        replicas=rows(PS0, WORKER0),
        samples=[sample(PS0, 1)],
        steps=[report(WORKER0, 1), report(WORKER0, 2, interval_seconds=None, examples=5)],
    )
    whole = snapshots.of_whole_run(recording)
    for name in ("examples_per_second", "loss", "input_wait_share", "evaluation", "step"):
        assert getattr(whole, name) is None, name
    for found in whole.replicas:
        values = dataclasses.asdict(found)
        assert {values[name] for name in values if name not in ("row", "measured_at")} == {None}, values
    assert snapshots.of_whole_run(dataclasses.replace(recording, at=START + 7)).elapsed_seconds == 7


def test_a_running_job_has_a_snapshot_of_now_and_one_of_its_whole_run() -> None:
    steps = [report(WORKER0, second, examples=100 * second) for second in (1, 2, 40)]
    samples = [sample(WORKER0, second, cpu_cores=float(second)) for second in (1, 2, 40)]
    recording = Recording(
        run=measured_runs.run(phase=JobPhase.RUNNING),
        at=START + 40,
        replicas=rows(WORKER0, phase=ReplicaPhase.RUNNING),
        samples=samples,
        steps=steps,
    )
    now, whole = snapshots.of(recording), snapshots.of_whole_run(recording)
    assert (now.examples_per_second, now.replicas[0].cpu_cores) == (4000, 40)
    assert (now.whole_run, now.interval, now.examples) == (False, None, None)
    assert (whole.examples_per_second, whole.replicas[0].cpu_cores) == (pytest.approx(4300 / 3), 43 / 3)
    assert whole.replicas[0].cpu_cores_max == 40
    assert (whole.whole_run, whole.examples) == (True, 4300)
    ended = dataclasses.replace(recording, run=measured_runs.run())
    assert snapshots.of(ended) == snapshots.of_whole_run(ended)


@pytest.mark.parametrize(
    ("stretches", "seconds"),
    [([], 0), ([(0, 2), (1, 3)], 3), ([(5, 6), (0, 2)], 3), ([(0, 9), (1, 2), (8, 10)], 10), ([(3, 3)], 0)],
)
def test_time_that_two_cover_counts_once(stretches: list[tuple[float, float]], seconds: float) -> None:
    assert covered_seconds(stretches) == seconds


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


INSTANTS = st.floats(START - 100, START + 1000)
SECONDS = st.floats(0, 1e4)
COUNTS = maybe(st.integers(0, 2**60))
NUMBERS = maybe(st.floats(0, 1e12))
IDS = st.builds(ReplicaId, st.sampled_from(Role), st.integers(0, 2))
SAMPLES = st.builds(
    Sample, replica=IDS, attempt=st.just(1), at=INSTANTS, interval_seconds=SECONDS, cpu_cores=NUMBERS,
    throttled_seconds=NUMBERS, memory_bytes=COUNTS, network_received_bytes=COUNTS, network_sent_bytes=COUNTS,
    voluntary_switches=COUNTS, involuntary_switches=COUNTS, cpu_limit_cores=NUMBERS,
)  # fmt: skip
REPORTS = st.builds(
    StepReport, replica=IDS, attempt=st.just(1), at=INSTANTS, interval_seconds=maybe(SECONDS), step=COUNTS,
    steps=COUNTS, examples=COUNTS, loss=maybe(st.floats(-1e9, 1e9)), input_wait_seconds=NUMBERS,
)  # fmt: skip


@settings(max_examples=examples(150))
@given(
    samples=st.lists(SAMPLES, max_size=12),
    steps=st.lists(REPORTS, max_size=12),
    ids=st.sets(IDS),
    started=maybe(INSTANTS),
    finished=maybe(INSTANTS),
)
def test_any_records_have_a_snapshot_of_finite_numbers(
    samples: list[Sample],
    steps: list[StepReport],
    ids: set[ReplicaId],
    started: float | None,
    finished: float | None,
) -> None:
    recording = Recording(
        at=START,
        run=measured_runs.run(started_at=started, finished_at=finished),
        replicas=rows(*sorted(ids)),
        samples=sorted(samples, key=lambda s: s.at),
        steps=sorted(steps, key=lambda s: s.at),
        events=[JobEvent(at=START, kind="running", message="")],
    )
    whole = snapshots.of_whole_run(recording)
    for part in (whole, *whole.replicas):
        for value in _numbers(part):
            assert math.isfinite(value)
            assert value >= 0 or value == part.loss
    for role in whole.roles:
        for one in role.imbalances:
            assert 1 - 1e-9 <= one.max_over_mean <= len(role.replicas) + 1e-9
            assert -1e-9 <= one.gini <= 1


def _numbers(value: Any) -> list[float]:
    found = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [number for number in found if isinstance(number, int | float)]
