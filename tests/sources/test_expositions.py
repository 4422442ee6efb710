"""Prometheus' text: lines of some names are read, broken ones passed over, nothing ends in an error."""

from __future__ import annotations

import asyncio
import itertools
import tracemalloc
from collections.abc import AsyncGenerator, Coroutine, Iterator
from types import ModuleType

import hypothesis.strategies as st
import pytest
from hypothesis import given
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from support.recorded import PS, WORKER, text

from paceline.errors import EngineError
from paceline.sources import cadvisors, expositions, gpus
from paceline.sources.expositions import MetricLine
from paceline.sources.readings import Pod


def lines(text: str, *names: str) -> list[MetricLine]:
    return list(expositions.lines(text, names, 1000.0))


def test_a_line_has_a_name_labels_a_value_and_a_time() -> None:
    text = '# HELP a A.\n# TYPE a counter\na{x="1",y="two"} 1.5 2000500\na 2\nb{} 3\n'
    assert lines(text, "a") == [
        MetricLine("a", {"x": "1", "y": "two"}, 1.5, 2000.5),
        MetricLine("a", {}, 2.0, 1000.0),
    ]


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
    assert lines("a{" + 'x="",' * 2_000 + "} 1\na 1\n", "a") == [MetricLine("a", {}, 1.0, 1000.0)]
    assert parsed == ["a 1"]


def test_of_a_node_only_the_lines_that_are_read_are_parsed(parsed: list[str]) -> None:
    recorded = text("cadvisor.1.txt")
    names = {"container_threads"}
    assert len(list(expositions.lines(recorded, names, 0.0))) == len(parsed) > 0
    assert len(parsed) < recorded.count("\n") / 5


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    lines(text, "a")


@given(st.lists(st.sampled_from([*'a{}",=\\ #0.eE+-\tN\n', "x=", '"1"', "1e999", "NaN", "+Inf", "\u00e9"])))
def test_anything_near_the_format_is_read_without_an_error(parts: list[str]) -> None:
    text = "a" + "".join(parts)
    assert len(lines(text, "a")) <= text.count("\n") + 1


class Liar:
    """An exporter that says as much as one likes to hear; none of it lies anywhere whole."""

    def __init__(self, line: str, size_bytes: int) -> None:
        self.line, self.size_bytes, self.sent_bytes = line, size_bytes, 0

    async def stream(self, path: str, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        for number in itertools.count():
            piece = self.line.replace("?", str(number)).encode() * max(1, (1 << 16) // len(self.line))
            self.sent_bytes += len(piece)
            if self.sent_bytes > min(limit_bytes, self.size_bytes):
                raise EngineError(f"{path} has more than {limit_bytes} bytes")
            yield piece


OWN = 'namespace="ml",pod="p",container="training"'
LIES = {
    "lines of other metrics": "other 1\n",
    "lines of other pods": 'DCGM_FI_DEV_GPU_UTIL{namespace="ml",pod="q",gpu="?"} 1\n',
    "gpus of one pod": f'DCGM_FI_DEV_GPU_UTIL{{{OWN},gpu="?",UUID="{"u" * 100}"}} 1\n',
    "interfaces of one pod": f'container_network_receive_bytes_total{{{OWN},interface="?{"i" * 100}"}} 1\n',
    "long labels": f'container_threads{{{OWN},cpu="?{"c" * 4000}"}} 1\n',
    "no end of a line": "x" * 1000,
    "characters of four bytes": "\U0001f600" * 1000,
    "nothing but ends of lines": "\n",
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("source", [cadvisors, gpus])
def test_a_lying_exporter_costs_at_most_8_mb(source: ModuleType, lie: str) -> None:
    liar, asked = Liar(LIES[lie], 10 << 20), gpus.Exporter(Pod("gpus", "x"), 9400)
    node = "node-1" if source is cadvisors else asked
    awaited(source.read(Liar("a 1\n", 1), node, 0.0, [Pod("ml", "p")]), EngineError)  # what is loaded is
    tracemalloc.start()
    try:
        awaited(source.read(liar, node, 0.0, [Pod("ml", "p")]), EngineError)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 8_000_000


def awaited(answer: Coroutine[None, None, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        asyncio.run(answer)


def test_pieces_may_end_anywhere() -> None:
    class Pieces:
        def __init__(self, size: int) -> None:
            self.size = size

        async def stream(self, path: str, *, limit_bytes: int) -> AsyncGenerator[bytes]:
            data = (
                text("cadvisor.1.txt").encode() + b"x" * 100_000 + b'\ncontainer_threads{pod="' + b"y" * 9000
            )
            for begin in range(0, len(data), self.size):
                yield data[begin : begin + self.size]

    found = [asyncio.run(cadvisors.read(Pieces(size), "n", 5.0, [PS, WORKER])) for size in (7, 1000, 1 << 20)]
    assert found[0] == found[1] == found[2] == cadvisors.parse(text("cadvisor.1.txt"), 5.0)
