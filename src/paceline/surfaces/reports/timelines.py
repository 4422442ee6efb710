"""A time line of each replica: starts, restarts, exits, evaluations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from paceline.model.jobs.runs import JobEvent, ReplicaRow
from paceline.model.jobs.statuses import ExitKind
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId, Role
from paceline.surfaces.charts import drawings, scales
from paceline.surfaces.charts.drawings import Boxes, Chart, Dots, Shape
from paceline.surfaces.reports import figures, texts
from paceline.surfaces.reports.figures import ReportFigure

MAX_ROWS = 24
STARTED, EXITED = "started", "replica-exited"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The lifetime of an attempt of a replica; ``until`` is None if its end was not observed."""

    replica: ReplicaId
    attempt: int
    since: float
    until: float | None


def lives(events: Sequence[JobEvent]) -> list[Life]:
    """Return the lifetimes of the attempts in the events, in the order of their starts."""
    starts: dict[tuple[ReplicaId, int], float] = {}
    ends: dict[tuple[ReplicaId, int], float] = {}
    for event in events:
        if event.replica is None or event.attempt is None:
            continue
        key = event.replica, event.attempt
        if event.kind == STARTED:
            starts.setdefault(key, event.at)
        elif event.kind == EXITED:
            ends[key] = event.at
    found = [
        Life(replica=replica, attempt=attempt, since=at, until=ends.get((replica, attempt)))
        for (replica, attempt), at in starts.items()
    ]
    return sorted(found, key=lambda life: (life.since, life.replica))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """The contents of a row: one replica, or the replicas of a role without a row of their own."""

    label: str
    role: Role
    replicas: tuple[ReplicaId, ...]


def timeline(recording: Recording, end: float, *, wide: bool = False) -> ReportFigure | None:
    """Return the time line of a run's replicas; None if the events show no starts.

    Args:
        recording: the recording of the run.
        end: the end of the time line for replicas that are still running (Unix seconds).
        wide: whether the figure fills the whole width of the page.
    """
    there = {row.replica for row in recording.replicas}  # Events may be of replicas that the job has no more.
    replica_lives = [life for life in lives(recording.events) if life.replica in there]
    if not replica_lives:
        return None
    title = "Time line"
    start = recording.run.started_at if recording.run.started_at is not None else replica_lives[0].since
    start = min(start, replica_lives[0].since)
    end = max(end, *(life.until or life.since for life in replica_lives))
    shown = rows(recording.replicas, replica_lives)
    chart = _chart(recording, replica_lives, shown, start, end, drawings.WIDE if wide else drawings.WIDTH)
    return ReportFigure(
        name="timeline", title=title, charts=(chart,), caption=_caption(recording, replica_lives), wide=wide
    )


def rows(replicas: Sequence[ReplicaRow], found: Sequence[Life]) -> list[TimelineRow]:
    """Return a row for each replica, or, if they are many, for each with restarts or failures.

    The other replicas then have one row for each role.
    """
    lived = {life.replica for life in found}
    known = [row for row in replicas if row.replica in lived]
    single = known
    if len(known) > MAX_ROWS:
        special = [row for row in known if row.restarts or _went_wrong(row)]
        single = sorted(special, key=lambda row: (-row.restarts, row.replica))[:MAX_ROWS]
    named = {row.replica for row in single}
    shown = [TimelineRow(label=str(of), role=of.role, replicas=(of,)) for of in sorted(named)]
    for role in Role:
        rest = tuple(row.replica for row in known if row.replica.role is role and row.replica not in named)
        if rest:
            others = "other " if any(row.role is role for row in shown) else ""
            shown.append(
                TimelineRow(
                    label=f"{len(rest)} {others}{'PS' if role is Role.PS else f'{role}s'}",
                    role=role,
                    replicas=rest,
                )
            )
    return shown


def _went_wrong(row: ReplicaRow) -> bool:
    return row.exit is not None and row.exit.kind not in (ExitKind.COMPLETED, ExitKind.SIGNAL)


def _chart(
    recording: Recording,
    found: Sequence[Life],
    shown: Sequence[TimelineRow],
    start: float,
    end: float,
    width: float,
) -> Chart:
    time, across = scales.since_start(end - start)
    least = (end - start) / time / width
    row_of = {replica: number for number, row in enumerate(shown) for replica in row.replicas}

    def at(moment: float) -> float:
        return (moment - start) / time

    shapes: list[Shape] = []
    for role in Role:
        boxes = []
        for number, row in enumerate(shown):
            of_row = [life for life in found if row.role is role and row_of.get(life.replica) == number]
            spans = [(at(life.since), at(end if life.until is None else life.until)) for life in of_row]
            # The lifetimes of a row with several replicas are drawn as one box.
            room = least if len(row.replicas) == 1 else float("inf")
            boxes += [(since, until, number + 0.25, number + 0.75) for since, until in _merged(spans, room)]
        shapes.append(Boxes(boxes=boxes, style=f"{figures.tint_of(role)} faint"))
    again = [(at(life.since), row_of[life.replica] + 0.5) for life in found if life.attempt > 1]
    ended = [(at(life.until), row_of[life.replica]) for life in found if life.until is not None]
    judged = [(at(e.at), row_of[e.replica] + 0.5) for e in recording.evaluations if e.replica in row_of]
    shapes.append(
        Boxes(
            boxes=[(x - least, x + least, row + 0.1, row + 0.9) for x, row in _thinned(ended, least)],
            style="tint-ink",
            key="ended" if ended else "",
        )
    )
    for key, points, style in (
        ("started again", again, "tint-ink"), ("evaluated", judged, "tint-ink hollow")
    ):  # fmt: skip
        if points:
            shapes.append(Dots(points=_thinned(points, 4 * least), style=style, key=key, radius=3.5))
    return drawings.chart(
        "Time line",
        across,
        dataclasses.replace(scales.rows([row.label for row in shown]), has_rules=False),
        shapes,
        width=width,
    )


def _merged(spans: Sequence[tuple[float, float]], room: float) -> list[tuple[float, float]]:
    """Return sorted spans; spans with a gap smaller than ``room`` are merged."""
    merged: list[tuple[float, float]] = []
    for since, until in sorted(spans):
        if merged and since - merged[-1][1] < room:
            merged[-1] = merged[-1][0], max(merged[-1][1], until)
        else:
            merged.append((since, until))
    return merged


def _thinned(points: Iterable[tuple[float, float]], room: float) -> list[tuple[float, float]]:
    """Return one point for each place, because overlapping marks enlarge the page without showing more."""
    places = {(round(x / room) if room else 0, row): (x, row) for x, row in points}
    return list(places.values())


def _caption(recording: Recording, found: Sequence[Life]) -> str:
    again = sum(life.attempt > 1 for life in found)
    count = len({life.replica for life in found})
    sentence = f"{count} replicas ran" if count != 1 else "1 replica ran"
    sentence += "; none was started again" if not again else f"; {again} of their starts were restarts"
    ended = [event for event in recording.events if event.kind == EXITED]
    first = min(ended, key=lambda event: event.at, default=None)
    if first is not None and recording.run.started_at is not None:
        after = texts.duration(max(0.0, first.at - recording.run.started_at))
        sentence += f"; the first to end was {first.replica} after {after}"
    return sentence + "."
