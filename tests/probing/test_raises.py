"""What more of a part brings, from what less of each has cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import CutPart, Elasticity
from paceline.probing import raises, sayings

NAMES = ("ps-0", "ps-1", "worker-0")


def found(name: str, value: float, half: float = 0.05, knob: Knob = Knob.CPU, **more: bool) -> Elasticity:
    return Elasticity(
        part=CutPart(knob, (name,)), value=value, low=value - half, high=value + half, cuts=2, **more
    )


def probed(rate: Callable[[Mapping[str, float]], float]) -> list[Elasticity]:
    """What small cuts find of a job."""
    whole = dict.fromkeys(NAMES, 1.0)
    return [
        found(name, math.log(rate({**whole, name: 0.99}) / rate(whole)) / math.log(0.99), 0.0)
        for name in NAMES
    ]


def test_what_alone_binds_brings_what_its_cut_has_cost() -> None:
    ends = [found("ps-0", 0.9), found("ps-1", 0.0), found("worker-0", 0.05)]
    value, low, high = raises.times(ends[:1], ends, 1.5)
    assert (value, low, high) == pytest.approx((1.5**0.9, 1.5**0.85, 1.5**0.95))


def test_two_links_of_a_chain_hold_back_each_other() -> None:
    """As measured: 0.2 cores of a server and its link of 250 Mbit were both at their limit."""
    cores, link = found("ps-1", 1.14, 0.37), found("ps-host-1", 0.81, 0.37, Knob.LINK)
    alone = raises.times([cores], [cores, link], 3.0)
    assert alone[0] == pytest.approx(3**0.19)
    assert alone[1] <= 1.0 <= alone[2], "three times the cores brought nothing"
    assert raises.times([cores, link], [cores, link], 1.5)[0] == pytest.approx(1.5)
    told = list(sayings.foretold([cores, link]))
    assert len(told) == 3
    assert told[-1].endswith("each holds back the others")


def test_what_has_more_than_it_uses_and_the_number_of_trainers_count_for_nothing() -> None:
    ends = [
        found("ps-0", 0.9), found("ps-1", 0.6, at_limit=False), found("worker-1", 0.5, knob=Knob.PAUSE),
    ]  # fmt: skip
    assert raises.excess(ends) == 0.0
    assert raises.times(ends[1:2], ends, 1.5) == (1.0, 1.0, 1.0)


@settings(max_examples=examples(200))
@given(
    st.dictionaries(st.sampled_from(NAMES), st.floats(0.05, 1.0), min_size=1),
    st.sampled_from(["sum", "chain", "both"]),
    st.floats(1.01, 3.0),
)
def test_a_raise_brings_no_less_and_no_more_than_is_said(
    works: Mapping[str, float], kind: str, factor: float
) -> None:
    """A step takes the sum of what its parts take, as long as the slowest of them takes, or some of each."""

    def rate(has: Mapping[str, float]) -> float:
        taken = [work / has[name] for name, work in works.items()]
        whole = {"sum": sum(taken), "chain": max(taken), "both": sum(taken) + 3 * max(taken)}[kind]
        return 1 / whole

    ends = probed(rate)
    whole = dict.fromkeys(NAMES, 1.0)
    for count in (1, 2, 3):
        for some in itertools.combinations(ends, count):
            names = {name for each in some for name in each.part.targets}
            small = 1 + (factor - 1) / 100
            came = rate({name: small if name in names else 1.0 for name in NAMES}) / rate(whole)
            _, low, high = raises.times(some, ends, small)
            assert low * (1 - 1e-4) <= came <= high * (1 + 1e-4)
