"""Cures as the platform knows them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paceline
from paceline.model.variables import cures
from paceline.model.variables.cures import CURES, CureOutcome

_FOLDER = Path(paceline.__file__).parent / "instrumentation"
_WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=50)


@pytest.fixture
def instrumentation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The instrumentation's own catalogue, imported as in a replica."""
    monkeypatch.syspath_prepend(str(_FOLDER))
    found = importlib.import_module("paceline_instrumentation.cures.catalogue")
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return found


def test_both_catalogues_know_the_same_cures(instrumentation: ModuleType) -> None:
    made = {
        (module.NAME, module.VERSION)
        for module in vars(instrumentation).values()
        if isinstance(module, ModuleType) and hasattr(module, "NAME")
    }
    # These are no cure: they say why none can have a setting of the training library obeyed.
    made.remove(("library-settings", 1))
    assert made == {(cure.name, cure.version) for cure in CURES}


def test_what_a_section_asks_for_is_found_and_what_only_the_library_obeys_is_too() -> None:
    training = {
        "optimizer": {"name": "lazy-adam"}, "variable_placement": "round-robin", "unique_ids": False,
        "partitioning": {"strategy": "none"}, "device_filters": True, "batch_size": 64, "variable_plan": {},
    }  # fmt: skip
    assert [cure.name for cure in cures.asked(training)] == [
        "lazy-adam",
        "variable-placement",  # By the saved plan.
        "device-filters",
    ]
    assert cures.unmet(training) == ("batch_size",)
    assert cures.asked(None) == cures.unmet(None) == ()


def test_cures_of_which_nothing_was_said_are_named() -> None:
    training = {"optimizer": {"name": "lazy-adam"}, "unique_ids": True}
    said = [CureOutcome(cure="lazy-adam", version=1, is_applied=False, detail="amsgrad")]
    assert [cure.name for cure in cures.silent(training, said)] == ["unique-ids"]


@given(st.sampled_from(CURES), st.integers(1, 99), st.booleans(), st.integers(0, 10**6), _WORDS)
def test_what_became_of_a_cure_is_read_as_it_is_written(cure, version, applied, count, detail) -> None:  # type: ignore[no-untyped-def]
    outcome = CureOutcome(
        cure=cure.name, version=version, is_applied=applied, count=count if applied else 0, detail=detail
    )
    assert cures.parse(str(outcome)) == outcome


@given(st.text())
def test_any_other_text_is_no_outcome_or_one_that_says_the_same(text: str) -> None:
    found = cures.parse(text)
    assert found is None or str(found) == text or text.split(" ")[1].startswith("0") or " 0" in text
