"""When each replica lived: starts, restarts, exits, evaluations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from matplotlib.axes import Axes

from paceline.model.recordings import Recording
from paceline.model.roles import ReplicaId, Role
from paceline.model.runs import JobEvent, ReplicaRow
from paceline.model.statuses import ExitKind
from paceline.surfaces.reports import drawings, texts
from paceline.surfaces.reports.drawings import Plot

MAX_ROWS = 24
STARTED, EXITED = "started", "replica-exited"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One attempt of a replica; ``until`` is None when its end was not seen."""

    replica: ReplicaId
    attempt: int
    since: float
    until: float | None


def lives(events: Sequence[JobEvent]) -> list[Life]:
    """Return the attempts that events tell of, in the order of their starts."""
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
class Row:
    """What one row shows: a replica, or all those of a role to which nothing special happened."""

    label: str
    role: Role
    replicas: tuple[ReplicaId, ...]


def timeline(recording: Recording, end: float, *, wide: bool = False) -> Plot | None:
    """Return the lives of the replicas of a run.

    Args:
        recording: of the run.
        end: where the lives of those that still live are cut off (Unix seconds).
        wide: whether it has a row of the page for itself.
    """
    found = lives(recording.events)
    if not found:
        return None
    title = "Time line"
    start = recording.run.started_at if recording.run.started_at is not None else found[0].since
    start = min(start, found[0].since)
    end = max(end, *(life.until or life.since for life in found))
    shown = rows(recording.replicas, found)
    width = drawings.WIDTH_INCHES * (2 if wide else 1)
    with drawings.figure(height=max(1.7, 0.95 + 0.2 * len(shown)), width=width) as (made, (axes,)):
        _draw(axes, recording, found, shown, start, end)
        svg = drawings.svg(made, name="timeline", title=title)
    return Plot(name="timeline", title=title, svg=svg, caption=_caption(recording, found), wide=wide)


def rows(replicas: Sequence[ReplicaRow], found: Sequence[Life]) -> list[Row]:
    """Return a row for each replica; of many, only for those with restarts or failures, the rest by role."""
    lived = {life.replica for life in found}
    known = [row for row in replicas if row.replica in lived]
    single = known
    if len(known) > MAX_ROWS:
        special = [row for row in known if row.restarts or _went_wrong(row)]
        single = sorted(special, key=lambda row: (-row.restarts, row.replica))[:MAX_ROWS]
    named = {row.replica for row in single}
    shown = [Row(label=str(of), role=of.role, replicas=(of,)) for of in sorted(named)]
    for role in Role:
        rest = tuple(row.replica for row in known if row.replica.role is role and row.replica not in named)
        if rest:
            others = "other " if any(row.role is role for row in shown) else ""
            shown.append(
                Row(
                    label=f"{len(rest)} {others}{'PS' if role is Role.PS else f'{role}s'}",
                    role=role,
                    replicas=rest,
                )
            )
    return shown


def _went_wrong(row: ReplicaRow) -> bool:
    return row.exit is not None and row.exit.kind not in (ExitKind.COMPLETED, ExitKind.SIGNAL)


def _draw(
    axes: Axes,
    recording: Recording,
    found: Sequence[Life],
    shown: Sequence[Row],
    start: float,
    end: float,
) -> None:
    time, unit = drawings.time_scale(end - start)
    row_of = {replica: number for number, row in enumerate(shown) for replica in row.replicas}
    for number, row in enumerate(shown):
        of_row = [life for life in found if row_of.get(life.replica) == number]
        if len(row.replicas) > 1:
            of_row = [_together(of_row)]
        for life in of_row:
            since = (life.since - start) / time
            until = ((life.until if life.until is not None else end) - start) / time
            colour = drawings.colour_of_role(row.role)
            axes.barh(
                number, max(0.0, until - since), left=since, height=0.5, color=colour, alpha=0.75, linewidth=0
            )
    again = [(life.since, row_of[life.replica]) for life in found if life.attempt > 1]
    ended = [(life.until, row_of[life.replica]) for life in found if life.until is not None]
    judged = [(e.at, row_of[e.replica]) for e in recording.evaluations if e.replica in row_of]
    for label, marks, marker, size in (
        ("started again", again, ">", 5), ("ended", ended, "|", 9), ("evaluated", judged, "D", 5)
    ):  # fmt: skip
        if marks:
            axes.plot(
                [(at - start) / time for at, _ in marks], [number for _, number in marks], marker,
                markersize=size, linestyle="", label=label, markeredgecolor=drawings.INK,
                color=drawings.PAPER if marker == "D" else drawings.INK,
            )  # fmt: skip
    axes.set_yticks(range(len(shown)), [row.label for row in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, max((end - start) / time * 1.01, 1e-3))
    axes.set_xlabel(f"Time since the start ({unit})")
    axes.grid(visible=False, axis="y")
    drawings.legend(axes)


def _together(of_row: Sequence[Life]) -> Life:
    """Return one life from the first start to the last end."""
    ends = [life.until for life in of_row if life.until is not None]
    until = max(ends) if len(ends) == len(of_row) else None
    return dataclasses.replace(of_row[0], since=min(life.since for life in of_row), until=until)


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
