"""The pages of all causes."""

from __future__ import annotations

import re
from pathlib import Path

from paceline.diagnosing import catalogues
from paceline.diagnosing.rules import Rule
from paceline.surfaces import cause_pages

DOCS = Path(__file__).parents[2] / "docs" / "causes"


def _rule(name: str) -> Rule:
    return next(rule for rule in catalogues.RULES if rule.topic.name == name)


def test_the_pages_are_those_of_the_catalogue() -> None:
    written = {path.name: path.read_text() for path in DOCS.glob("*.md")}
    assert written == cause_pages.pages(), "make docs"


def test_every_cause_has_a_page_and_every_link_leads_to_one() -> None:
    pages = cause_pages.pages()
    assert set(pages) == {"README.md", *(f"{topic.code}.md" for topic in catalogues.TOPICS)}
    for text in pages.values():
        assert set(re.findall(r"\]\(([\w.]+)\)", text)) <= set(pages)


def test_thresholds_are_told_with_their_reasons() -> None:
    first, *_ = cause_pages.thresholds(_rule("hot-ps"))
    assert (first.name, first.value) == ("RESTING", "0.25")
    assert "rests" in first.reason


def test_thresholds_that_rules_share_are_told_with_their_file() -> None:
    found = {each.name: each for each in cause_pages.thresholds(_rule("noisy-neighbour"))}
    assert float(found["crowds.LEAST_WAITS"].value) > 0
    assert "Fit runs" in found["crowds.LEAST_WAITS"].reason
    assert "noise" in found["headrooms.LEAST_GAIN"].reason
    assert "BY_HAND" not in found


def test_of_thresholds_each_number_is_told_and_nothing_else() -> None:
    found = {each.name: each.value for each in cause_pages.thresholds(_rule("too-many-threads"))}
    assert (found["COST_LOW"], found["COST_HIGH"]) == ("0.08", "0.14")
    assert "VARIABLES" not in found
