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


def _begun(trainer: str, attempt: int) -> str:
    """Return the name of a trainer's file while it is written."""
    return f".{name_of(trainer, attempt)}.tmp"


def keep(trace: Trace, folder: Path, name: str) -> None:
    """Write a trace with this name into the folder of all traces, and `prune` those of its trainer.

    Raises:
        OSError: the trace cannot be written, or an old trace cannot be removed.
    """
    write(trace, folder / name / name_of(trace.trainer, trace.attempt))
    prune(folder, trace.trainer, trace.attempt)


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
    temporary = path.with_name(_begun(trace.trainer, trace.attempt))
    parquet.write_table(table, temporary, compression="zstd")
    os.replace(temporary, path)


def prune(folder: Path, trainer: str, attempt: int) -> None:
    """Remove a trainer's oldest traces, of all its attempts, and the folders that are then empty.

    What earlier attempts were killed in writing is removed, too.

    Args:
        folder: the folder of all traces.
        trainer: the trainer.
        attempt: its attempt now.

    Raises:
        OSError: a trace cannot be removed.
    """
    found = sorted(folder.glob(f"*/{trainer}.*.parquet"))
    begun = set(folder.glob(f"*/.{trainer}.*.parquet.tmp")) - set(
        folder.glob(f"*/{_begun(trainer, attempt)}")
    )
    for path in [*found[: max(0, len(found) - KEPT)], *begun]:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another trainer's trace is still there
            path.parent.rmdir()
