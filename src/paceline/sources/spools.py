"""Reads the spools of agents from an offset: one JSON object a line (``docs/agent-protocol.md``)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from paceline.model import columns, outside
from paceline.model.jobs.runs import CURED, FACT, STANDING, JobEvent
from paceline.model.measures import script_facts, standings
from paceline.model.measures.samples import CURRENT_ATTEMPT, EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.model.variables.cures import CureOutcome

#: The most bytes that are read at once, so that a spool that grew for hours does not fill memory.
MAX_READ_BYTES = 4 * 1024 * 1024
#: The longest message of an agent or of the instrumentation; the rest is cut off.
MOST_CHARACTERS = 1000
_MOST_NOTES = 20

_Record = TypeVar("_Record", Sample, StepReport, EvaluationReport)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpoolReading:
    """The records of a spool between two offsets.

    Attributes:
        offset: where the next reading begins, in bytes; only whole lines are taken.
        started: whether the agent reported that its command runs.
        ended: whether the agent reported that its command has ended: nothing comes after that.
        broken: the number of lines that are not records; they are not kept.
    """

    offset: int
    started: bool = False
    ended: bool = False
    samples: tuple[Sample, ...] = ()
    steps: tuple[StepReport, ...] = ()
    evaluations: tuple[EvaluationReport, ...] = ()
    events: tuple[JobEvent, ...] = ()
    broken: int = 0

    def moved(self, seconds: float) -> SpoolReading:
        """Return the reading corrected for a clock that is a number of seconds behind; below 0: ahead."""
        if not seconds:
            return self
        return dataclasses.replace(
            self,
            samples=_moved(self.samples, seconds),
            steps=_moved(self.steps, seconds),
            evaluations=_moved(self.evaluations, seconds),
            events=_moved(self.events, seconds),
        )


_Timed = TypeVar("_Timed", Sample, StepReport, EvaluationReport, JobEvent)


def _moved(records: tuple[_Timed, ...], seconds: float) -> tuple[_Timed, ...]:
    return tuple(dataclasses.replace(each, at=max(0.0, each.at + seconds)) for each in records)


def read(path: Path, *, replica: ReplicaId, attempt: int, offset: int) -> SpoolReading:
    """Return what an agent has written since ``offset``; an empty reading if there is no file yet."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(MAX_READ_BYTES)
    except FileNotFoundError:
        return SpoolReading(offset=offset)
    whole = whole_lines(data, is_full=len(data) == MAX_READ_BYTES)
    return parse(whole, replica=replica, attempt=attempt, offset=offset + len(whole))


def whole_lines(data: bytes, *, is_full: bool) -> bytes:
    """Return the complete lines of a stretch; all of it if it is full and contains no line end."""
    end = data.rfind(b"\n") + 1
    return data if end == 0 and is_full else data[:end]


def parse(data: bytes, *, replica: ReplicaId, attempt: int, offset: int) -> SpoolReading:
    """Return the records in whole lines of a spool; a line that is not a record counts as broken."""
    records: dict[str, list[Any]] = {"sample": [], "step": [], "evaluation": []}
    happened: list[JobEvent] = []
    started = ended = False
    broken = 0
    for line in data.splitlines():
        if not line.strip():
            continue
        record = _object(line)
        try:
            match record.get("type"):
                case "sample":
                    records["sample"].append(_record(Sample, record, replica, attempt))
                case "step":
                    records["step"].append(_record(StepReport, record, *_trainer(record, replica, attempt)))
                case "evaluation":
                    records["evaluation"].append(_record(EvaluationReport, record, replica, attempt))
                case "started":
                    started = True
                    happened.append(_started(record, replica, attempt))
                case str() as kind if kind in _EVENTS:
                    happened.append(_EVENTS[kind](record, replica, attempt))
                case "exited":
                    # The exit file has the reason, too; the engine reports it when all processes are gone.
                    ended = True
                case _:
                    broken += 1
        except (TypeError, ValueError, OverflowError):
            broken += 1
    return SpoolReading(
        offset=offset,
        started=started,
        ended=ended,
        samples=tuple(records["sample"]),
        steps=tuple(records["step"]),
        evaluations=tuple(records["evaluation"]),
        events=tuple(happened),
        broken=broken,
    )


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _trainer(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> tuple[ReplicaId, int]:
    """Return the trainer of a step report: a coordinator also reports the steps of its workers.

    Raises:
        ValueError: the report names no valid replica.
    """
    named = record.get("replica")
    if named is None or named == str(replica):
        return replica, attempt
    if not isinstance(named, str):
        raise ValueError("replica is no text")
    return ReplicaId.parse(named), CURRENT_ATTEMPT


def _record(kind: type[_Record], record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> _Record:
    """Return a record with its known fields, of an attempt of a replica."""
    values: dict[str, Any] = {"replica": replica, "attempt": attempt}
    declared: type = kind
    for name, (of, _) in columns.fields(declared).items():
        if name in values:
            continue
        value = record.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} is not a number")
        if not outside.is_number(name, value):
            if name in outside.QUALITIES:
                continue
            raise ValueError(f"{name} is a number that it cannot be")
        values[name] = of(value)
    return kind(**values)


def _said(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    message = str(record.get("message") or "")[:MOST_CHARACTERS]
    at = outside.moment(record.get("at"))
    return JobEvent(at=at, kind=str(record["type"]), message=message, replica=replica, attempt=attempt)


def _changed(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    """Return the event of a cure's outcome; raises as `_cured` does."""
    return _said({**record, "type": CURED, "message": str(_cured(record))}, replica, attempt)


def _fact(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    message = script_facts.text(record.get("name"), record.get("value"))
    at = outside.moment(record.get("at"))
    return JobEvent(at=at, kind=FACT, message=message, replica=replica, attempt=attempt)


def _standing(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    """Return the event of what a trainer does while it makes no step, at the time when it began to.

    Raises:
        ValueError: the activity is unknown.
    """
    message = standings.text(str(record.get("doing")), str(record.get("where") or ""))
    at = outside.moment(record.get("since"))
    return JobEvent(at=at, kind=STANDING, message=message, replica=replica, attempt=attempt)


def _cured(record: Mapping[str, Any]) -> CureOutcome:
    """Return the outcome that a cure reports.

    Raises:
        ValueError: the outcome is unknown.
    """
    outcome = record.get("outcome")
    if outcome not in ("applied", "refused"):
        raise ValueError("outcome is neither")
    return CureOutcome(
        cure=str(record.get("name") or ""),
        version=int(record.get("version") or 0),
        is_applied=outcome == "applied",
        count=int(record.get("count") or 0),
        detail=str(record.get("message") or ""),
    )


def _started(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    threads, limit = record.get("threads"), record.get("cpu_limit_cores")
    message = f"started with {threads} threads" + (f" on a limit of {limit:g} cores" if limit else "")
    notes = record.get("notes")
    if isinstance(notes, list) and notes:
        message += "; " + "; ".join(str(note)[:MOST_CHARACTERS] for note in notes[:_MOST_NOTES])
    at = outside.moment(record.get("at"))
    message = message[:MOST_CHARACTERS]
    return JobEvent(at=at, kind="started", message=message, replica=replica, attempt=attempt)


#: The functions that turn records into events, by the type of the record.
_EVENTS: Mapping[str, Callable[[Mapping[str, Any], ReplicaId, int], JobEvent]] = {
    **dict.fromkeys(("note", "instrumentation", "output", "outlived", "misread", "left"), _said),
    "cure": _changed,
    "fact": _fact,
    "standing": _standing,
}
