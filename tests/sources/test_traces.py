"""Traces read from a run's folder, whole ones and what is left of others."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.model.traces import traced_steps
from paceline.model.traces.traced_steps import Direction, Trace, Transfer
from paceline.sources import traces as sources
from paceline.training.tracing import trace_files

NAME = traced_steps.name_at(1e9)


def made(trainer: str = "worker-0", attempt: int = 1) -> Trace:
    transfer = Transfer(
        step=1, server="ps-0", direction=Direction.PULL, variable="deep/vectors", shard=1, bytes=640,
        microseconds=12.5,
    )  # fmt: skip
    return Trace(trainer=trainer, attempt=attempt, at=1e9, transfers=(transfer,))


def write(run: Path, trace: Trace, name: str = NAME) -> Path:
    path = run / traced_steps.FOLDER / name / f"{trace.trainer}.{trace.attempt}.parquet"
    trace_files.write(trace, path)
    return path


def test_what_the_training_library_writes_is_read(tmp_path: Path) -> None:
    write(tmp_path, made())
    write(tmp_path, made("worker-1"))
    write(tmp_path, made(), traced_steps.name_at(2e9))
    assert sources.names(tmp_path) == [NAME, traced_steps.name_at(2e9)]
    assert sources.read(tmp_path, NAME).traces == (made(), made("worker-1"))


def test_of_two_attempts_the_last_counts(tmp_path: Path) -> None:
    for attempt in (2, 10, 9):
        write(tmp_path, made(attempt=attempt))
    assert [trace.attempt for trace in sources.read(tmp_path, NAME).traces] == [10]


def test_columns_name_their_units(tmp_path: Path) -> None:
    from pyarrow import parquet

    names = set(parquet.read_schema(write(tmp_path, made())).names)
    assert {"bytes", "microseconds", "start_microseconds", "pull_microseconds", "variable", "server"} <= names


def test_a_corrupt_file_is_left_out_and_named(tmp_path: Path) -> None:
    whole, broken = write(tmp_path, made()), write(tmp_path, made("worker-1"))
    broken.write_bytes(whole.read_bytes()[:-20])
    found = sources.read(tmp_path, NAME)
    assert found.traces == (made(),)
    assert len(found.broken) == 1
    assert f"{broken} is no trace: " in found.broken[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("run"), made())


@settings(max_examples=examples(60))
@given(st.data())
def test_no_corruption_gets_further_than_a_value_error(whole: Path, data: st.DataObject) -> None:
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = whole.with_name("corrupt.parquet")
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with contextlib.suppress(ValueError):
        assert sources.read_file(path).trainer
