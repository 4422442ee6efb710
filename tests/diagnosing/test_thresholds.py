"""Thresholds of the rules."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re

import pytest
from support import cases

from paceline import diagnosing
from paceline.diagnosing import catalogues
from paceline.diagnosing.cases import Case
from paceline.diagnosing.networks import links
from paceline.diagnosing.thresholds import Threshold, Unit

MODULES = [
    importlib.import_module(info.name)
    for info in pkgutil.walk_packages(diagnosing.__path__, "paceline.diagnosing.")
]


def test_each_threshold_is_named_by_its_place_and_known_by_its_name() -> None:
    places: dict[str, set[str]] = {}
    for module in MODULES:
        for constant, value in vars(module).items():
            if isinstance(value, Threshold):
                stem = module.__name__.rpartition(".")[2].replace("_", "-")
                places.setdefault(value.name, set()).add(
                    f"{stem}.{constant.strip('_').lower().replace('_', '-')}"
                )
    assert places.keys() == catalogues.THRESHOLDS.keys()
    assert [name for name, found in places.items() if name not in found] == []


def test_meanings_are_sentences_for_people() -> None:
    for threshold in catalogues.THRESHOLDS.values():
        assert threshold.means.endswith("."), threshold.name
        assert threshold.means[0].isupper(), threshold.name
        assert not threshold.source.endswith("."), threshold.name
        text = f"{threshold.means} {threshold.source}"
        assert "|" not in text, "it stands in a table"
        for name in re.findall(r"\b[a-z-]+\.[a-z]+-[a-z-]+\b", text):
            assert name in catalogues.THRESHOLDS, threshold.name


@pytest.mark.parametrize(
    ("unit", "value"),
    [(Unit.SHARE, 1.01), (Unit.SECONDS, -1.0), (Unit.TIMES, float("inf")), (Unit.COUNT, 1.5)],
)
def test_a_number_that_cannot_be_is_refused(unit: Unit, value: float) -> None:
    with pytest.raises(ValueError, match="some"):
        Threshold("rules.some", value, unit, means="Some.")


def test_a_case_is_judged_by_the_numbers_of_its_site() -> None:
    recording = cases.recording({"ps-0": cases.SERVER, "worker-0": cases.TRAINER})
    assert Case.of(recording).value(links.FULL) == links.FULL.default
    set_here = dataclasses.replace(recording, thresholds={"links.full": 0.75, "cases.window-seconds": 10.0})
    case = Case.of(set_here)
    assert case.value(links.FULL) == 0.75
    assert case.window.until - case.window.since == 10.0
