"""What agents write: one JSON object a line (``docs/agent-protocol.md``), read on from where one stopped."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from paceline.model import outside
from paceline.model.jobs.runs import CURED, FACT, STANDING, JobEvent
from paceline.model.measures import script_facts, standings
from paceline.model.measures.samples import CURRENT_ATTEMPT, EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.model.variables.cures import CureOutcome

#: A reader takes at most so much at once, so that a spool that grew for hours does not fill memory.
MAX_READ_BYTES = 4 * 1024 * 1024
#: Of what an agent or the instrumentation says.
MOST_CHARACTERS = 1000
_MOST_NOTES = 20

_Record = TypeVar("_Record", Sample, StepReport, EvaluationReport)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpoolReading:
    """What a spool held from one offset to the next.

    Attributes:
        offset: where the next reading begins, in bytes; only whole lines are taken.
        started: whether the agent said that its command runs.
        ended: whether it said that its command has ended: nothing comes after that.
        broken: lines that are no record; they are counted, not kept.
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
        """Return what was written by a clock that is so many seconds behind; less than 0: ahead."""
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
    """Return what an agent has written since ``offset``; an empty reading when there is no file yet."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(MAX_READ_BYTES)
    except FileNotFoundError:
        return SpoolReading(offset=offset)
    whole = whole_lines(data, is_full=len(data) == MAX_READ_BYTES)
    return parse(whole, replica=replica, attempt=attempt, offset=offset + len(whole))


def whole_lines(data: bytes, *, is_full: bool) -> bytes:
    """Return the lines of a stretch that have an end; all of it when it is full of a line that has none."""
    end = data.rfind(b"\n") + 1
    return data if end == 0 and is_full else data[:end]


def parse(data: bytes, *, replica: ReplicaId, attempt: int, offset: int) -> SpoolReading:
    """Return the records in whole lines of a spool; a line that is no record is counted as broken."""
    found: dict[str, list[Any]] = {"sample": [], "step": [], "evaluation": []}
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
                    found["sample"].append(_record(Sample, record, replica, attempt))
                case "step":
                    found["step"].append(_record(StepReport, record, *_trainer(record, replica, attempt)))
                case "evaluation":
                    found["evaluation"].append(_record(EvaluationReport, record, replica, attempt))
                case "started":
                    started = True
                    happened.append(_started(record, replica, attempt))
                case str() as kind if kind in _EVENTS:
                    happened.append(_EVENTS[kind](record, replica, attempt))
                case "exited":
                    # Why is in the exit file too, and the engine reports it when all is gone.
                    ended = True
                case _:
                    broken += 1
        except (TypeError, ValueError, OverflowError):
            broken += 1
    return SpoolReading(
        offset=offset,
        started=started,
        ended=ended,
        samples=tuple(found["sample"]),
        steps=tuple(found["step"]),
        evaluations=tuple(found["evaluation"]),
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
    """Return whose steps a report is of: a coordinator tells those of its workers."""
    named = record.get("replica")
    if named is None or named == str(replica):
        return replica, attempt
    if not isinstance(named, str):
        raise ValueError("replica is no text")
    return ReplicaId.parse(named), CURRENT_ATTEMPT


def _record(kind: type[_Record], record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> _Record:
    """Return a record with its known fields, of an attempt of a replica."""
    values: dict[str, Any] = {"replica": replica, "attempt": attempt}
    for field in dataclasses.fields(kind):
        if field.name in values:
            continue
        value = record.get(field.name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{field.name} is not a number")
        if not outside.is_number(field.name, value):
            if field.name in outside.QUALITIES:
                continue
            raise ValueError(f"{field.name} is a number that it cannot be")
        values[field.name] = float(value) if "float" in str(field.type) else int(value)
    return kind(**values)


def _said(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    message = str(record.get("message") or "")[:MOST_CHARACTERS]
    at = outside.moment(record.get("at"))
    return JobEvent(at=at, kind=str(record["type"]), message=message, replica=replica, attempt=attempt)


def _changed(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    """Return what a cure says of itself; raises as `_cured` does."""
    return _said({**record, "type": CURED, "message": str(_cured(record))}, replica, attempt)


def _fact(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    message = script_facts.text(record.get("name"), record.get("value"))
    at = outside.moment(record.get("at"))
    return JobEvent(at=at, kind=FACT, message=message, replica=replica, attempt=attempt)


def _standing(record: Mapping[str, Any], replica: ReplicaId, attempt: int) -> JobEvent:
    """Return what a trainer does while it makes no step, as of since when.

    Raises:
        ValueError: it is nothing that is known.
    """
    message = standings.text(str(record.get("doing")), str(record.get("where") or ""))
    at = outside.moment(record.get("since"))
    return JobEvent(at=at, kind=STANDING, message=message, replica=replica, attempt=attempt)


def _cured(record: Mapping[str, Any]) -> CureOutcome:
    """Return what a cure says of itself.

    Raises:
        ValueError: it says nothing that is known.
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


#: How records become events, by their type.
_EVENTS: Mapping[str, Callable[[Mapping[str, Any], ReplicaId, int], JobEvent]] = {
    **dict.fromkeys(("note", "instrumentation", "output", "outlived", "misread", "left"), _said),
    "cure": _changed,
    "fact": _fact,
    "standing": _standing,
}
