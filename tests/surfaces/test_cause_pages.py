"""The pages of all causes."""

from __future__ import annotations

import re
from pathlib import Path

from paceline.diagnosing import catalogues
from paceline.diagnosing.rules import Rule
from paceline.surfaces import cause_pages, site_numbers

DOCS = Path(__file__).parents[2] / "docs" / "causes"


def _rule(name: str) -> Rule:
    return next(rule for rule in catalogues.RULES if rule.topic.name == name)


def test_the_pages_are_those_of_the_catalogue() -> None:
    written = {path.name: path.read_text() for path in DOCS.glob("*.md")}
    assert written == cause_pages.pages(), "make docs"


def test_every_cause_has_a_page_and_every_link_leads_to_one() -> None:
    pages = cause_pages.pages()
    assert set(pages) == {"README.md", "thresholds.md", *(f"{topic.code}.md" for topic in catalogues.TOPICS)}
    for text in pages.values():
        assert set(re.findall(r"\]\(([\w.]+)\)", text)) <= set(pages)


def test_thresholds_of_a_rule_are_told_with_their_meaning() -> None:
    page = cause_pages.pages()["PS004.md"]
    assert "| `hot-servers.resting` | 0.25 | share |" in page
    assert "[set its own](thresholds.md)" in page


def test_thresholds_that_rules_share_are_told_with_each() -> None:
    found = {each.name: each for each in catalogues.thresholds(_rule("noisy-neighbour"))}
    assert found["crowds.least-waits"].default > 0
    assert "noise" in found["headrooms.least-gain"].means + found["headrooms.least-gain"].source
    assert cause_pages.pages()["thresholds.md"].count("`headrooms.least-gain`") == 1


def test_numbers_are_shown_short() -> None:
    assert [site_numbers.shown(value) for value in (3.0, 100e6, 0.005, 1 / 3)] == [
        "3",
        "100,000,000",
        "0.005",
        "0.333333",
    ]
