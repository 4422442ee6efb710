"""Summaries of ended jobs."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.measures.snapshots import Snapshot
from paceline.surfaces.views import cells, job_tables, styles, tops


def summary(snapshot: Snapshot, *, width: int | None) -> RenderableType:
    """Return the summary of an ended job, with the reasons of failed replicas."""
    failed = [
        Text(f"{replica.replica}: {cells.clean(str(replica.row.exit))}", style=styles.of_phase("failed"))
        for replica in snapshot.replicas
        if replica.row.phase == "failed" and replica.row.exit is not None
    ]
    restarts = sum(replica.row.restarts for replica in snapshot.replicas)
    parts: list[RenderableType] = [tops.header(snapshot, width=width), *failed]
    if restarts:
        parts.append(Text(f"{restarts} restarts"))
    for role in snapshot.roles:
        parts.append(tops.title(role, width))
    parts.append(Text(f"files in {cells.clean(snapshot.run.directory)}"))
    return Group(*parts)


def one_line(snapshot: Snapshot) -> str:
    """Return how a job ended, on one line."""
    run = snapshot.run
    after = "" if snapshot.elapsed_seconds is None else f" after {cells.duration(snapshot.elapsed_seconds)}"
    return f"{run.name} {job_tables.shown_phase(run, lost=snapshot.lost)}{after}"
