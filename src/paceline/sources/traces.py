"""Traces that trainers left in a run's folder: Parquet of the training library, or what TensorFlow gave
(`traced_steps`). Needs pyarrow or protobuf.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from paceline.errors import first_line
from paceline.model import trace_tables, traces
from paceline.model.traces import Trace


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The traces of one moment, by trainer, and what could not be read and why."""

    name: str
    folder: Path
    traces: tuple[Trace, ...] = ()
    broken: tuple[str, ...] = ()


def names(run: Path) -> list[str]:
    """Return the names of the traces of a run that have a file, the oldest first."""
    return sorted({path.parent.name for path in (run / traces.FOLDER).glob("*/*") if _is_trace(path)})


def _is_trace(path: Path) -> bool:
    return path.suffix in traces.SUFFIXES and not path.name.startswith(".")


def files(run: Path, name: str) -> list[Path]:
    """Return the files of a trace: of each trainer that of its last attempt."""
    found: dict[str, tuple[int, Path]] = {}
    for path in filter(_is_trace, (run / traces.FOLDER / name).glob("*")):
        trainer, _, attempt = path.stem.rpartition(".")
        if attempt.isdecimal() and (trainer not in found or found[trainer][0] < int(attempt)):
            found[trainer] = int(attempt), path
    return [path for _, path in sorted(found.values(), key=lambda item: item[1].name)]


def read(run: Path, name: str) -> Reading:
    """Return the traces of one moment; a file that is corrupt is left out and mentioned."""
    found, broken = [], []
    for path in files(run, name):
        try:
            found.append(read_file(path))
        except ValueError as error:
            broken.append(str(error))
    return Reading(name=name, folder=run / traces.FOLDER / name, traces=tuple(found), broken=tuple(broken))


def read_file(path: Path) -> Trace:
    """Return the trace of a file.

    Raises:
        ValueError: it cannot be read, or is no trace, and why.
    """
    if path.suffix == traces.GIVEN:
        from paceline.sources import traced_steps

        return traced_steps.read(path)
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
        labels = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        return trace_tables.trace(table.to_pydict(), labels)
    except (OSError, pyarrow.ArrowException, ValueError) as error:
        raise ValueError(f"{path} is no trace: {first_line(error)}") from error
