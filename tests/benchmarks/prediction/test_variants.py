"""The order in which layouts are run."""

from __future__ import annotations

from collections import Counter

from benchmarks.prediction import variants


def test_what_is_learnt_from_is_run_before_and_after_all_others_and_between() -> None:
    runs = list(variants.planned(rounds=4))
    assert len({key for key, _ in runs}) == len(runs)
    learnt = [variant.learnt for _, variant in runs]
    assert learnt[:3] == learnt[-3:] == [True] * 3
    assert sum(learnt) == 4 * 3
    others = Counter(variant.name for _, variant in runs if not variant.learnt)
    assert set(others.values()) == {1}
    assert others.keys() == {each.name for each in variants.every() if not each.learnt}


def test_fewer_are_a_part_of_the_same_order() -> None:
    some = [variant.name for _, variant in variants.planned(rounds=2, most=5) if not variant.learnt]
    every = [variant.name for _, variant in variants.planned(rounds=2) if not variant.learnt]
    assert some == every[:5]
