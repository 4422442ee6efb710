"""Prometheus' text: wanted lines are read, broken ones are counted, nothing ends in an error."""

from __future__ import annotations

import time

import hypothesis.strategies as st
from hypothesis import given
from support.recorded import text

from paceline.sources import cadvisors, expositions
from paceline.sources.expositions import Line


def lines(text: str, *names: str) -> tuple[list[Line], int]:
    return expositions.lines(text, names, 1000.0)


def test_a_line_has_a_name_labels_a_value_and_a_time() -> None:
    found, broken = lines('# HELP a A.\n# TYPE a counter\na{x="1",y="two"} 1.5 2000500\na 2\nb{} 3\n', "a")
    assert found == [Line("a", {"x": "1", "y": "two"}, 1.5, 2000.5), Line("a", {}, 2.0, 1000.0)]
    assert broken == 0


def test_a_name_is_the_whole_name() -> None:
    assert lines("a_b 1\nab 2\n", "a") == ([], 0)


def test_labels_may_hold_anything() -> None:
    (line,), broken = lines('a{x="b c{}\\"\\\\ \\n \u2028 # ,="} 1\n', "a")
    assert (line.labels["x"], broken) == ('b c{}"\\ \n \u2028 # ,=', 0)


def test_a_broken_line_costs_that_line_alone() -> None:
    text = '{}\na{x="1} 1\na{x=1} 1\na 0x1\na\t\na 1 9' + "9" * 400 + "\n\x00\na 1\n"
    found, broken = lines(text, "a")
    assert [line.value for line in found] == [1.0]
    assert broken == 7


def test_a_page_that_is_no_exposition_is_all_broken() -> None:
    assert lines("<html>\n<body>Please log in</body>\n</html>", "a") == ([], 3)


def test_a_hostile_line_takes_no_time() -> None:
    began = time.process_time()
    found = lines("a{" + 'x="",' * 200_000 + "} 1\na 1\n", "a")
    assert time.process_time() - began < 1
    assert found == ([Line("a", {}, 1.0, 1000.0)], 1)


def test_the_node_of_a_large_cluster_is_read_in_a_second() -> None:
    pods = [text("cadvisor.1.txt").replace("clicks", f"clicks-{number}") for number in range(20)]
    began = time.process_time()
    found, broken = expositions.lines("".join(pods), cadvisors.NAMES, 0.0)
    assert (len(found) > 1000, broken) == (True, 0)
    assert time.process_time() - began < 2


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    lines(text, "a")


@given(st.lists(st.sampled_from([*'a{}",=\\ #0.eE+-\tN\n', "x=", '"1"', "1e999", "NaN", "+Inf", "\u00e9"])))
def test_anything_near_the_format_is_read_without_an_error(parts: list[str]) -> None:
    text = "a" + "".join(parts)
    found, broken = lines(text, "a")
    assert len(found) + broken <= text.count("\n") + 1
