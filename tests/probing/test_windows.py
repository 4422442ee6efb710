"""What a job did between two moments."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.model.measures.probes import RateUnit
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.probing import windows

W0, PS0 = ReplicaId.parse("worker-0"), ReplicaId.parse("ps-0")


def report(at: float, examples: int | None = 100, seconds: float | None = 1.0) -> StepReport:
    return StepReport(replica=W0, attempt=1, at=at, interval_seconds=seconds, steps=10, examples=examples)


def test_a_report_counts_as_far_as_it_is_within() -> None:
    reports = [report(1.5), report(2.5), report(3.5)]
    assert windows.rate(RateUnit.EXAMPLES, reports, [], 1.0, 3.0) == pytest.approx(100.0)
    assert windows.rate(RateUnit.EXAMPLES, reports, [], 1.0, 2.0) == pytest.approx(100.0)


def test_where_no_example_is_known_steps_count_and_where_no_step_is_the_bytes_that_are_sent() -> None:
    sent = [Sample(replica=PS0, attempt=1, at=2.0, interval_seconds=2.0, network_sent_bytes=600)]
    assert windows.unit([report(1.0)]) is RateUnit.EXAMPLES
    assert windows.unit([report(1.0, examples=None)]) is RateUnit.STEPS
    assert windows.unit([]) is RateUnit.BYTES
    assert windows.rate(RateUnit.STEPS, [report(2.0), report(3.0)], [], 1.0, 3.0) == pytest.approx(10.0)
    assert windows.rate(RateUnit.BYTES, [], sent, 1.0, 2.0) == pytest.approx(300.0)


def test_who_is_held_back_is_who_is_throttled_meanwhile() -> None:
    samples = [
        Sample(replica=each, attempt=1, at=at, interval_seconds=1.0, throttled_seconds=throttled)
        for each, throttled in ((PS0, 0.3), (W0, 0.001))
        for at in (1.0, 2.0, 3.0)
    ]
    assert windows.held_back(samples, ["ps-0", "worker-0"], 0.5, 3.5) == ("ps-0",)
    assert windows.held_back(samples, ["ps-0", "ps-1"], 0.5, 3.5) is None
    assert windows.held_back(samples, ["ps-0"], 3.5, 9.0) is None


def test_how_long_an_evaluation_went_on() -> None:
    evaluator = ReplicaId.parse("evaluator-0")
    samples = [
        Sample(replica=each, attempt=1, at=at, interval_seconds=1.0, cpu_cores=used)
        for each, at, used in (
            (evaluator, 1.0, 0.01), (evaluator, 2.0, 0.9), (evaluator, 3.0, 0.9), (W0, 4.0, 0.9),
        )
    ]  # fmt: skip
    assert windows.evaluating(samples, 1.0, 3.0) == 1.0
    assert windows.evaluating(samples, 0.0, 2.0) == 0.5
    assert windows.evaluating(samples, 3.0, 5.0) == 0.0
    assert windows.evaluating(samples, 3.0, 3.0) == 0.0


def test_how_long_a_trainer_stood_still() -> None:
    """worker-0 saves a checkpoint for 4 s; worker-1 reports each 3 s, as its steps are long."""
    saves = [report(at) for at in (1.0, 2.0, 3.0, 4.0, 8.0, 9.0, 10.0)]
    slow = [dataclasses.replace(report(at), replica=ReplicaId.parse("worker-1")) for at in (1.0, 4.0, 7.0)]
    assert windows.standing([*saves, *slow], 4.0, 8.0) == 1.0
    assert windows.standing([*saves, *slow], 0.0, 8.0) == 0.5
    assert windows.standing([*saves, *slow], 8.0, 10.0) == 0.0
    assert windows.standing(slow, 0.0, 15.0) == 0.0
    assert windows.standing([], 0.0, 1.0) == windows.standing(saves, 5.0, 5.0) == 0.0


def test_a_trainer_of_which_nothing_comes_stands_until_it_must_have_ended() -> None:
    reports = [report(at) for at in (1.0, 2.0, 3.0)]
    assert windows.standing(reports, 4.0, 5.0) == 0.0
    assert windows.standing(reports, 8.0, 9.0) == 1.0
    assert windows.standing(reports, 80.0, 90.0) == 0.0


def test_at_its_limit_is_who_is_throttled_or_uses_all_its_cores_outside_of_a_cut() -> None:
    def sample(replica: ReplicaId, at: float, throttled: float, used: float) -> Sample:
        return Sample(
            replica=replica, attempt=1, at=at, interval_seconds=1.0, throttled_seconds=throttled,
            cpu_cores=used, cpu_limit_cores=1.0,
        )  # fmt: skip

    held = [sample(PS0, at, 0.1, 0.7) for at in (1.0, 2.0, 8.0)]
    rests = [sample(W0, at, 0.0, 0.85) for at in (1.0, 2.0, 8.0)]
    cut = [sample(W0, at, 0.5, 1.0) for at in (4.0, 5.0)]
    around = ((0.0, 3.0), (7.0, 9.0))
    assert windows.at_limit([*held, *rests, *cut], ["ps-0", "worker-0"], around) == ("ps-0",)
    exclusive = [sample(W0, at, 0.0, 0.98) for at in (1.0, 2.0)]
    assert windows.at_limit([*held, *exclusive], ["ps-0", "worker-0"], around) == ("ps-0", "worker-0")
    assert windows.at_limit(held, ["ps-0", "worker-0"], around) is None


@pytest.mark.parametrize(("since", "until"), [(3.0, 3.0), (4.0, 3.0), (90.0, 99.0)])
def test_of_no_time_and_of_a_time_without_reports_nothing_is_known(since: float, until: float) -> None:
    assert windows.rate(RateUnit.EXAMPLES, [report(2.0)], [], since, until) is None


def test_reports_of_no_interval_are_passed_over() -> None:
    reports = [report(2.0, seconds=None), report(2.0, seconds=0.0)]
    assert windows.rate(RateUnit.EXAMPLES, reports, [], 1.0, 3.0) is None
