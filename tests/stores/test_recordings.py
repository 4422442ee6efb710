"""Recordings as files: what is written is read, and what is damaged is refused."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from support import measured_runs
from support.examples import SHARED_FIXTURES, examples
from support.shell_jobs import fill

from paceline.errors import InvalidInput, NotFound, StoreError
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample
from paceline.model.traces.traced_steps import Direction, Split, Trace, Transfer
from paceline.model.variables import variable_plans
from paceline.model.variables.variables import Variable
from paceline.stores import recordings

_SEQUENCES = ("replicas", "samples", "steps", "evaluations", "events")
TRACE = Trace(
    trainer="worker-0",
    attempt=1,
    at=measured_runs.START + 30,
    splits=(
        Split(
            step=1, start_at=measured_runs.START + 30, input_wait_microseconds=None, pull_microseconds=9.5,
            compute_microseconds=20.0, push_microseconds=5.0, other_microseconds=0.0,
        ),
    ),
    transfers=(
        Transfer(
            step=1, server="ps-0", direction=Direction.PULL, variable="ids", shard=0, bytes=4096,
            microseconds=None,
        ),
    ),
)  # fmt: skip
_TABLE = Variable(
    name="ids", shape=(1000, 16), sparse=True, slots=1, step_bytes=5000.0, row_shares=(0.7, 0.3)
)
PLAN = variable_plans.plan(
    (_TABLE,),
    servers=2,
    cut=variable_plans.RowPartitioning(strategy=variable_plans.CutStrategy.FIXED),
    rule=variable_plans.PlacementRule.ROUND_ROBIN,
)


@pytest.fixture(scope="module")
def whole() -> Recording:
    recording = measured_runs.recording(seconds=20, source="# the job\n")
    fixed = {name: tuple(getattr(recording, name)) for name in _SEQUENCES}
    return dataclasses.replace(recording, facts=(("cores", "2"),), traces=(TRACE,), plan=PLAN, **fixed)


def test_what_is_written_is_read(whole: Recording, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    recordings.write(path, whole)
    assert recordings.read(path) == whole
    assert list(tmp_path.iterdir()) == [path]


def test_a_job_of_which_nothing_was_measured_is_a_recording_too(tmp_path: Path) -> None:
    nothing = Recording(run=measured_runs.run(), at=measured_runs.START)
    recordings.write(tmp_path / "run.parquet", nothing)
    found = recordings.read(tmp_path / "run.parquet")
    assert found == dataclasses.replace(nothing, **{name: () for name in (*_SEQUENCES, "facts", "traces")})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no file"):
        recordings.read(tmp_path / "run.parquet")
    with pytest.raises(StoreError, match=r"cannot be written: .*No such file"):
        recordings.write(tmp_path / "no" / "run.parquet", Recording(run=measured_runs.run(), at=0.0))


def test_nothing_is_left_when_the_disk_is_full(whole: Recording, small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("size=64k")
    fill(folder / "filler", 4096)
    with pytest.raises(StoreError, match="No space left"):
        recordings.write(folder / "run.parquet", whole)
    assert [each.name for each in folder.iterdir()] == ["filler"]


def test_what_could_not_be_read_again_is_not_written(
    whole: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = len(whole.samples) + len(whole.steps) + len(whole.evaluations)
    monkeypatch.setattr(recordings, "MOST_ROWS", rows)
    recordings.write(tmp_path / "run.parquet", whole)
    assert recordings.read(tmp_path / "run.parquet") == whole
    monkeypatch.setattr(recordings, "MOST_ROWS", rows - 1)
    with pytest.raises(
        StoreError, match=f"it has {rows:,} measurements, and at most {rows - 1:,} can be read"
    ):
        recordings.write(tmp_path / "other.parquet", whole)
    assert not (tmp_path / "other.parquet").exists()


def changed(path: Path, tmp_path: Path, **columns: list[object]) -> Path:
    """Write the table of a recording again with other columns."""
    table = parquet.read_table(path)
    for name, values in columns.items():
        place = table.schema.names.index(name)
        table = table.set_column(place, name, pyarrow.array(values))
    parquet.write_table(table, tmp_path / "changed.parquet")
    return tmp_path / "changed.parquet"


def test_a_table_of_something_else_is_refused(whole: Recording, tmp_path: Path) -> None:
    two = dataclasses.replace(whole, samples=whole.samples[:2], steps=(), evaluations=())
    recordings.write(tmp_path / "run.parquet", two)
    for columns, says in (
        ({"replica": ["ps-0", "king-1"]}, "'king-1' does not name a replica"),
        ({"replica": ["ps-0", None]}, "a row is of no replica"),
        ({"row": ["sample", "song"]}, "unknown kind 'song'"),
        ({"attempt": [1, None]}, "attempt is missing"),
        ({"at": ["now", "then"]}, "Failed to parse string"),
    ):
        with pytest.raises(InvalidInput, match=says):
            recordings.read(changed(tmp_path / "run.parquet", tmp_path, **columns))
    parquet.write_table(pyarrow.table({"row": ["sample"]}), tmp_path / "other.parquet")
    with pytest.raises(InvalidInput, match="something else"):
        recordings.read(tmp_path / "other.parquet")


def test_a_small_file_that_would_be_large_is_refused(whole: Recording, tmp_path: Path) -> None:
    """82 kB with columns by the thousand, of nulls, took 5.7 GiB."""
    recordings.write(tmp_path / "run.parquet", whole)
    table = parquet.read_table(tmp_path / "run.parquet")
    for number in range(3):
        table = table.append_column(f"more{number}", pyarrow.nulls(len(table), pyarrow.float64()))
    parquet.write_table(table, tmp_path / "wide.parquet")
    with pytest.raises(InvalidInput, match="columns, and not those of a recording"):
        recordings.read(tmp_path / "wide.parquet")
    table = parquet.read_table(tmp_path / "run.parquet").append_column(
        "row", pyarrow.array(["sample"] * len(whole.samples + whole.steps + whole.evaluations))
    )
    parquet.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(InvalidInput, match="not those of a recording"):
        recordings.read(tmp_path / "twice.parquet")


def test_names_that_are_too_long_are_refused(
    whole: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings.write(tmp_path / "run.parquet", whole)
    monkeypatch.setattr(recordings, "MOST_WORD_BYTES", 10)
    with pytest.raises(InvalidInput, match="the names in it take"):
        recordings.read(tmp_path / "run.parquet")


def test_what_an_older_paceline_did_not_measure_is_none(whole: Recording, tmp_path: Path) -> None:
    samples = [dataclasses.replace(each, retransmitted_segments=7) for each in whole.samples]
    recordings.write(tmp_path / "run.parquet", dataclasses.replace(whole, samples=samples))
    table = parquet.read_table(tmp_path / "run.parquet")
    older = table.drop_columns(["sent_segments", "retransmitted_segments"])
    parquet.write_table(older, tmp_path / "older.parquet")
    assert recordings.read(tmp_path / "older.parquet") == whole


def test_a_newer_form_is_refused(whole: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "VERSION", 2)
    recordings.write(tmp_path / "run.parquet", whole)
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match="version 2, and this Paceline reads 1"):
        recordings.read(tmp_path / "run.parquet")


@settings(max_examples=examples(300), suppress_health_check=SHARED_FIXTURES)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_says_the_same(
    whole: Recording, tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "run.parquet"
    if not path.exists():
        recordings.write(path, whole)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(content if data.draw(st.booleans()) else content[:cut])
    with contextlib.suppress(InvalidInput):
        assert recordings.read(broken) == whole


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (lambda each: dataclasses.replace(each, at=1.8e12), "at is"),
        (lambda each: dataclasses.replace(each, cpu_cores=math.nan), "cpu_cores is nan"),
        (lambda each: dataclasses.replace(each, interval_seconds=math.inf), "interval_seconds is inf"),
        (lambda each: dataclasses.replace(each, threads=-1), "threads is -1"),
    ],
)
def test_who_only_looks_at_a_file_is_shown_no_number_that_cannot_be(
    whole: Recording, tmp_path: Path, measured: Callable[[Sample], Sample], said: str
) -> None:
    strange = [measured(whole.samples[0]), *whole.samples[1:]]
    recordings.write(tmp_path / "a.parquet", dataclasses.replace(whole, samples=strange))
    with pytest.raises(InvalidInput, match=said):
        recordings.read(tmp_path / "a.parquet")
