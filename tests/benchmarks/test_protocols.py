"""Repeats of a benchmark that was cut off count where nothing that concerns them was changed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rich.progress import Progress

from benchmarks import protocols


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(protocols, "ROOT", tmp_path)
    monkeypatch.setattr(protocols, "UNFINISHED", tmp_path / "unfinished")
    git(tmp_path, "init", "--quiet")
    committed(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments], cwd=folder, check=True, timeout=240
    )


def committed(folder: Path, message: str = "one more") -> str:
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return protocols.commit()


def bench(since: str | None = None) -> protocols.Bench:
    return protocols.Bench("cli", quick=False, progress=Progress(disable=True), since=since)


def test_a_repeat_is_kept_until_the_result_is_written(repository: Path) -> None:
    first = bench()
    assert first.repeat("one", lambda: {"seconds": 1.0}) == {"key": "one", "seconds": 1.0}
    again = bench()
    assert again.repeat("one", lambda: {"seconds": 2.0}) == {"key": "one", "seconds": 1.0}
    assert again.rows == [{"key": "one", "seconds": 1.0}]
    assert again.result([]).commits == (protocols.commit(),)
    again.forget()
    assert bench().repeat("one", lambda: {"seconds": 2.0})["seconds"] == 2.0


def test_a_repeat_of_another_commit_counts_only_where_it_is_said_to(repository: Path) -> None:
    older = protocols.commit()
    bench().repeat("one", lambda: {"seconds": 1.0})
    newer = committed(repository)
    assert bench(since=newer).repeat("one", lambda: {"seconds": 2.0})["seconds"] == 2.0
    (repository / "unfinished" / "cli.rows.jsonl").unlink()
    git(repository, "checkout", "--quiet", older)
    bench().repeat("one", lambda: {"seconds": 1.0})
    git(repository, "checkout", "--quiet", newer)
    going_on = bench(since=older)
    assert going_on.repeat("one", lambda: {"seconds": 2.0})["seconds"] == 1.0
    going_on.repeat("two", lambda: {"seconds": 3.0})
    assert json.loads(json.dumps(going_on.result([]).to_json()))["commit"] == f"{older}, {newer}"


def test_a_repeat_of_a_commit_that_is_not_part_of_this_one_does_not_count(repository: Path) -> None:
    older = protocols.commit()
    elsewhere = committed(repository)
    bench().repeat("one", lambda: {"seconds": 1.0})
    git(repository, "checkout", "--quiet", older)
    git(repository, "checkout", "--quiet", "-b", "beside")
    committed(repository, "another way")
    assert not protocols.is_since(elsewhere, older)
    assert bench(since=older).repeat("one", lambda: {"seconds": 2.0})["seconds"] == 2.0
