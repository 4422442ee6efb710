"""Reading the output of replicas from the end, by attempt and by age."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paceline.engines.local.folders import RunFolder
from paceline.services import logs


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    found = RunFolder(tmp_path / "run")
    found.create()
    return found


def write(folder: RunFolder, name: str, data: str, *, at: float | None = None) -> Path:
    path = folder.logs / f"{name}.log"
    path.write_bytes(data.encode())
    if at is not None:
        os.utime(path, (at, at))
    return path


def texts(folder: RunFolder, **options: object) -> list[str]:
    follow = options.pop("follow", None)
    reader = logs.FolderReader(folder, logs.Wanted(**options))  # type: ignore[arg-type]
    return [line.text for line in logs.lines(reader, follow=follow)]  # type: ignore[arg-type]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("end", ["", "\n"])
def test_tail_is_the_last_lines(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, chunk: int, end: str
) -> None:
    monkeypatch.setattr(logs, "CHUNK_BYTES", chunk)
    expected = ["one", "", "three", "four"]
    write(folder, "ps-0.1", "\n".join(expected) + end)
    assert texts(folder) == expected
    for count in range(7):
        assert texts(folder, tail=count) == expected[max(0, 4 - count) :]


def test_tail_of_nothing(folder: RunFolder) -> None:
    write(folder, "ps-0.1", "")
    assert texts(folder, tail=3) == []


def test_attempts_and_age(folder: RunFolder) -> None:
    write(folder, "ps-0.1", "old\n", at=1000)
    write(folder, "ps-0.2", "new\n", at=2000)
    assert texts(folder, attempt=2) == ["new"]
    assert texts(folder, since=1500) == ["new"]
    assert texts(folder, since=2500) == []


def test_what_comes_later_is_whole_whatever_the_tail(folder: RunFolder) -> None:
    path = write(folder, "ps-0.1", "a\nb\nhal")
    rounds = 0

    def follow() -> bool:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            with path.open("a") as file:
                file.write("f\nc\n")
            write(folder, "ps-1.1", "x\ny\n")
        return rounds < 3

    assert texts(folder, tail=1, follow=follow) == ["half", "c", "x", "y"]
