"""What happened to a job and what was found in it, on one timeline, the latest first."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from paceline.diagnosing import catalogues
from paceline.model.explanations.causes import Cause
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import JobEvent, SpecChange
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.services.observing.diagnosis_runs import DiagnosisRun
from paceline.surfaces.reports import texts

#: How many entries are shown: the latest.
MOST_ENTRIES = 200
#: The same event of many replicas within this time is one entry, which names this many of the replicas.
TOGETHER_SECONDS, NAMED = 10.0, 3
MOST_CHARACTERS = 200
_BAD = frozenset(phase.value for phase in (JobPhase.FAILED, JobPhase.RESTARTING))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """An entry of the timeline.

    Attributes:
        at: Unix seconds; of an entry about many replicas, the time of the first event.
        kind: the kind of event, or the code of a finding.
        of: the replicas, abbreviated; empty: the job.
        text: the description.
        severity: the severity of a finding; None: the entry is an event.
        is_bad: whether the entry needs attention.
        is_marked: whether charts mark it: marks of an event of each of 220 replicas would hide the curves.
    """

    at: float
    kind: str
    of: str = ""
    text: str = ""
    severity: Severity | None = None
    is_bad: bool = False
    is_marked: bool = True


def entries(
    look: DiagnosisRun, events: Iterable[JobEvent], changes: Sequence[SpecChange]
) -> list[TimelineEntry]:
    """Return the timeline of a job, the latest entry first."""
    found = [*_findings(look), *_changes(changes), *_events(events)]
    return sorted(found, key=lambda each: -each.at)[:MOST_ENTRIES]


def _findings(look: DiagnosisRun) -> Iterator[TimelineEntry]:
    for cause in look.explanation.causes:
        yield TimelineEntry(
            at=_since(cause, look.recording),
            kind=catalogues.topic(cause.name).code,
            text=cause.what,
            severity=cause.severity,
            is_bad=not cause.is_past,
        )


def _since(cause: Cause, recording: Recording) -> float:
    """Return the first moment at which a cause was seen; the time of the recording if it is not known."""
    told = [source.since for each in cause.evidence for source in each.sources if source.since is not None]
    told += [each.at for each in cause.evidence if each.at is not None]
    return min(told, default=recording.at)


def _changes(changes: Sequence[SpecChange]) -> Iterator[TimelineEntry]:
    for each in changes:
        yield TimelineEntry(at=each.asked_at, kind="change", text="asked for")
        if each.done_at is not None:
            yield TimelineEntry(at=each.done_at, kind="change", text="made")


def _events(events: Iterable[JobEvent]) -> Iterator[TimelineEntry]:
    ordered = sorted(events, key=lambda each: each.at)
    for _, group in itertools.groupby(ordered, key=lambda each: (each.kind, each.replica is None)):
        for together in _together(group):
            yield _entry(together)


def _together(events: Iterable[JobEvent]) -> Iterator[list[JobEvent]]:
    """Yield groups of events of one kind that happened about the same time; a job's events stay single."""
    kept: list[JobEvent] = []
    for each in events:
        if kept and (each.replica is None or each.at - kept[0].at > TOGETHER_SECONDS):
            yield kept
            kept = []
        kept.append(each)
    if kept:
        yield kept


def _entry(events: Sequence[JobEvent]) -> TimelineEntry:
    first = events[0]
    names = [str(each.replica) for each in sorted(events, key=lambda each: str(each.replica)) if each.replica]
    more = len(names) - NAMED
    said = dict.fromkeys(each.message for each in events if each.message)
    return TimelineEntry(
        at=first.at,
        kind=first.kind + (f" (attempt {first.attempt})" if (first.attempt or 0) > 1 else ""),
        of=", ".join(names[:NAMED]) + (f" + {more}" if more > 0 else ""),
        text=texts.shortened("; ".join(said), MOST_CHARACTERS),
        is_bad=first.kind in _BAD,
        is_marked=first.replica is None or first.kind == "replica-exited" or (first.attempt or 0) > 1,
    )
