"""Tables of jobs and of the replicas of one job."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.jobs.runs import ReplicaRow, Run, RunSummary
from paceline.surfaces.views import cells, styles, tables


def shown_phase(run: Run | RunSummary, *, lost: bool) -> str:
    """Return the phase that users see: ``lost`` if the job should run but no supervisor watches it."""
    return styles.LOST if lost else str(run.phase)


def job_list(
    runs: Sequence[RunSummary],
    *,
    lost: Collection[str],
    now: float,
    width: int | None,
    wide: bool = False,
    namespaces: bool = False,
) -> RenderableType:
    """Return the table of jobs.

    Args:
        runs: the jobs, in the order in which they are shown.
        lost: the names of jobs that no supervisor watches.
        now: the current time in Unix seconds, for ages.
        width: the width of the terminal; None means unlimited.
        wide: whether to show every column.
        namespaces: whether to show each job's namespace on the cluster.
    """
    phases = [shown_phase(run, lost=run.name in lost) for run in runs]
    Column = tables.Column
    columns = [
        Column(header="NAME", cells=[cells.clean(run.name) for run in runs]),
        Column(header="PHASE", cells=phases, styles=[styles.of_phase(phase) for phase in phases]),
        Column(header="REPLICAS", cells=[_replicas(run) for run in runs], shrink_to=12, drop=2),
        Column(header="RUNTIME", cells=[runtime(run, now) for run in runs], right=True, drop=1),
        Column(
            header="AGE", cells=[cells.duration(now - run.submitted_at) for run in runs], right=True, drop=1
        ),
    ]
    if namespaces:
        columns.insert(0, Column(header="NAMESPACE", cells=[run.namespace or "" for run in runs]))
    messages = [cells.clean(run.message) for run in runs]
    if any(messages):
        columns.append(Column(header="MESSAGE", cells=messages, shrink_to=16, drop=3))
    if wide:
        columns += [
            Column(header="SUBMITTED", cells=[cells.moment(run.submitted_at) for run in runs]),
            Column(header="FINISHED", cells=[cells.moment(run.finished_at) for run in runs]),
            Column(header="MODEL", cells=[cells.clean(run.model) for run in runs]),
            Column(header="LABELS", cells=[_labels(run) for run in runs]),
            Column(header="ENGINE", cells=[run.engine for run in runs]),
            Column(header="DIRECTORY", cells=[cells.clean(run.directory) for run in runs]),
        ]
    return tables.fit(columns, None if wide else width).text


def runtime(run: Run | RunSummary, now: float) -> str:
    """Return how long a job has been running, or ran in total."""
    if run.started_at is None:
        return cells.UNMEASURED
    return cells.duration((run.finished_at or now) - run.started_at)


def job(
    run: Run,
    replicas: Sequence[ReplicaRow],
    *,
    lost: bool,
    now: float,
    width: int | None,
    wide: bool = False,
) -> RenderableType:
    """Return one job: a line about it and the table of its replicas."""
    return Group(
        heading(run, lost=lost, now=now, width=width), Text(), replica_table(replicas, width=width, wide=wide)
    )


def heading(run: Run, *, lost: bool, now: float, width: int | None) -> Text:
    """Return the first lines of a page about one job."""
    phase = shown_phase(run, lost=lost)
    text = Text()
    text.append(cells.clean(run.name), style="bold")
    text.append("  ")
    text.append(phase, style=styles.of_phase(phase))
    if run.started_at is not None:
        word = "after" if run.finished_at is not None else "for"
        text.append(f"  {word} {runtime(run, now)}")
    text.append(f"  submitted {cells.duration(now - run.submitted_at)} ago")
    message = cells.clean(run.message)
    if width is not None:
        text.truncate(width, overflow="ellipsis")
        message = "\n".join(cells.wrapped(message, width))
    return text.append(f"\n{message}") if message else text


def replica_table(replicas: Sequence[ReplicaRow], *, width: int | None, wide: bool = False) -> Text:
    """Return the table of a job's replicas."""
    phases = [str(row.phase) for row in replicas]
    Column = tables.Column
    columns = [
        Column(
            header="REPLICA",
            cells=[str(row.replica) for row in replicas],
            styles=[styles.of_role(row.replica.role) for row in replicas],
        ),
        Column(header="PHASE", cells=phases, styles=[styles.of_phase(phase) for phase in phases]),
        Column(header="ATTEMPT", cells=[str(row.attempt or "-") for row in replicas], right=True, drop=2),
        Column(header="RESTARTS", cells=[str(row.restarts) for row in replicas], right=True, drop=1),
        Column(header="HOST", cells=[cells.clean(row.host or "-") for row in replicas], shrink_to=8, drop=3),
        Column(header="ADDRESS", cells=[row.address or "-" for row in replicas], shrink_to=16, drop=3),
        Column(
            header="LAST EXIT",
            cells=[cells.clean(str(row.exit)) if row.exit else "-" for row in replicas],
            shrink_to=14,
        ),
    ]
    if wide:
        columns += [
            Column(header="PID", cells=[str(row.pid or "-") for row in replicas], right=True),
            Column(header="CORES", cells=[core_list(row.cores) for row in replicas]),
            Column(
                header="MEMORY LIMIT",
                cells=[cells.compact_bytes(row.memory_bytes) for row in replicas],
                right=True,
            ),
        ]
    return tables.fit(columns, None if wide else width).text


def core_list(cores: Sequence[int]) -> str:
    """Return core numbers in the kernel's format, such as ``0-3,8``; ``any`` if there are none."""
    if not cores:
        return "any"
    ranges: list[list[int]] = []
    for core in sorted(cores):
        if ranges and core == ranges[-1][1] + 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)


def _replicas(run: RunSummary) -> str:
    """Return how many replicas of each role are running; for an ended job, how many there were."""
    return re.sub(r"\d+/(\d+)", r"\1", run.replicas) if run.phase.is_final else run.replicas


def _labels(run: RunSummary) -> str:
    return cells.clean(",".join(f"{key}={value}" for key, value in run.labels.items())) or "-"
