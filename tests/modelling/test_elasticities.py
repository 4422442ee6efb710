"""What a probe has found, beside the model and in it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pytest
from support.layouts import COSTS, measured, workers

from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.job_specs import Host
from paceline.model.measures.probes import CutPart, Elasticity
from paceline.modelling import calibrations, elasticities, predictions
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers

LAYOUT = ModelLayout(
    servers=(
        ParameterServer(cores=0.2, host="a", step_bytes=4e5),
        ParameterServer(cores=0.5, host="b", step_bytes=1e4),
    ),
    trainers=(Trainers(replicas=workers(3), cores=1.0, host=None),),
    hosts=(Host(name="a", bandwidth_bits_per_second=100_000_000), Host(name="b")),
    machine_cores=16.0,
    batch_size=512,
)
PS0, PS1 = CutPart(Knob.CPU, ("ps-0",)), CutPart(Knob.CPU, ("ps-1",))
LINK, ALL = CutPart(Knob.LINK, ("a", "b")), CutPart(Knob.CPU, ("worker-0", "worker-1", "worker-2"))


def speed(layout: ModelLayout, costs: Costs = COSTS) -> float:
    return predictions.speed(layout, costs).steps_per_second


def probed(parts: Sequence[CutPart], costs: Costs = COSTS, layout: ModelLayout = LAYOUT) -> list[Elasticity]:
    """What a probe without noise finds in a job of such costs."""
    found = []
    for part in parts:
        other = elasticities.cut(layout, part, 0.7)
        assert other is not None
        value = math.log(speed(other, costs) / speed(layout, costs)) / math.log(0.7)
        found.append(Elasticity(part=part, value=value, low=value - 0.1, high=value + 0.1, cuts=2))
    return found


@pytest.mark.parametrize(
    ("part", "cores", "link", "trainers"),
    [
        (PS0, (0.14, 0.5), 100_000_000, [(3, 1.0)]),
        (ALL, (0.2, 0.5), 100_000_000, [(3, 0.7)]),
        (CutPart(Knob.CPU, ("worker-1",)), (0.2, 0.5), 100_000_000, [(2, 1.0), (1, 0.7)]),
        (LINK, (0.2, 0.5), 70_000_000, [(3, 1.0)]),
        (CutPart(Knob.PAUSE, ("worker-2",)), (0.2, 0.5), 100_000_000, [(2, 1.0)]),
    ],
    ids=lambda each: each.name if isinstance(each, CutPart) else "",
)
def test_what_is_cut_of_a_layout(
    part: CutPart, cores: tuple[float, ...], link: int, trainers: list[tuple[int, float]]
) -> None:
    found = elasticities.cut(LAYOUT, part, 0.7)
    assert found is not None
    assert [each.cores for each in found.servers] == [pytest.approx(each) for each in cores]
    assert [each.bandwidth_bits_per_second for each in found.hosts] == [link, None]
    assert [(each.count, each.cores) for each in found.trainers] == trainers


@pytest.mark.parametrize(
    "part", [CutPart(Knob.WEIGHT, ("ps-0",)), CutPart(Knob.LINK, ("b",)), CutPart(Knob.CPU, ("evaluator-0",))]
)
def test_a_part_that_the_model_does_not_know(part: CutPart) -> None:
    assert elasticities.cut(LAYOUT, part, 0.7) is None
    unknown = Elasticity(part=part, value=1.0, low=0.9, high=1.1, cuts=2)
    calibration = calibrations.calibrated([measured(LAYOUT, COSTS)])
    assert elasticities.compared(LAYOUT, calibration, [unknown]) == ()
    assert list(elasticities.probed(LAYOUT, [unknown])) == []


def test_the_last_trainer_that_stands_still_leaves_nothing_to_compute() -> None:
    part = CutPart(Knob.PAUSE, ("worker-0",))
    alone = dataclasses.replace(LAYOUT, trainers=(Trainers(replicas=workers(1), cores=1.0, host=None),))
    still = Elasticity(part=part, value=1.0, low=0.9, high=1.1, cuts=1)
    assert list(elasticities.probed(alone, [still])) == []


def test_a_model_that_has_the_costs_says_what_the_probe_says() -> None:
    calibration = dataclasses.replace(calibrations.calibrated([measured(LAYOUT, COSTS)]), costs=COSTS)
    parts = [PS0, PS1, LINK, ALL]
    for each in elasticities.compared(LAYOUT, calibration, probed(parts)):
        assert each.computed == pytest.approx(each.probed.value, abs=1e-6)


def test_what_a_probe_has_found_mends_a_model_that_is_wrong() -> None:
    """One run of one server does not tell how many of its cores grow with the steps."""
    true = dataclasses.replace(COSTS, server_background_cores=0.08)
    one = dataclasses.replace(LAYOUT, servers=LAYOUT.servers[:1], hosts=(Host(name="a"),))
    found = probed([PS0, ALL], true, one)
    before = calibrations.calibrated([measured(one, true)])
    after = calibrations.calibrated(
        [measured(one, true)], [each for _, each in elasticities.probed(one, found)]
    )
    more = dataclasses.replace(one, servers=(dataclasses.replace(one.servers[0], cores=0.4),))
    came = speed(more, true) / speed(one, true)

    def missed(costs: Costs) -> float:
        return abs(math.log(speed(more, costs) / speed(one, costs) / came))

    assert missed(after.costs) < 0.5 * missed(before.costs)
    (wrong, _), (right, _) = (elasticities.compared(one, each, found) for each in (before, after))
    assert abs(right.computed - right.probed.value) < 0.5 * abs(wrong.computed - wrong.probed.value)
