"""Reading the output of replicas from the end, by attempt and by age."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.examples import SHARED_FIXTURES

from paceline.engines.local.folders import RunFolder
from paceline.model.roles import ReplicaId, Role
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
    reader = logs.FolderReader(folder, logs.LogSelection(**options))  # type: ignore[arg-type]
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


def test_other_files_beside_the_logs_are_left_alone(folder: RunFolder) -> None:
    write(folder, "ps-0.1", "one\n")
    for name in ("train", "worker-0.1.old", "errors", "evil-0.1"):
        write(folder, name, "no output of a replica\n")
    assert texts(folder) == ["one"]
    (folder.path / "scratch" / "mine").mkdir()
    (folder.path / "scratch" / "ps-0").mkdir()
    assert folder.scratches() == [ReplicaId(Role.PS, 0)]


def test_a_log_that_is_emptied_is_followed_from_its_new_beginning(folder: RunFolder) -> None:
    write(folder, "ps-0.1", "a long line before\nhalf")
    reader = logs.FolderReader(folder, logs.LogSelection())
    assert [line.text for line in reader.fresh(ended=False)] == ["a long line before"]
    write(folder, "ps-0.1", "new\n")
    assert [line.text for line in reader.fresh(ended=True)] == ["new"]


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


ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.text("ab é", max_size=12)


@given(lines=st.lists(st.tuples(TEXTS, ENDS), max_size=12), chunk=st.integers(1, 9), cut=st.integers(0, 60))
@example(lines=[("", "\n"), ("", "\r\n"), ("", "\n")], chunk=1, cut=0)
@settings(suppress_health_check=SHARED_FIXTURES)
def test_a_line_ends_as_a_terminal_shows_it(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, str]], chunk: int, cut: int
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("logs") / "run")
    folder.create()
    data = "".join(text + end for text, end in lines).encode()
    expected = [line.decode() for line in data.splitlines()]
    path = folder.logs / "ps-0.1.log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "CHUNK_BYTES", chunk)
        path.write_bytes(data)
        assert texts(folder) == expected
        for count in range(len(expected) + 1):
            assert texts(folder, tail=count) == expected[len(expected) - count :]
        # In two pieces, by one reader that stays and by one that is made anew.
        for is_anew in (False, True):
            path.write_bytes(data[:cut])
            reader = logs.FolderReader(folder, logs.ALL)
            found = list(reader.fresh(ended=False))
            path.write_bytes(data)
            if is_anew:
                reader = logs.FolderReader(folder, logs.LogSelection(behind=reader.positions))
            found += reader.fresh(ended=False)
            assert [line.text for line in found] == expected


def test_a_line_without_an_end_is_shown_when_it_stays(folder: RunFolder) -> None:
    path = write(folder, "ps-0.1", "one\nloading")
    reader = logs.FolderReader(folder, logs.ALL)
    looks = [[line.text for line in reader.fresh(ended=False)] for _ in range(10)]
    assert looks[0] == ["one"]
    assert [text for look in looks[1:] for text in look] == ["loading"]
    with path.open("a") as file:
        file.write(" done\ntwo\n")
    assert [line.text for line in reader.fresh(ended=False)] == [" done", "two"]


def test_of_an_endless_line_the_beginning_is_shown_once(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LINE_BYTES", 10)
    path = write(folder, "ps-0.1", "one\n")
    reader = logs.FolderReader(folder, logs.ALL)
    found = [line.text for line in reader.fresh(ended=False)]
    for _ in range(50):
        with path.open("a") as file:
            file.write("é1234567")
        found += [line.text for line in reader.fresh(ended=False)]
    assert found == ["one", "é1234567…"]
    # A reader that goes on from there does not begin within it.
    reader = logs.FolderReader(folder, logs.LogSelection(behind=reader.positions))
    with path.open("a") as file:
        file.write("345\ntwo\n")
    assert [line.text for line in reader.fresh(ended=True)] == ["two"]
    assert texts(folder) == ["one", "é1234567…", "two"]
    assert texts(folder, tail=2) == ["é1234567…", "two"]


def test_a_long_log_is_read_once(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a look costs does not depend on how much is there: a bar without an end grows for hours."""
    path = write(folder, "ps-0.1", "x" * 1_000_000)
    reader = logs.FolderReader(folder, logs.ALL)
    assert len(list(reader.fresh(ended=False))) == 1
    read = []

    class Counting(io.FileIO):
        def read(self, size: int = -1) -> bytes:
            data = super().read(size)
            read.append(len(data))
            return data

    monkeypatch.setattr(Path, "open", lambda self, mode: Counting(self, "r"))
    for _ in range(20):
        list(reader.fresh(ended=False))
    assert sum(read) == 0
    assert path.stat().st_size == 1_000_000
