"""Converts the documents of a server (`surfaces.documents`) to values of the model.

Unknown keys of a document come from a newer server and are ignored.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from paceline.diagnosing.situations import Situation
from paceline.errors import SourceError
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run, RunSummary, SpecChange
from paceline.model.jobs.statuses import ExitReason
from paceline.model.measures.intervals import Interval
from paceline.model.measures.probes import Cut, CutPart, Elasticity, Probe
from paceline.model.measures.samples import EvaluationReport
from paceline.model.measures.snapshots import Imbalance, ReplicaSnapshot, RoleSnapshot, Snapshot
from paceline.model.roles import ReplicaId
from paceline.scheduling.fits import Fit
from paceline.stores import encodings

T = TypeVar("T")

Document = Mapping[str, Any]
LOST = "lost"


@contextlib.contextmanager
def understanding(what: str) -> Iterator[None]:
    """Raise an error that names the document if its reading, within the block, fails.

    Args:
        what: the subject of the document, such as ``a job``.

    Raises:
        SourceError: a key of the document is missing, or a value has the wrong form.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise SourceError(
            f"what the server says of {what} cannot be read: {said}",
            "client and server should be of the same version: paceline version",
        ) from error


def check_goes_on(before: object, after: object) -> None:
    """Check that the page after this one is a different page.

    Raises:
        ValueError: the next page would be the same again.
    """
    if before == after:
        raise ValueError("a page ends where it begins")


def run(document: Document, source: str) -> Run:
    """Return a run; ``source`` is its job file."""
    return _value(Run, {**document, "phase": document["last_phase"], "source": source})


def summary(document: Document) -> RunSummary:
    """Return the summary of a run in a list."""
    return _value(RunSummary, {**document, "phase": document["last_phase"]})


def replica(document: Document) -> ReplicaRow:
    """Return a replica."""
    return encodings.value(ReplicaRow, _row(document))


def _row(document: Document) -> dict[str, Any]:
    left = document["exit"]
    body = {
        **document,
        "memory_bytes": document["memory_limit_bytes"],
        "exit": None if left is None else _fields(ExitReason, left),
    }
    return _fields(ReplicaRow, body)


def attempt(name: str) -> tuple[ReplicaId, int]:
    """Return the replica and attempt of a name such as ``ps-0.1``."""
    of, _, number = name.rpartition(".")
    return ReplicaId.parse(of), int(number)


def event(document: Document) -> JobEvent:
    """Return an event."""
    return _value(JobEvent, document)


def spec_change(document: Document) -> SpecChange:
    """Return a requested change of a job."""
    return _value(SpecChange, document)


def probe(document: Document) -> Probe:
    """Return a probe."""
    parts = [{**_with_part(part), "value": part["elasticity"]} for part in document["parts"]]
    body = {
        **document,
        "run": document["name"],
        "share": document["lost_share"],
        "elasticities": [_fields(Elasticity, part) for part in parts],
        "cuts": [_fields(Cut, _with_part(cut)) for cut in document["cuts"]],
    }
    return _value(Probe, body)


def _with_part(document: Document) -> dict[str, Any]:
    """Return the document of a cut or an elasticity with the fields of its part as a value of their own."""
    return {**document, "part": _fields(CutPart, document)}


def snapshot(document: Document, of: Run) -> Snapshot:
    """Return the snapshot of a run."""
    interval, evaluation = document["interval"], document["evaluation"]
    body = {
        **_fields(Snapshot, document),
        "run": of,
        "at": _known(document["at"]),
        "lost": document["phase"] == LOST,
        "roles": tuple(map(_role, document["roles"])),
        "interval": None if interval is None else _value(Interval, interval),
        "evaluation": None if evaluation is None else _value(EvaluationReport, evaluation),
    }
    return Snapshot(**body)


def _role(document: Document) -> RoleSnapshot:
    body = {
        **document,
        "imbalances": [_fields(Imbalance, each) for each in document["imbalances"]],
        "replicas": [{**_fields(ReplicaSnapshot, each), "row": _row(each)} for each in document["replicas"]],
    }
    return _value(RoleSnapshot, body)


def fit(document: Document) -> Fit:
    """Return whether a job fits."""
    return _value(Fit, document)


def situation(document: Document) -> Situation:
    """Return the situation of a job."""
    return _value(Situation, document)


def instant(text: str | None) -> float | None:
    """Return a time as Unix seconds; None if there is none."""
    return None if text is None else _known(text)


def _known(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


def _value(kind: type[T], document: Document) -> T:
    return encodings.value(kind, _fields(kind, document))


def _fields(kind: Any, document: Document) -> dict[str, Any]:
    """Return the keys of a document that are fields of a type, with their values."""
    names = {field.name for field in dataclasses.fields(kind)}
    return {name: value for name, value in document.items() if name in names}
