"""Variants beside the baseline: the numbers, and what can be told from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.studies.experiments import Experiment, Repeat, Variant, combined
from paceline.model.studies.studies import TrialOutcome
from paceline.tuning.comparisons import VariantVerdict, compared


def experiment(speeds: Mapping[str, Sequence[float]], *, repeats: int = 3) -> Experiment:
    """Return an experiment of which the first variant is the baseline; a speed of 0: it did not train."""
    return Experiment(
        name="e",
        source="",
        base="/",
        variants=tuple(Variant(name=name, changes=()) for name in speeds),
        baseline=next(iter(speeds)),
        repeats=repeats,
        seconds=1.0,
        done=tuple(
            Repeat(
                variant=name,
                number=number,
                run=f"{name}-{number}",
                outcome=TrialOutcome(examples_per_second=(speed,))
                if speed
                else TrialOutcome(failure="no room"),
                cause="giant-variable" if speed else "",
            )
            for name, own in speeds.items()
            for number, speed in enumerate(own)
        ),
    )


def test_every_verdict() -> None:
    found = compared(
        experiment(
            {
                "base": (100, 110, 90),
                "fast": (200, 220, 180),
                "slow": (50, 55, 45),
                "same": (101, 109, 91),
                "wild": (60, 180, 100),
                "broken": (0, 0, 0),
                "not yet": (),
            }
        )
    )
    assert [each.verdict for each in found] == [
        VariantVerdict.BASELINE, VariantVerdict.FASTER, VariantVerdict.SLOWER, VariantVerdict.NO_DIFFERENCE,
        VariantVerdict.NOT_ENOUGH,
        VariantVerdict.FAILED, VariantVerdict.NOT_ENOUGH,
    ]  # fmt: skip


def test_runs_of_a_round_are_compared_so_that_drift_does_not_count() -> None:
    # The machine is half as fast in the last round.
    _, fast = compared(experiment({"base": (100, 100, 50), "fast": (130, 130, 65)}))
    assert fast.times is not None
    assert fast.times[0] == pytest.approx(1.3)
    assert fast.verdict is VariantVerdict.FASTER
    assert fast.examples_per_second == (pytest.approx(325 / 3), 65, 130)
    assert fast.causes == ("giant-variable",)


def test_a_round_of_which_one_is_missing_is_not_compared() -> None:
    _, other = compared(experiment({"base": (100, 100), "other": (0, 120, 500)}))
    assert other.times is not None
    assert other.times[0] == pytest.approx(1.2)


def test_one_pair_tells_only_what_is_more_than_runs_differ_by() -> None:
    _, near, far = compared(experiment({"base": (100,), "near": (107,), "far": (150,)}, repeats=1))
    assert (near.verdict, far.verdict) == (VariantVerdict.NOT_ENOUGH, VariantVerdict.FASTER)
    assert far.effect == pytest.approx(10.1, abs=0.1)


def test_runs_are_in_turn_and_every_other_round_backwards() -> None:
    made = experiment({"a": (), "b": (), "c": ()}, repeats=2)
    assert [(each.name, number) for each, number in made.plan()] == [
        ("a", 0), ("b", 0), ("c", 0), ("c", 1), ("b", 1), ("a", 1),
    ]  # fmt: skip
    assert [each.name for each, _ in experiment({"a": (1,), "b": ()}, repeats=1).left()] == ["b"]


def test_every_variant_is_combined_with_every_value() -> None:
    two = [Variant(name=name, changes=()) for name in ("together", "apart")]
    sizes = [[Variant(name=f"ps={n}", changes=()) for n in (1, 2)]]
    assert [each.name for each in combined(two, sizes)] == [
        "together, ps=1", "together, ps=2", "apart, ps=1", "apart, ps=2",
    ]  # fmt: skip
    assert [each.name for each in combined([Variant(name="", changes=())], sizes)] == ["ps=1", "ps=2"]


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), min_size=1, max_size=5))
def test_a_verdict_never_goes_beyond_its_interval(pairs: list[tuple[float, float]]) -> None:
    sides = {"base": [each for each, _ in pairs], "other": [each for _, each in pairs]}
    other = compared(experiment(sides, repeats=len(pairs)))[1]
    assert other.times is not None
    value, low, high = other.times
    assert low <= value <= high
    assert (other.verdict is VariantVerdict.FASTER) <= (low > 1)
    assert (other.verdict is VariantVerdict.SLOWER) <= (high < 1)
