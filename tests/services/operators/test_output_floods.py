"""Floods, seen from looks at an output that cannot show all of it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.agent.paceline_agent import oddities
from paceline.engines.kubernetes.clusters import OutputLine
from paceline.services import log_files
from paceline.services.log_files import LogFile, OutputPiece
from paceline.services.operators import output_floods
from paceline.services.operators.output_floods import FloodWatch

START = 1_800_000_000.0
#: What the kubelet begins a new file at, and how often it looks whether it should.
FILE_BYTES, ROTATION_SECONDS = 10 << 20, 10.0
LOOK_SECONDS = 15.0


@pytest.fixture(autouse=True)
def _quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "MAX_LINES", 5_000)


def moment(at: float) -> str:
    return f"{datetime.datetime.fromtimestamp(at, datetime.UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"


class Container:
    """The output of a container as the kubelet shows it: of the newest file alone, at most so many lines.

    Args:
        width: the bytes of a line, with its end.
        every: how often lines come.
        lines: how many at once.
    """

    def __init__(self, width: int, every: float, lines: int) -> None:
        self._text = "x" * (width - 1)
        self._every = every
        self._lines = lines
        self._written = 0
        self._file_began = 0

    def shown(self, until: float, since: str) -> list[OutputLine]:
        while (next_rotation := self._rotations + ROTATION_SECONDS) <= until - START:
            self._rotations = next_rotation
            count = self._count(START + next_rotation)
            if (count - self._file_began) * len(self._text) > FILE_BYTES:
                self._file_began = count
        total = self._count(until)
        first = max(self._file_began, total - log_files.MAX_LINES)
        times = (moment(self._at(number)) for number in range(first, total))
        return [OutputLine(at, self._text) for at in times if at >= since]

    _rotations = 0.0

    def _count(self, until: float) -> int:
        return int((until - START) / self._every) * self._lines

    def _at(self, number: int) -> float:
        return START + (number // self._lines + 1) * self._every + number % self._lines * 1e-6


def seen(folder: Path, container: Container, looks: int) -> Iterator[str | None]:
    """Yield what is said at each look."""
    file, watch = LogFile(folder / "worker-0.1.log"), FloodWatch()
    for number in range(1, looks + 1):
        now = START + number * LOOK_SECONDS
        piece = file.append(container.shown(now, file.until))
        yield None if piece is None else watch.look(piece, now)


def test_a_flood_is_the_same_as_in_a_file() -> None:
    ours = output_floods.FLOOD_BYTES, output_floods.FLOOD_BYTES_PER_SECOND
    assert ours == (oddities.FLOOD_BYTES, oddities.FLOOD_BYTES_PER_SECOND)


@pytest.mark.parametrize(
    ("width", "lines_per_second"),
    [
        (100, 10_000),  # 120 MB in two minutes: the kubelet begins a new file every 20 s.
        (20, 50_000),  # Of short lines a look shows a tenth of a second.
        (4_000, 300),
        (1_000, 300),  # Just a flood: each look sees all.
    ],
)
def test_a_flood_is_seen_though_looks_do_not_see_all(
    tmp_path: Path, width: int, lines_per_second: int
) -> None:
    container = Container(width, 0.01, max(1, lines_per_second // 100))
    said = list(filter(None, seen(tmp_path, container, 24)))
    assert said, "within six minutes"
    amount = float(said[0].split()[0])
    assert amount == pytest.approx(width * lines_per_second / 2**20, rel=0.2)


@pytest.mark.parametrize(
    ("width", "every", "lines"),
    [
        (100, 0.1, 200),  # 195 KiB a second
        (100, 60.0, 50_000),  # A table of 5 MB every minute, of which a look shows a tenth.
        (100, 600.0, 600_000),
        (1_000_000, 1e4, 49),  # A long description of a model.
    ],
)
def test_what_is_no_flood_is_not_said_to_be_one(tmp_path: Path, width: int, every: float, lines: int) -> None:
    assert list(filter(None, seen(tmp_path, Container(width, every, lines), 41))) == []


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 60), st.floats(0, 60)), max_size=12),
    st.floats(-5, 5),
)
def test_what_is_said_was_seen_at_each_look(looks: list[tuple[int, float, float]], skew: float) -> None:
    watch, now = FloodWatch(), START
    speeds = []
    for size, gap, seconds in looks:
        now += gap
        piece = OutputPiece(size, now + skew - seconds, now + skew)
        speeds.append(size / max(1e-3, max(now, piece.until) - piece.since))
        said = watch.look(piece, now)
        if said is not None:
            count = int(said.split()[-5])
            assert count >= output_floods.LEAST_LOOKS
            assert min(speeds[-count:]) >= output_floods.FLOOD_BYTES_PER_SECOND
            assert float(said.split()[0]) == pytest.approx(min(speeds[-count:]) / 2**20, rel=1e-3, abs=0.06)
