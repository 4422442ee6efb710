"""The report page of a run: its contents, and the HTML."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from paceline.model import quantities
from paceline.model.jobs.runs import JobEvent
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.snapshots import ReplicaSnapshot, RoleSnapshot, Snapshot
from paceline.surfaces import scripts, templates
from paceline.surfaces.charts import elasticities
from paceline.surfaces.reports import evidence, loads, plots, texts, timelines, whys
from paceline.surfaces.reports.figures import ReportFigure
from paceline.surfaces.reports.tiles import Tile

#: The table shows this many replicas at first, the rest on demand.
MAX_ROWS = 24
MAX_EVENTS = 200
_BAD = (JobPhase.FAILED, JobPhase.STOPPED)


def page(measured: evidence.ReportEvidence) -> str:
    """Return the whole page as a single HTML file without scripts that loads no other files."""
    recording, snapshot = measured.recording, measured.snapshot
    run = recording.run
    drawn, missing = _plots(measured)
    events = scripts.others(recording.events)
    rows = _sorted(snapshot.replicas)
    return templates.rendered(
        "template.html",
        name=run.name,
        phase=str(run.phase),
        is_bad=run.phase in _BAD,
        is_over=run.phase.is_final,
        message=run.message,
        submitted=texts.moment(run.submitted_at),
        started=texts.moment(run.started_at) if run.started_at is not None else None,
        tiles=_tiles(measured),
        why=whys.why(recording, measured.explanation) if measured.explanation else None,
        plots=drawn,
        missing=missing,
        probed=elasticities.picture(recording.probes),
        notes=measured.notes,
        headers=[(header, header in _LEFT) for header, _ in _columns(rows)],
        rows=[_cells(row, rows) for row in rows[:MAX_ROWS]],
        more_rows=[_cells(row, rows) for row in rows[MAX_ROWS:]],
        logs=measured.logs,
        seen=scripts.seen(run.spec, recording.replicas, recording.events),
        changed=scripts.changed(run.spec, recording.events),
        events=_events(events, run.started_at)[:MAX_EVENTS],
        events_left_out=max(0, len(events) - MAX_EVENTS),
        facts=recording.facts,
        source=run.source,
        directory=run.directory,
        command=_command(measured),
        made=texts.moment(recording.at),
    )


def _plots(found: evidence.ReportEvidence) -> tuple[list[ReportFigure], list[str]]:
    """Return the plots, and the names of missing plots, whose values were not measured."""
    recording, snapshot = found.recording, found.snapshot
    measured = plots.GriddedRun.of(recording, snapshot)
    end = recording.run.finished_at if recording.run.finished_at is not None else recording.at
    figures: list[tuple[str, ReportFigure | None]] = [
        ("waiting for input", loads.waits(snapshot)),
        ("CPU", plots.cpu(measured) if measured else None),
        ("memory", plots.memory(measured) if measured else None),
        ("network", plots.network(measured) if measured else None),
        ("quality (no evaluation)", loads.quality(recording.evaluations, found.best_auc)),
    ]
    if snapshot.servers is not None and len(snapshot.servers.replicas) > 1:
        figures.insert(0, ("the load of the PS", loads.imbalance(snapshot.servers)))
    throughput = plots.throughput(measured) if measured else None
    figures.insert(0, ("throughput", throughput))
    # Two narrow plots make a row; plots in the same row should have about the same height.
    figures.insert(
        3 if throughput and throughput.wide else 1, ("loss", plots.loss(measured) if measured else None)
    )
    is_even = sum(plot is not None and not plot.wide for _, plot in figures) % 2 == 0
    figures.append(("starts and exits", timelines.timeline(recording, end, wide=is_even)))
    drawn = [plot for _, plot in figures if plot is not None]
    return drawn, [name for name, plot in figures if plot is None]


def _tiles(measured: evidence.ReportEvidence) -> list[Tile]:
    snapshot, best, phase = measured.snapshot, measured.best_auc, measured.recording.run.phase
    outcome = Tile(
        name="Outcome",
        value=str(phase),
        detail=f"{snapshot.restarts} restarts" if snapshot.restarts != 1 else "1 restart",
        is_bad=phase in _BAD,
    )
    tiles = [
        outcome,
        Tile(
            name="Duration",
            value=texts.duration(snapshot.elapsed_seconds),
            detail=_training_time(snapshot),
        ),
        Tile(name="Examples/s", value=texts.number(snapshot.examples_per_second), detail=_counts(snapshot)),
        Tile(
            name="AUC",
            value=texts.quality(measured.auc),
            detail=f"best possible {texts.quality(best)}" if best is not None else "",
        ),
    ]
    servers = snapshot.servers
    return [*tiles, _imbalance_tile(servers)] if servers and len(servers.replicas) > 1 else tiles


def _training_time(snapshot: Snapshot) -> str:
    if snapshot.interval is None or snapshot.examples is None:
        return ""
    return f"{texts.duration(snapshot.interval.seconds)} of it training"


def _counts(snapshot: Snapshot) -> str:
    parts = []
    if snapshot.step is not None:
        parts.append(f"{texts.whole(snapshot.step)} steps")
    if snapshot.examples is not None:
        parts.append(f"{texts.whole(snapshot.examples)} examples")
    return ", ".join(parts)


def _imbalance_tile(servers: RoleSnapshot) -> Tile:
    parts = [f"{one.resource} {texts.ratio(one.max_over_mean)}" for one in servers.imbalances]
    return Tile(
        name="PS load, max/mean",
        value=texts.ratio(servers.max_over_mean),
        detail=", ".join(parts) + (f"; {servers.hot} is hot" if servers.hot else ""),
        is_bad=servers.hot is not None,
    )


def _sorted(replicas: Sequence[ReplicaSnapshot]) -> list[ReplicaSnapshot]:
    """Return the replicas in order of their ids if they are few, else the busiest first."""
    if len(replicas) <= MAX_ROWS:
        return sorted(replicas, key=lambda r: r.replica)
    return sorted(replicas, key=lambda r: (-(r.cpu_cores or 0.0), r.replica))


_Column = tuple[str, Callable[[ReplicaSnapshot], str | bool]]
#: Columns of text; the others are numbers and right-aligned.
_LEFT = ("Replica", "Host", "State", "Last exit")


def _columns(rows: Sequence[ReplicaSnapshot]) -> list[_Column]:
    """Return the columns of the table, without those that are empty for all replicas."""

    def limit(used: str, value: str | None) -> str:
        return used if value is None else f"{used} of {value}"

    columns: list[_Column] = [
        ("Replica", lambda r: str(r.replica)),
        ("Host", lambda r: r.row.host or ""),
        ("State", lambda r: str(r.row.phase)),
        ("Last exit", _exit),
        ("Restarts", lambda r: str(r.row.restarts) if r.row.restarts else ""),
        (
            "CPU cores, mean",
            lambda r: (
                r.cpu_cores is not None
                and limit(
                    texts.cores(r.cpu_cores),
                    None if r.cpu_limit_cores is None else f"{r.cpu_limit_cores:g}",
                )
            ),
        ),
        ("CPU, highest", lambda r: r.cpu_cores_max is not None and texts.cores(r.cpu_cores_max)),
        ("Throttled", lambda r: r.throttled_share is not None and texts.share(r.throttled_share)),
        (
            "Memory, highest",
            lambda r: (
                r.memory_bytes is not None
                and limit(
                    quantities.format_bytes(r.memory_bytes),
                    None if r.memory_limit_bytes is None else quantities.format_bytes(r.memory_limit_bytes),
                )
            ),
        ),
        (
            "Received",
            lambda r: (
                r.received_bytes_per_second is not None and texts.rate_of_bytes(r.received_bytes_per_second)
            ),
        ),
        (
            "Sent",
            lambda r: r.sent_bytes_per_second is not None and texts.rate_of_bytes(r.sent_bytes_per_second),
        ),
        ("Switches/s", lambda r: r.switches_per_second is not None and texts.number(r.switches_per_second)),
        ("Examples/s", lambda r: r.examples_per_second is not None and texts.number(r.examples_per_second)),
        ("Input wait", lambda r: r.input_wait_share is not None and texts.share(r.input_wait_share)),
        ("All-reduce", lambda r: r.all_reduce_share is not None and texts.share(r.all_reduce_share)),
    ]
    return [(header, value) for header, value in columns if any(value(row) for row in rows)]


def _exit(replica: ReplicaSnapshot) -> str:
    """Return why a replica ended, if it failed or was restarted; else an empty text."""
    row = replica.row
    if row.exit is None or (row.phase is not ReplicaPhase.FAILED and not row.restarts):
        return ""
    return texts.shortened(str(row.exit), 300)


def _cells(row: ReplicaSnapshot, rows: Sequence[ReplicaSnapshot]) -> list[str]:
    return [str(value(row) or "-") for _, value in _columns(rows)]


def _events(events: Sequence[JobEvent], start: float | None) -> list[tuple[str, str, str, str]]:
    """Return the cells of each event: its time, replica, kind and message."""
    begin = start if start is not None else (events[0].at if events else 0.0)
    return [
        (
            _since(event.at - begin),
            str(event.replica or "job"),
            event.kind + (f" (attempt {event.attempt})" if (event.attempt or 0) > 1 else ""),
            texts.shortened(event.message, 500),
        )
        for event in events
    ]


def _since(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{quantities.format_seconds(abs(seconds))}"


def _command(found: evidence.ReportEvidence) -> str:
    parts = ["paceline", "report", found.recording.run.name, "-o", "report.html"]
    if found.best_auc is not None:
        parts += ["--best-auc", f"{found.best_auc:.6g}"]
    return shlex.join(parts)
