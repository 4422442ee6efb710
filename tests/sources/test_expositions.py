"""Prometheus' text: lines of some names are read, broken ones passed over, nothing ends in an error."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import given
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from support.recorded import text

from paceline.sources import expositions
from paceline.sources.expositions import Line


def lines(text: str, *names: str) -> list[Line]:
    return expositions.lines(text, names, 1000.0)


def test_a_line_has_a_name_labels_a_value_and_a_time() -> None:
    text = '# HELP a A.\n# TYPE a counter\na{x="1",y="two"} 1.5 2000500\na 2\nb{} 3\n'
    assert lines(text, "a") == [Line("a", {"x": "1", "y": "two"}, 1.5, 2000.5), Line("a", {}, 2.0, 1000.0)]


def test_a_name_is_the_whole_name() -> None:
    assert lines("a_b 1\nab 2\n", "a") == []


def test_labels_may_hold_anything() -> None:
    (line,) = lines('a{x="b c{}\\"\\\\ \\n \u2028 # ,="} 1\n', "a")
    assert line.labels["x"] == 'b c{}"\\ \n \u2028 # ,='


def test_a_broken_line_costs_that_line_alone() -> None:
    text = '{}\na{x="1} 1\na{x=1} 1\na 0x1\na\t\na 1 9' + "9" * 400 + "\n\x00\na 1\n"
    assert [line.value for line in lines(text, "a")] == [1.0]


def test_a_page_that_is_no_exposition_has_no_lines() -> None:
    assert lines("<html>\n<body>Please log in</body>\n</html>", "a") == []


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the parser, whose time per line is long, is given."""
    given: list[str] = []

    def parse(text: str) -> Iterator[Metric]:
        given.append(text)
        return text_string_to_metric_families(text)

    monkeypatch.setattr(expositions.parser, "text_string_to_metric_families", parse)
    return given


def test_a_hostile_line_is_not_parsed(parsed: list[str]) -> None:
    assert lines("a{" + 'x="",' * 2_000 + "} 1\na 1\n", "a") == [Line("a", {}, 1.0, 1000.0)]
    assert parsed == ["a 1"]


def test_of_a_node_only_the_lines_that_are_read_are_parsed(parsed: list[str]) -> None:
    recorded = text("cadvisor.1.txt")
    names = {"container_threads"}
    assert len(expositions.lines(recorded, names, 0.0)) == len(parsed) > 0
    assert len(parsed) < recorded.count("\n") / 5


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    lines(text, "a")


@given(st.lists(st.sampled_from([*'a{}",=\\ #0.eE+-\tN\n', "x=", '"1"', "1e999", "NaN", "+Inf", "\u00e9"])))
def test_anything_near_the_format_is_read_without_an_error(parts: list[str]) -> None:
    text = "a" + "".join(parts)
    assert len(lines(text, "a")) <= text.count("\n") + 1
