"""All outputs together have a size; who prints most gives first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paceline.engines.kubernetes.clusters import OutputLine
from paceline.services.log_files import LogFile
from paceline.services.operators import kept_outputs


@pytest.fixture
def outputs(tmp_path: Path) -> dict[str, Path]:
    made = {}
    files = [("loud/a/1", 1), ("loud/a/1", 2), ("loud/b/2", 3), ("quiet/a/3", 0)]
    for number, (run, at) in enumerate(files):
        path = tmp_path / run / "logs" / f"worker-{number}.1.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 1000)
        os.utime(path, (at, at))
        made[f"{run}/{number}"] = path
    return made


def sizes(outputs: dict[str, Path]) -> list[bool]:
    return [path.stat().st_size == 1000 for path in outputs.values()]


def test_what_fits_stays(outputs: dict[str, Path], tmp_path: Path) -> None:
    assert kept_outputs.trim(tmp_path, 4000) == []
    assert sizes(outputs) == [True] * 4


def test_the_oldest_of_who_has_most_goes_first(outputs: dict[str, Path], tmp_path: Path) -> None:
    assert kept_outputs.trim(tmp_path, 2500) == [outputs["loud/a/1/0"], outputs["loud/a/1/1"]]
    assert sizes(outputs) == [False, False, True, True]
    assert b"was left out" in outputs["loud/a/1/0"].read_bytes()
    assert kept_outputs.trim(tmp_path, 2500) == [], "what says so is small"
    kept_outputs.trim(tmp_path, 0)
    assert sizes(outputs) == [False] * 4


def test_an_output_that_goes_on_is_written_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "loud" / "a" / "1" / "logs" / "worker-0.1.log"
    file = LogFile(path)
    first, second = (OutputLine(f"2027-01-15T08:00:0{n}Z", "line " * 100) for n in (1, 2))
    file.append([first])
    kept_outputs.trim(tmp_path, 0)
    file.append([first, second])
    assert LogFile(path).until == second.at
    left, line = path.read_text().splitlines()
    assert "was left out" in left
    assert line == second.text
