"""Recordings as files: a Parquet table of all measurements, with everything else about the job as metadata.

A row is a sample, a step report or an evaluation; the columns that its kind does not have are null. The run,
its replicas, events, traces and the rest are metadata of the table, as compressed JSON. Needs pyarrow.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import compute, parquet

from paceline.errors import InvalidInput, NotFound, StoreError, first_line
from paceline.model import columns, outside
from paceline.model.explanations.conclusions import Conclusion
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run, SpecChange
from paceline.model.measures.probes import Probe
from paceline.model.measures.recordings import OutputTail, Recording
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.model.traces.traced_steps import Trace
from paceline.model.variables import saved_plans
from paceline.stores import encodings

#: Version of the file format; a reader refuses any other version.
VERSION = 1
#: Limits on what a reader loads: rows (1,000 replicas for an hour), metadata (256 MiB), names in rows (64
#: MiB).
MOST_ROWS, MOST_HEAD_BYTES, MOST_WORD_BYTES = 4_000_000, 1 << 28, 1 << 26
_KEY = b"paceline.recording"
_KINDS: Mapping[str, type] = {"sample": Sample, "step": StepReport, "evaluation": EvaluationReport}
_ROW, _REPLICA = "row", "replica"
_TYPES: Mapping[type, pyarrow.DataType] = {int: pyarrow.int64(), float: pyarrow.float64()}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The metadata of a file: everything about the job except its measurements."""

    version: int
    at: float
    lost: bool
    run: Run
    replicas: tuple[ReplicaRow, ...]
    events: tuple[JobEvent, ...]
    facts: tuple[tuple[str, ...], ...]
    traces: tuple[Trace, ...]
    plan: Mapping[str, Any] | None = None
    conclusion: Conclusion | None = None
    changes: tuple[SpecChange, ...] = ()
    probes: tuple[Probe, ...] = ()
    output: tuple[OutputTail, ...] = ()
    thresholds: Mapping[str, float] = dataclasses.field(default_factory=dict)


def _fields(kind: type) -> Mapping[str, tuple[type, bool]]:
    """Return the type of each numeric field, and whether the field may be None."""
    return {name: each for name, each in columns.fields(kind).items() if name != _REPLICA}


@functools.cache
def _schema() -> pyarrow.Schema:
    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    numbers = {name: _TYPES[of] for kind in _KINDS.values() for name, (of, _) in _fields(kind).items()}
    return pyarrow.schema({_ROW: words, _REPLICA: words, **numbers})


def write(path: Path, recording: Recording) -> None:
    """Write a recording to a file; a failure leaves no partial file.

    Raises:
        StoreError: the file cannot be written, or has more rows than a reader loads.
    """
    rows = len(recording.samples) + len(recording.steps) + len(recording.evaluations)
    if rows > MOST_ROWS:
        raise StoreError(
            f"{path} cannot be written: it has {rows:,} measurements, and at most {MOST_ROWS:,} can be read"
        )
    head = _Head(
        version=VERSION,
        at=recording.at,
        lost=recording.lost,
        run=recording.run,
        replicas=tuple(recording.replicas),
        events=tuple(recording.events),
        facts=tuple(recording.facts),
        traces=tuple(recording.traces),
        plan=None if recording.plan is None else saved_plans.write(recording.plan),
        conclusion=recording.conclusion,
        changes=tuple(recording.changes),
        probes=tuple(recording.probes),
        output=tuple(recording.output),
        thresholds=recording.thresholds,
    )
    metadata = {_KEY: _packed(encodings.encode(head))}
    table = pyarrow.table(_columns(recording), schema=_schema()).replace_schema_metadata(metadata)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                parquet.write_table(table, file, compression="zstd", write_page_checksum=True)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except (OSError, pyarrow.ArrowException) as error:
        raise StoreError(f"{path} cannot be written: {first_line(error)}") from error


def _columns(recording: Recording) -> dict[str, list[Any]]:
    measured = [(row, value) for row, values in _measured(recording) for value in values]
    numbers: dict[str, list[Any]] = {
        name: [getattr(value, name, None) for _, value in measured] for name in _schema().names[2:]
    }
    return {_ROW: [row for row, _ in measured], _REPLICA: [str(v.replica) for _, v in measured], **numbers}


def _measured(recording: Recording) -> Iterator[tuple[str, Sequence[Any]]]:
    yield "sample", recording.samples
    yield "step", recording.steps
    yield "evaluation", recording.evaluations


def read(path: Path) -> Recording:
    """Return the recording in a file.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file cannot be read or is not a recording; the message says why.
    """
    try:
        _check_size(path)
        table = parquet.read_table(path, page_checksum_verification=True, read_dictionary=[_ROW, _REPLICA])
        head = _head((table.schema.metadata or {}).get(_KEY))
        table = _completed(table).cast(_schema())
        _check_numbers(table)
        found = _recording(head, _rows(table.to_pydict()))
        _check_times(found)
        _check_thresholds(found)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}", "paceline record NAME makes one") from error
    except (OSError, pyarrow.ArrowException, ValueError, RecursionError, StoreError) as error:
        raise InvalidInput(f"{path} is no recording of Paceline: {first_line(error)}") from error
    return found


def _recording(head: _Head, measured: Mapping[str, tuple[Any, ...]]) -> Recording:
    return Recording(
        run=head.run,
        at=head.at,
        lost=head.lost,
        replicas=head.replicas,
        samples=measured["sample"],
        steps=measured["step"],
        evaluations=measured["evaluation"],
        events=head.events,
        facts=_pairs(head.facts),
        traces=head.traces,
        plan=None if head.plan is None else saved_plans.read(head.plan),
        conclusion=head.conclusion,
        changes=head.changes,
        probes=head.probes,
        output=head.output,
        thresholds=head.thresholds,
    )


def _check_size(path: Path) -> None:
    """Check, by the file's own metadata, that it fits into memory.

    A column of nulls takes almost no space in the file but 32 MB when it is read; so does a long word.

    Raises:
        ValueError: the file is too large, or has columns that no recording has.
    """
    with parquet.ParquetFile(path) as file:
        held, names = file.metadata, file.schema_arrow.names
    if held.num_rows > MOST_ROWS:
        raise ValueError(f"it has {held.num_rows:,} rows, and at most {MOST_ROWS:,} can be read")
    strange = [name for name in names if name not in _schema().names]
    if strange or len(set(names)) < len(names):
        raise ValueError(f"it has {len(names):,} columns, and not those of a recording")
    words = [number for number, name in enumerate(names) if name in (_ROW, _REPLICA)]
    size = sum(
        held.row_group(group).column(number).total_uncompressed_size
        for group in range(held.num_row_groups)
        for number in words
    )
    if size > MOST_WORD_BYTES:
        raise ValueError(f"the names in it take {size:,} bytes")


def _completed(table: pyarrow.Table) -> pyarrow.Table:
    """Return a table with the columns that an older Paceline did not write added, null in every row."""
    for place, field in enumerate(_schema()):
        if field.name not in table.column_names:
            table = table.add_column(place, field, pyarrow.nulls(len(table), field.type))
    return table


def _check_numbers(table: pyarrow.Table) -> None:
    """Check that the times and numbers of measurements are possible; metrics of the model may be anything.

    Raises:
        ValueError: a time or a number is impossible.
    """
    for name in table.column_names:
        column = table.column(name)
        if pyarrow.types.is_dictionary(column.type) or name in outside.QUALITIES:
            continue
        ends = compute.min_max(column)
        strange = [end for end in (ends["min"].as_py(), ends["max"].as_py()) if end is not None]
        strange = [end for end in strange if not outside.is_number(name, end)]
        if pyarrow.types.is_floating(column.type) and compute.any(compute.is_nan(column)).as_py():
            strange.append(math.nan)
        if strange:
            raise ValueError(f"{name} is {strange[0]} in a row")


def _check_times(recording: Recording) -> None:
    """Check that the times of a recording are possible, except for those of measurements.

    Raises:
        ValueError: a time is impossible.
    """
    for at in _times(recording):
        outside.moment(at)


def _check_thresholds(recording: Recording) -> None:
    """Check that the thresholds of a recording are numbers that rules can compare with.

    Raises:
        ValueError: one is not.
    """
    for name, value in recording.thresholds.items():
        if not outside.is_number(name, value):
            raise ValueError(f"the threshold {name} is {value}")


def _times(recording: Recording) -> Iterator[float | None]:
    run = recording.run
    yield from (recording.at, run.submitted_at, run.started_at, run.finished_at)
    yield from (event.at for event in recording.events)
    yield from (trace.at for trace in recording.traces)
    yield from (at for each in recording.changes for at in (each.asked_at, each.done_at))
    yield from (at for each in recording.probes for at in (each.began_at, each.ended_at))
    if recording.conclusion is not None:
        yield recording.conclusion.at


def _packed(text: str) -> bytes:
    """Return a compressed text behind the checksum of the uncompressed one."""
    data = text.encode("ascii")
    return zlib.crc32(data).to_bytes(4, "big") + zlib.compress(data)


def _head(data: bytes | None) -> _Head:
    """Return the unpacked metadata of a file.

    Raises:
        ValueError: the data are missing, damaged, too large or of another version.
    """
    if data is None:
        raise ValueError("it is a Parquet file of something else")
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(data[4:], MOST_HEAD_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is damaged: {error}") from error
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise ValueError("what is known of its job is too much, or cut off")
    if zlib.crc32(text).to_bytes(4, "big") != data[:4]:
        raise ValueError("it is damaged: its checksum is another")
    head = encodings.value(_Head, json.loads(text, parse_constant=_number, parse_float=_number))
    if head.version != VERSION:
        raise ValueError(f"it has version {head.version}, and this Paceline reads {VERSION}")
    return head


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value


def _pairs(facts: Sequence[tuple[str, ...]]) -> tuple[tuple[str, str], ...]:
    if any(len(fact) != 2 for fact in facts):
        raise ValueError("a fact has no name, or no value")
    return tuple((fact[0], fact[1]) for fact in facts)


def _rows(found: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """Return the measurements of each kind.

    Raises:
        ValueError: a row has no replica, an unknown kind, or no value in a required column.
    """
    parse = functools.cache(ReplicaId.parse)
    if None in found[_REPLICA]:
        raise ValueError("a row is of no replica")
    replicas = list(map(parse, found[_REPLICA]))
    places: dict[str, list[int]] = {row: [] for row in _KINDS}
    for number, row in enumerate(found[_ROW]):
        if row not in places:
            raise ValueError(f"a row is of an unknown kind {row!r}")
        places[row].append(number)
    return {row: tuple(_values(kind, places[row], replicas, found)) for row, kind in _KINDS.items()}


def _values(
    kind: type, places: Sequence[int], replicas: Sequence[ReplicaId], found: Mapping[str, Sequence[Any]]
) -> Iterator[Any]:
    """Yield the measurements of one kind from the rows with the numbers ``places``."""
    fields = _fields(kind)
    for name, (_, optional) in fields.items():
        if not optional and any(found[name][place] is None for place in places):
            raise ValueError(f"{name} is missing in a row")
    for place in places:
        yield kind(replica=replicas[place], **{name: found[name][place] for name in fields})
