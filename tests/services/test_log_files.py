"""Output that is kept: each line once, whichever process dies, and within bounds."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from paceline.engines.kubernetes import times
from paceline.engines.kubernetes.clusters import OutputLine
from paceline.services import log_files
from paceline.services.log_files import LogFile


def lines(*numbers: int) -> list[OutputLine]:
    return [OutputLine(f"2027-01-15T08:00:{number:02d}.000000000Z", f"line {number}") for number in numbers]


def test_what_is_there_already_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "ps-0.1.log"
    file = LogFile(path)
    assert file.until == ""
    file.append(lines(1, 2))
    file.append(lines(1, 2, 3))
    file.append(lines(3))
    assert path.read_text() == "line 1\nline 2\nline 3\n"
    again = LogFile(path)
    assert again.until == file.until
    again.append(lines(2, 3, 4))
    assert path.read_text() == "line 1\nline 2\nline 3\nline 4\n"


def test_lines_that_no_mark_vouches_for_are_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "ps-0.1.log"
    LogFile(path).append(lines(1))
    with path.open("a") as file:  # who wrote them died before it could say so
        file.write("line 2\nli")
    LogFile(path).append(lines(1, 2, 3))
    assert path.read_text() == "line 1\nline 2\nline 3\n"


@pytest.mark.parametrize("mark", ["", "{", "[]", '{"until": "x"}', '{"until": "x", "bytes": "many"}'])
def test_a_damaged_mark_begins_anew(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "ps-0.1.log"
    LogFile(path).append(lines(1))
    path.with_suffix(".mark").write_text(mark)
    LogFile(path).append(lines(1, 2))
    assert path.read_text() == "line 1\nline 2\n"


@pytest.mark.parametrize("last", range(6))
def test_killed_while_the_older_half_goes_each_line_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    monkeypatch.setattr(log_files, "MAX_BYTES", 400)
    path = tmp_path / "ps-0.1.log"
    file = LogFile(path)
    file.append(lines(*range(45)))
    assert path.stat().st_size < 400

    replace, done = os.replace, iter(range(last))

    def killed(source: Path, target: Path) -> None:
        if next(done, None) is None:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with contextlib.suppress(KeyboardInterrupt):
        file.append(lines(*range(44, 52)))
    monkeypatch.setattr(os, "replace", replace)
    again = LogFile(path)
    again.append(lines(*range(44, 53)))
    shown = path.read_text().splitlines()
    assert len(shown) == len(set(shown))
    assert shown[-9:] == [f"line {number}" for number in range(44, 53)]


def test_the_older_half_goes_when_it_grows_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "MAX_BYTES", 400)
    path = tmp_path / "ps-0.1.log"
    file = LogFile(path)
    for number in range(60):
        file.append(lines(*range(max(0, number - 1), number + 1)))
        assert path.stat().st_size < 500
    first, *others = path.read_text().splitlines()
    assert first == "paceline: earlier lines were left out"
    assert others[-1] == "line 59"
    assert others == [f"line {number}" for number in range(60 - len(others), 60)]
    LogFile(path).append(lines(59))
    assert path.read_text().splitlines()[-2:] == ["line 58", "line 59"]


def test_lines_that_came_too_fast_are_mentioned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "MAX_LINES", 3)
    path = tmp_path / "ps-0.1.log"
    file = LogFile(path)
    file.append(lines(1, 2, 3))
    file.append(lines(7, 8, 9))
    assert path.read_text().splitlines()[3] == "paceline: lines are missing here: too many at once"


def test_lines_that_went_with_an_older_file_are_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "ps-0.1.log"
    file = LogFile(path)
    file.append(lines(1, 2))
    assert file.append([]) is None
    file.append(lines(5))  # The kubelet has begun a new file, and shows that one alone.
    file.append(lines(5, 6))
    missing = "paceline: lines are missing here: too many at once"
    assert path.read_text().splitlines() == ["line 1", "line 2", missing, "line 5", "line 6"]


def test_what_the_kubelet_says_itself_is_no_output(tmp_path: Path) -> None:
    path = tmp_path / "ps-0.1.log"
    file = LogFile(path)
    refused = OutputLine("", "unable to retrieve container logs for containerd://1")
    for read in ([refused], lines(1), [refused], lines(1, 2)):
        file.append(read)
    assert path.read_text() == "line 1\nline 2\n"


def test_a_line_is_kept_when_it_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "ps-0.1.log"
    file = LogFile(path)
    (first,) = lines(1)
    begun = OutputLine(lines(2)[0].at, "1/9\r2/9", has_ended=False)
    file.append([first, begun])
    assert path.read_text() == "line 1\n"
    file.append([first, begun], is_over=True)
    assert path.read_bytes() == b"line 1\n1/9\r2/9\n"


def test_what_was_new_is_measured_from_what_was_there(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "ps-0.1.log")
    begin = times.seconds(lines(0)[0].at)
    for read, piece in (
        (lines(1, 2), (14, 1, 2)),
        (lines(2), (0, 2, 2)),
        (lines(1, 2, 5), (7, 2, 5)),
        (lines(8, 9), (14, 8, 9)),  # Lines are missing: not known since when.
    ):
        found = file.append(read)
        assert found is not None
        assert (found.size_bytes, found.since - begin, found.until - begin) == piece
