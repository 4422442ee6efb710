"""What benchmarks draw."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from benchmarks import plots, protocols

SVG = "{http://www.w3.org/2000/svg}"


def read(path: Path) -> ElementTree.Element:
    return ElementTree.fromstring(path.read_text())


def texts(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_each_repeat_is_a_dot_beside_median_and_limit(tmp_path: Path) -> None:
    groups = {"old": [1.0, 2.0, 4.0], "new": [0.5, 0.6, 0.7]}
    plots.strips(tmp_path / "a.svg", groups, label="seconds", title="Start-up", limits={"new": 3.0})
    root = read(tmp_path / "a.svg")
    assert {"Start-up", "old", "new", "seconds", "a repeat", "median", "limit"} <= set(texts(root))
    dots = [each for each in root.iter(f"{SVG}circle") if each.get("r") == "4.0"]
    assert len(dots) == 6
    places = [float(each.get("cx", "nan")) for each in dots]
    assert places[:3] == sorted(places[:3])
    assert max(places[3:]) < places[0]


def test_thousands_of_repeats_are_as_many_dots_as_can_be_told_apart(tmp_path: Path) -> None:
    plots.strips(tmp_path / "a.svg", {"all": [n / 1e4 for n in range(10_000)]}, label="s", title="Many")
    assert (tmp_path / "a.svg").stat().st_size < 100_000


def test_a_matrix_has_each_count_in_its_cell(tmp_path: Path) -> None:
    counts = [[9, 1], [0, 3]]
    plots.matrix(tmp_path / "a.svg", counts, rows=["hot", "cold"], columns=["hot", "cold"], title="Said")
    assert sorted(texts(read(tmp_path / "a.svg"))) == ["1", "3", "9", "Said", "cold", "cold", "hot", "hot"]


@pytest.mark.parametrize("path", sorted(protocols.RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_each_result_has_its_plot(path: Path) -> None:
    root = read(path.with_suffix(".svg"))
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
