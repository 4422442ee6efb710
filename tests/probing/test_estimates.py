"""From cuts to elasticities with intervals that hold as often as they say."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import LEAST, Cut, CutPart, Elasticity, PartVerdict
from paceline.probing import estimates, sayings

PS0 = CutPart(Knob.CPU, ("ps-0",))


def cut(rate: float, *, before: float = 100.0, after: float = 100.0, factor: float = 0.7) -> Cut:
    return Cut(part=PS0, factor=factor, since=0.0, until=5.0, rate=rate, before=before, after=after)


def test_a_rate_that_falls_as_the_share_does_has_an_elasticity_of_one() -> None:
    (found,) = estimates.known([cut(70.0), cut(70.0)], [100.0] * 10).elasticities.values()
    assert found.value == pytest.approx(1.0)
    assert found.verdict is PartVerdict.BINDS
    assert found.times(1.5)[0] == pytest.approx(1.5)


def test_a_part_that_has_more_than_it_uses_costs_something_when_cut_and_does_not_bind() -> None:
    # It uses 85 % of what it has: 70 % of that are 82 % of what it needs.
    cuts = [dataclasses.replace(cut(82.0), felt=("ps-0",), at_limit=()) for _ in range(2)]
    (found,) = estimates.known(cuts, [100.0] * 10).elasticities.values()
    assert found.value == pytest.approx(0.556, abs=0.01)
    assert (found.verdict, found.at_limit) == (PartVerdict.RESTS, False)
    assert found.times(1.5) == (1.0, 1.0, 1.0)
    assert found.times(0.7)[0] == pytest.approx(0.82)
    assert sayings.cost(found) == "costs 18%: it has more than it uses, so more brings nothing"
    assert list(sayings.foretold([found])) == []


def test_of_a_group_those_bind_that_use_all_that_they_have() -> None:
    both, ps1 = CutPart(Knob.CPU, ("ps-0", "ps-1")), CutPart(Knob.CPU, ("ps-1",))

    def of(part: CutPart, rate: float) -> Cut:
        at_limit = tuple(each for each in part.targets if each == "ps-0")
        return dataclasses.replace(cut(rate), part=part, felt=part.targets, at_limit=at_limit)

    known = estimates.known([of(both, 60.0), of(PS0, 70.0), of(ps1, 82.0)], [100.0] * 10)
    found = {part.targets: each.verdict for part, each in known.elasticities.items()}
    assert found == {
        ("ps-0", "ps-1"): PartVerdict.BINDS,
        ("ps-0",): PartVerdict.BINDS,
        ("ps-1",): PartVerdict.RESTS,
    }
    whole = known.elasticities[both]
    assert known.inferred(whole, [known.elasticities[PS0]], ps1).verdict is PartVerdict.RESTS


def test_where_it_is_not_seen_who_is_at_the_limit_a_cut_that_costs_something_binds() -> None:
    (found,) = estimates.known([cut(82.0), cut(82.0)], [100.0] * 10).elasticities.values()
    assert (found.verdict, found.at_limit) == (PartVerdict.BINDS, True)


def test_a_base_that_drifts_is_the_mean_of_both_sides() -> None:
    (found,) = estimates.known([cut(100.0, before=80.0, after=125.0)], [100.0] * 10).elasticities.values()
    assert found.value == pytest.approx(0.0)


def test_deeper_cuts_weigh_more() -> None:
    (found,) = estimates.known(
        [cut(90.0, factor=0.9), cut(100.0, factor=0.6)], [100.0] * 10
    ).elasticities.values()
    assert 0 < found.value < 0.1


def test_intervals_hold_as_often_as_they_say() -> None:
    chance = random.Random(1)

    def noisy(rate: float) -> float:
        return rate * math.exp(chance.gauss(0.0, 0.02))

    held = 0
    for _ in range(300):
        baselines = [noisy(100.0) for _ in range(10)]
        cuts = [cut(noisy(100.0 * 0.7**0.6), before=noisy(100.0), after=noisy(100.0)) for _ in range(2)]
        (found,) = estimates.known(cuts, baselines).elasticities.values()
        held += found.low <= 0.6 <= found.high
    assert held >= 270, "95 % are promised; of 300, 285"


@pytest.mark.parametrize(
    ("low", "value", "high", "verdict"),
    [
        (0.5, 0.9, 1.3, PartVerdict.BINDS),
        (-0.1, 0.9, 1.9, PartVerdict.UNCLEAR),
        (-0.1, 0.0, LEAST / 2, PartVerdict.RESTS),
        (0.01, LEAST / 2, LEAST * 0.9, PartVerdict.RESTS),
        (-0.9, -0.5, -0.1, PartVerdict.RESTS),
    ],
)
def test_what_is_said_of_a_part(low: float, value: float, high: float, verdict: PartVerdict) -> None:
    assert Elasticity(part=PS0, value=value, low=low, high=high, cuts=2).verdict is verdict
