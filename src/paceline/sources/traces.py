"""Reads the traces in a run's folder.

They are Parquet files of the training library, TensorFlow's traces of single steps (`traced_steps`) or the
output of its profiler (`profiles`). Needs pyarrow or protobuf.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from paceline.errors import PacelineError, first_line
from paceline.model import words
from paceline.model.traces import trace_tables
from paceline.model.traces import traced_steps as traces
from paceline.model.traces.traced_steps import Trace
from paceline.model.variables.variables import Variable
from paceline.sources.refusals import TraceRefused
from paceline.specs.job_file import variable_files


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TraceReading:
    """The traces of one moment, by trainer.

    Attributes:
        name: the name of the moment.
        folder: the folder of the files.
        traces: the traces that were read.
        broken: messages on the files that could not be read.
        refused: by the name of a replica that answered that there is nothing to trace, the reason.
        missing: trainers that were just asked for a trace and have written no whole step.
        silent: replicas that were just asked for a profile and have written nothing.
    """

    name: str
    folder: Path
    traces: tuple[Trace, ...] = ()
    broken: tuple[str, ...] = ()
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    missing: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()

    def why_none(self) -> str:
        """Return in parentheses why replicas have no trace, grouped by reason; empty: no reason is known."""
        alike: dict[str, list[str]] = {}
        for replica, reason in sorted(self.refused.items()):
            alike.setdefault(reason, []).append(replica)
        said = "; ".join(f"{words.listed(names)}: {reason}" for reason, names in alike.items())
        return f" ({said})" if said else ""


def names(run: Path) -> list[str]:
    """Return the names of the traces of a run that have a file, the oldest first."""
    return sorted({path.parent.name for path in (run / traces.FOLDER).glob("*/*") if _is_trace(path)})


def _is_trace(path: Path) -> bool:
    return path.suffix in traces.SUFFIXES and not path.name.startswith(".")


def files(run: Path, name: str) -> list[Path]:
    """Return the files of a trace: the latest attempt's traced step and profile of each replica."""
    found: dict[tuple[str, bool], tuple[int, Path]] = {}
    for path in filter(_is_trace, (run / traces.FOLDER / name).glob("*")):
        replica, _, attempt = path.stem.rpartition(".")
        key = replica, path.suffix == traces.PROFILE
        if attempt.isdecimal() and (key not in found or found[key][0] < int(attempt)):
            found[key] = int(attempt), path
    return [path for _, path in sorted(found.values(), key=lambda item: item[1].name)]


def read(run: Path, name: str) -> TraceReading:
    """Return the traces of one moment; a corrupt file is left out and listed as broken.

    If a trainer has written a traced step, which includes sizes in bytes, its profile is not used.
    """
    traces_by_trainer: dict[str, Trace] = {}
    broken: list[str] = []
    refused: dict[str, str] = {}
    profiled = []
    for path in files(run, name):
        if path.suffix == traces.PROFILE:
            profiled.append(path)
            continue
        try:
            trace = read_file(path)
        except TraceRefused as reason:
            refused[path.stem.rpartition(".")[0]] = str(reason)
        except ValueError as error:
            broken.append(str(error))
        else:
            traces_by_trainer[trace.trainer] = trace
    if profiled:
        from paceline.sources import profiles

        seen = profiles.read(profiled, _variables(run))
        traces_by_trainer = {
            profiled_trace.trainer: profiled_trace for profiled_trace in seen.traces
        } | traces_by_trainer
        broken += seen.broken
        refused |= seen.refused
    return TraceReading(
        name=name,
        folder=run / traces.FOLDER / name,
        traces=tuple(traces_by_trainer[trainer] for trainer in sorted(traces_by_trainer)),
        broken=tuple(broken),
        refused=refused,
    )


def _variables(run: Path) -> tuple[Variable, ...]:
    """Return the variables that a trainer has recorded; none if there is no file, or the file is wrong."""
    try:
        return variable_files.load_variables(run / traces.VARIABLES)
    except PacelineError:
        return ()


def read_file(path: Path) -> Trace:
    """Return the trace of a file.

    Raises:
        TraceRefused: the file says why there is no trace.
        ValueError: the file cannot be read, or is not a trace.
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
