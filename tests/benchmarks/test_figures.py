"""Tables within pages are those of the written results."""

from __future__ import annotations

import pytest
from support.styles import STYLES, VERSIONS

from benchmarks import figures, unchanged

ALL = {
    "style": "monitored", "version": "1.4.1", "skipped": None, "rate_apart": 0.019, "loss": 1.0,
    "variables": 1.0, "bytes_apart": -0.05, "time": True,
}  # fmt: skip
SOME = {
    **ALL, "version": "1.8.0", "rate_apart": -0.021, "variables": 0.75, "bytes_apart": None, "loss": None,
}  # fmt: skip


@pytest.mark.parametrize("name", figures.TABLES)
def test_a_page_is_up_to_date(name: str) -> None:
    pages = [path.read_text() for path in figures.pages_of(name)]
    assert pages
    for page in pages:
        assert figures.with_table(page, name) == page, "make docs"


def test_a_page_needs_a_place_for_a_table() -> None:
    with pytest.raises(ValueError, match="no place for the table of unchanged"):
        figures.with_table("# A page\n", "unchanged")


def test_what_is_seen_is_a_letter_each() -> None:
    lines = unchanged.table([ALL, SOME, {**ALL, "version": "2.1.4", "skipped": "not fetched"}])
    cells = [[each.strip() for each in line.strip("|").split("|")] for line in lines]
    assert len(cells) == 2 + len(STYLES)
    assert {len(row) for row in cells} == {1 + len(VERSIONS)}
    assert cells[2][:3] == ["flags, MonitoredTrainingSession", "slvbt", "t"]
    assert set(cells[2][3:]) == {"not measured"}
    fit = next(row for row in cells if row[0] == "Model.fit, one process")
    assert fit[1:6] == ["-", "-", "-", "-", "not measured"]
