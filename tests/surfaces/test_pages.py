"""The page of the command line is as the commands make it."""

from __future__ import annotations

from pathlib import Path

from paceline.surfaces.cli import catalogue, pages

DOCS = Path(__file__).parents[2] / "docs"


def test_committed_page_is_current() -> None:
    assert (DOCS / "cli.md").read_text() == pages.page(), "python -m paceline.surfaces.cli.pages docs/cli.md"


def test_page_has_every_verb() -> None:
    for name in catalogue.VERBS:
        assert f"### paceline {name}\n" in pages.page()
