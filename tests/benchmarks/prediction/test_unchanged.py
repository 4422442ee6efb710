"""Pairs of the benchmark of what is foretold of unchanged scripts, and how they are judged."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from support.styles import STYLES

from benchmarks import prediction_unchanged as benchmark
from paceline import specs
from paceline.specs.edits import edits


def test_there_are_enough_pairs_of_three_scripts_and_two_versions() -> None:
    pairs = benchmark.planned()
    assert len({each.key for each in pairs}) == len(pairs) >= benchmark.LEAST_PAIRS
    assert len({each.script.style for each in pairs}) == 3
    assert len({each.version for each in pairs}) == 2
    assert all(each.version in STYLES[each.script.style].versions for each in pairs)
    # A run that is cut off has as many of each script and version.
    first = Counter((each.script.style, each.version) for each in pairs[:12])
    assert set(first.values()) == {2}


@pytest.mark.parametrize("script", benchmark.SCRIPTS, ids=lambda script: script.style)
def test_each_change_makes_another_job(script: benchmark.Script) -> None:
    before = script.job("python")
    source = specs.dump_job(before)
    made = [specs.parse_job(edits.edited(source, each)).spec for each in script.changes.values()]
    assert before not in made
    assert len({repr(each) for each in made}) == len(made)


def row(times: float, low: float, high: float, came: float) -> dict[str, Any]:
    return {"refused": None, "times": times, "low": low, "high": high, "came": came}


def test_pairs_are_judged_by_their_median_error_and_their_intervals() -> None:
    rows = [row(1.0, 0.9, 1.2, 1.1), row(2.0, 1.5, 2.5, 2.0), row(1.0, 0.9, 1.1, 2.0)]
    refused = {"refused": "the script cuts its tables by itself"}
    count, untold, median, share = benchmark.checks([*rows, refused])
    assert (count.value, untold.value) == (3, 1)
    assert not count.holds
    assert median.value == pytest.approx(1 - 1 / 1.1)
    assert median.holds
    assert share.value == pytest.approx(2 / 3)
    assert not share.holds


def test_where_nothing_could_be_told_there_is_no_error() -> None:
    names = [each.name for each in benchmark.checks([{"refused": "why"}])]
    assert len(names) == 2
