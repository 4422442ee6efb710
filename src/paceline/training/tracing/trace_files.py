"""Traces as Parquet files: one file for each trace, written completely or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pyarrow
from pyarrow import parquet

from paceline.model.traces import trace_tables
from paceline.model.traces.traced_steps import Trace

KEPT = 60
"""So many traces of each trainer stay: an hour of the default schedule, a few megabytes."""

_TYPES = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}


def name_of(trainer: str, attempt: int) -> str:
    """Return the name of a trainer's file in the folder of each trace."""
    return f"{trainer}.{attempt}.parquet"


def keep(trace: Trace, folder: Path, name: str) -> None:
    """Write a trace with this name into the folder of all traces, and remove the trainer's oldest traces.

    Raises:
        OSError: the trace cannot be written, or an old trace cannot be removed.
    """
    file = name_of(trace.trainer, trace.attempt)
    write(trace, folder / name / file)
    prune(folder, file)


def write(trace: Trace, path: Path) -> None:
    """Write a trace.

    Raises:
        OSError: the trace cannot be written.
    """
    schema = pyarrow.schema(
        [(name, _TYPES[kind]) for name, kind in trace_tables.COLUMNS.items()],
        metadata=trace_tables.labels(trace),
    )
    table = pyarrow.table(trace_tables.columns(trace), schema=schema)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    parquet.write_table(table, temporary, compression="zstd")
    os.replace(temporary, path)


def prune(folder: Path, file: str) -> None:
    """Remove a trainer's oldest traces, and the folders that are then empty.

    Raises:
        OSError: a trace cannot be removed.
    """
    found = sorted(folder.glob(f"*/{file}"))
    for path in found[: max(0, len(found) - KEPT)]:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another trainer's trace is still there
            path.parent.rmdir()
