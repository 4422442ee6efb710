"""Imports recordings from anywhere as jobs of a home, completely or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from paceline import specs
from paceline.control import states
from paceline.engines.local import folders
from paceline.errors import InvalidInput, PacelineError, StoreError, first_line
from paceline.model.explanations.conclusions import Conclusion
from paceline.model.jobs.runs import IMPORTED, LOCAL, JobEvent, Run
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures import snapshots
from paceline.model.measures.recordings import Recording
from paceline.model.traces import trace_tables, traced_steps
from paceline.services.local.run_registry import RunRegistry
from paceline.services.observing import diagnosis_runs, diagnosis_summaries, recording_checks


def keep(registry: RunRegistry, path: Path, *, name: str | None = None, origin: str = "") -> Run:
    """Import the recording in a file as a job that has ended. Nothing is left behind if that fails.

    Args:
        registry: the runs of the home.
        path: the file.
        name: the job's name; by default the recorded name, with a number if that is taken.
        origin: what the job's notes call the file; by default its name.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is not a recording, or holds impossible values.
        StoreError: the home or the store cannot be written.
        PacelineError: pyarrow is not installed.
    """
    try:
        from paceline.stores import recordings
    except ModuleNotFoundError as error:
        raise PacelineError(
            f"a recording needs {error.name}, which is not installed", "pip install 'paceline[training]'"
        ) from error
    called = origin or path.name
    try:
        recording = recordings.read(path)
    except InvalidInput as error:
        hint = "paceline record NAME makes one"
        raise InvalidInput(error.message.replace(str(path), called), hint) from error
    with _explained(called):
        recording_checks.check(recording)
        # The findings use the job's name in this home.
        recording = _named(_ended(recording, called), registry.free_name(name or recording.run.name))
        look = diagnosis_runs.of(recording)
        summary = diagnosis_summaries.of(snapshots.of(recording), look)
    conclusion = recording.conclusion or Conclusion(
        at=recording.at, version=metadata.version("paceline"), explanation=look.explanation
    )
    with tempfile.TemporaryDirectory(dir=registry.made_home(), prefix=".import-") as scratch:
        folder = Path(scratch) / "run"
        with _explained(called):
            _fill(folder, recording)
        with registry.choosing():
            chosen = registry.free_name(recording.run.name)
            home = registry.home.folder(chosen).path
            named = _named(recording, chosen, directory=str(home))
            home.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(home)
            with contextlib.ExitStack() as undone, _explained(called):
                undone.callback(shutil.rmtree, home, ignore_errors=True)
                registry.store.import_run(named, _state(named), conclusion, summary)
                undone.pop_all()
    return registry.store.get_run(chosen)


@contextlib.contextmanager
def _explained(called: str) -> Iterator[None]:
    """Turn any error about a recording into the statement that it cannot be imported.

    Raises:
        InvalidInput: the recording cannot be used.
        StoreError: its files cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(f"the files of {called} cannot be written: {error.strerror or error}") from error
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, InvalidInput) as error:
        said = error.message if isinstance(error, InvalidInput) else str(error)
        raise InvalidInput(
            f"{called} cannot be imported: {first_line(ValueError(said))}",
            "record the job again: paceline record NAME",
        ) from error


def _ended(recording: Recording, origin: str) -> Recording:
    """Return a recording as that of an ended job: a job that ran counts as stopped when it was recorded."""
    run = recording.run
    day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(recording.at))
    note = f"imported from {origin}, recorded {day} UTC where it was {run.engine} job {run.name}"
    values: dict[str, Any] = {"engine": LOCAL, "notes": (*run.notes, note), "source": specs.source_of(run)}
    if not run.phase.is_final:
        message = f"it was {run.phase} when it was recorded"
        values |= {"phase": JobPhase.STOPPED, "message": message, "finished_at": recording.at}
    elif run.finished_at is None:
        values |= {"finished_at": recording.at}
    replicas = [
        row if row.phase.is_final else dataclasses.replace(row, phase=ReplicaPhase.STOPPED)
        for row in recording.replicas
    ]
    event = JobEvent(at=recording.at, kind=IMPORTED, message=note)
    return dataclasses.replace(
        recording,
        run=dataclasses.replace(run, **values),
        replicas=[dataclasses.replace(row, pid=None) for row in replicas],
        events=[*recording.events, event],
        lost=False,
    )


def _named(recording: Recording, name: str, **values: Any) -> Recording:
    run = recording.run
    spec = dataclasses.replace(run.spec, name=name)
    return dataclasses.replace(recording, run=dataclasses.replace(run, name=name, spec=spec, **values))


def _state(recording: Recording) -> states.JobState:
    run = recording.run
    replicas = tuple(
        states.ReplicaState(
            replica=row.replica,
            phase=row.phase,
            attempt=row.attempt,
            restarts=row.restarts,
            memory_bytes=row.memory_bytes,
            exit=row.exit,
        )
        for row in recording.replicas
    )
    return states.JobState(
        spec=run.spec, phase=run.phase, outcome=run.phase, message=run.message, replicas=replicas
    )


def _fill(path: Path, recording: Recording) -> None:
    """Create the folder of a run with the files that a recording contains.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = folders.RunFolder(path)
    folder.create()
    folder.write_source(recording.run.source)
    for each in recording.output:
        text = "".join(f"{_line(line)}\n" for line in each.lines)
        folder.log(each.replica, each.attempt).write_bytes(text.encode("utf-8", "replace"))
    # The traces are of one moment, though each trainer's clock says another.
    moment = traced_steps.name_at(max((trace.at for trace in recording.traces), default=0.0))
    for trace in recording.traces:
        _write_trace(path / traced_steps.FOLDER / moment, trace)
    if recording.plan is not None:
        counted = {"variables": [dataclasses.asdict(each) for each in recording.plan.variables]}
        (path / traced_steps.VARIABLES).write_text(json.dumps(counted))


def _line(text: str) -> str:
    return text.replace("\n", " ")


def _write_trace(folder: Path, trace: traced_steps.Trace) -> None:
    """Write a trace in the training library's format; like reading, this needs pyarrow."""
    import pyarrow
    from pyarrow import parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    schema = pyarrow.schema(
        [(name, types[kind]) for name, kind in trace_tables.COLUMNS.items()],
        metadata=trace_tables.labels(trace),
    )
    path = folder / f"{trace.trainer}.{trace.attempt}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(trace_tables.columns(trace), schema=schema), path, compression="zstd")
