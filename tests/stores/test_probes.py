"""Probes are kept with their runs, in each kind of database."""

from __future__ import annotations

import dataclasses

import pytest
from support import probed_runs

from paceline.errors import NotFound
from paceline.stores import Store
from paceline.stores.probes import MOST_PROBES


def test_a_probe_is_kept_as_far_as_it_is(filled: Store) -> None:
    assert filled.probes("demo") == []
    whole = probed_runs.probe("demo")
    under_way = dataclasses.replace(whole, cuts=whole.cuts[:1], ended=None, ended_at=None)
    filled.save_probe("demo", under_way)
    assert filled.probes("demo") == [under_way]
    filled.save_probe("demo", whole)
    later = probed_runs.probe("demo", began_at=2e9)
    filled.save_probe("demo", later)
    assert filled.probes("demo") == [whole, later]


def test_the_newest_are_kept(filled: Store) -> None:
    for number in range(MOST_PROBES + 2):
        filled.save_probe("demo", probed_runs.probe("demo", began_at=float(number)))
    kept = filled.probes("demo")
    assert [each.began_at for each in kept] == [float(number) for number in range(2, MOST_PROBES + 2)]


def test_a_run_that_is_not_there_has_none(filled: Store) -> None:
    with pytest.raises(NotFound):
        filled.probes("other")
    with pytest.raises(NotFound):
        filled.save_probe("other", probed_runs.probe("other"))
