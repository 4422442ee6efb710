"""Profiles of all replicas of a moment become the steps of trainers; what is none is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.profiles import two_steps
from support.trace_files import trace, write

from paceline.sources import profiles, traces

NAME = "2026-01-02T03-04-05.678Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The profiles of a worker and of its server, in the folder of a run."""
    folder = tmp_path / "traces" / NAME
    folder.mkdir(parents=True)
    for name, profile in zip(("worker-0.1", "ps-0.2"), two_steps(), strict=True):
        (folder / f"{name}.profile").write_bytes(gzip.compress(profile.space.SerializeToString()))
    return folder


def test_profiles_of_a_moment_are_steps_of_a_trainer(folder: Path, tmp_path: Path) -> None:
    (folder / "ps-0.1.profile").write_bytes(b"of an attempt before")
    found = traces.read(tmp_path, NAME)
    assert (found.broken, found.refused) == ((), {})
    (worker,) = found.traces
    assert (worker.trainer, worker.attempt) == ("worker-0", 1)
    assert [split.step for split in worker.splits] == [1, 2]
    assert worker.at == worker.splits[0].start_at
    assert {each.variable for each in worker.transfers} == {"model/site"}
    assert traces.names(tmp_path) == [NAME]
    assert [path.name for path in traces.files(tmp_path, NAME)] == ["ps-0.2.profile", "worker-0.1.profile"]


def test_a_step_of_the_trainers_own_goes_first(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, trace("worker-0"), NAME)
    (found,) = traces.read(tmp_path, NAME).traces
    assert found.transfers == trace("worker-0").transfers


def test_a_replica_says_why_it_has_none(folder: Path, tmp_path: Path) -> None:
    (folder / "ps-0.2.profile").write_text(json.dumps({"error": "port 1: the profiler is busy, or failed"}))
    found = traces.read(tmp_path, NAME)
    assert found.refused == {"ps-0": "port 1: the profiler is busy, or failed"}
    assert found.broken == ()


@given(st.binary(max_size=300))
def test_whatever_a_file_holds_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("profiles")
    for content in (data, gzip.compress(data), b"{" + data):
        path = folder / "worker-0.1.profile"
        path.write_bytes(content)
        found = profiles.read([path])
        assert found.traces == []
        assert len(found.broken) + len(found.refused) <= 1


@pytest.mark.parametrize("name", ["worker.1.profile", "-.x.profile", "a-b-c.1.profile"])
def test_hostile_names(folder: Path, name: str) -> None:
    (folder / "worker-0.1.profile").rename(folder / name)
    found = profiles.read([folder / name])
    assert found.traces == []


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "MAX_BYTES", 1000)
    path = tmp_path / "worker-0.1.profile"
    path.write_bytes(gzip.compress(bytes(10_000)))
    (why,) = profiles.read([path]).broken
    assert why.endswith("it has more than 1000 bytes")
