"""Shapes between two scales, as places on a canvas and as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from support.html_pages import EVIL

pytest.importorskip("jinja2")

from paceline.surfaces.charts import curves, drawings, files, scales, strips
from paceline.surfaces.charts.drawings import Area, Boxes, Chart, Dots, Polyline, Shape, Words

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*shapes: Shape, width: float = 480.0) -> Chart:
    across = scales.between(0.0, 10.0, "Time (s)")
    return drawings.chart("Load", across, scales.between(0.0, 1.0, "Cores"), shapes, width=width)


def test_places_follow_from_the_scales() -> None:
    chart = drawn(Dots(points=[(0.0, 0.0), (10.0, 1.0)], style="tint-blue", said=["low", "high"]))
    low, high = chart.dots
    assert (low.x, low.y, low.text) == (chart.left, chart.bottom, "low")
    assert (high.x, high.y, high.text) == (chart.right, chart.top, "high")
    assert 0 < chart.left < chart.right < chart.width
    assert [text for _, text in chart.across] == ["0", "2", "4", "6", "8", "10"]


def test_a_line_has_gaps_where_nothing_was_measured() -> None:
    points = [(0.0, 0.0), (1.0, 0.5), (2.0, None), (3.0, 0.5), (4.0, 0.5)]
    (path,) = drawn(Polyline(points=points, style="tint-blue", key="ps-0")).paths
    assert (path.d.count("M"), path.d.count("L")) == (2, 2)


def test_points_without_neighbours_are_dots() -> None:
    alone = drawn(Polyline(points=[(0.0, 0.1), (1.0, None), (2.0, 0.2)], style="tint-blue"))
    assert len(alone.dots) == 2
    assert drawn(Polyline(points=[(0.0, 0.1), (1.0, 0.2)], style="tint-blue")).dots == ()
    assert drawn(Polyline(points=[(0.0, None)], style="tint-blue")).paths == ()


def test_an_area_ends_where_one_of_its_edges_is_not_known() -> None:
    points = [(0.0, 0.1, 0.2), (1.0, 0.1, 0.2), (2.0, None, 0.2), (3.0, 0.1, None), (4.0, 0.1, 0.2)]
    (path,) = drawn(Area(points=points, style="tint-blue")).paths
    assert (path.d.count("M"), path.d.count("z")) == (2, 2)


def test_boxes_of_a_style_are_one_path() -> None:
    boxes = [(float(at), at + 0.5, 0.0, 1.0) for at in range(9)]
    (path,) = drawn(Boxes(boxes=boxes, style="tint-blue", key="busy")).paths
    assert path.d.count("z") == 9
    assert drawn(Boxes(boxes=[], style="tint-blue", key="busy")).keys[0].text == "busy"


@pytest.mark.parametrize("width", [500.0, 700.0, 1000.0])
def test_names_of_ticks_have_room_and_none_is_cut_off(width: float) -> None:
    names = [f"variant number {number}" for number in range(8)]
    chart = drawings.chart("Speeds", scales.places(names), scales.rows(names), (), width=width)
    end = 0.0
    for at, text in chart.across:
        half = drawings.text_width(text) / 2
        assert at - half >= end - 0.2
        end = at + half
        assert end <= width + 0.2
    assert chart.left >= max(map(drawings.text_width, names))


def test_many_columns_have_their_names_upwards() -> None:
    names = [f"cause-{number}" for number in range(40)]
    chart = drawings.chart("Said", scales.places(names), scales.rows(names), (), width=1000.0)
    assert chart.is_slanted
    assert len(chart.across) == 40
    assert chart.height - chart.bottom > drawings.text_width("cause-39")


def test_a_curve_says_what_binds_and_is_not_pressed_flat_by_its_band() -> None:
    places = [
        curves.CurveValue(label=str(number), middle=100.0 * number, low=50.0, high=1e6, kind=kind)
        for number, kind in enumerate(("cores", "cores", "network"), 1)
    ]
    chart = curves.curve(
        "Workers", places, across="workers", up="Examples per second", level=100.0, marks={"knee": 1},
        shown=str,
    )  # fmt: skip
    assert [key.text for key in chart.keys] == [curves.LIKELY, curves.NOW, "knee", "cores", "network"]
    assert next(dot.text for dot in chart.dots) == "1: 100.0 (50.0 to 1000000.0)"
    heights = [dot.y for dot in chart.dots]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] - heights[-1] > (chart.bottom - chart.top) / 5


def test_a_sparkline_has_gaps_where_nothing_was_measured() -> None:
    assert strips.spark([0.0, 2.0, None, 1.0, 1.0]) == ["0.0,19.0 20.0,1.0", "60.0,10.0 80.0,10.0"]
    assert strips.spark([]) == strips.spark([1.0]) == strips.spark([None, None]) == []


def test_a_file_is_whole_says_what_it_shows_and_has_hostile_names_as_text() -> None:
    evil = EVIL.replace("\x1b", "").replace("\x00", "")
    shapes = [
        Dots(points=[(1.0, 0.5)], style="tint-blue", said=[evil], key=evil),
        Words(at=(0.5, 0.5), text=evil),
    ]
    chart = drawings.chart(evil, scales.between(0.0, 1.0, evil), scales.rows([evil]), shapes, width=900.0)
    root = ElementTree.fromstring(files.svg(chart, evil))
    assert root.tag == f"{SVG}svg"
    assert [each.text for each in root.iter(f"{SVG}title")] == [evil, evil]
    assert root.find(f"{SVG}desc").text == evil  # type: ignore[union-attr]
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "text", "g", "path", "circle"
    }  # fmt: skip
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts.count(evil) == 5
    style = root.find(f"{SVG}style").text  # type: ignore[union-attr]
    assert "prefers-color-scheme: dark" in style
    assert "light-dark" not in style
