"""No table is wider than the terminal, whatever is in it."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType
from support.filled_homes import spec_of

from paceline.model.explanations.checkups import Check, CheckState
from paceline.model.explanations.findings import Finding, Severity, TextPosition
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run, RunSummary
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.measures import snapshots
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.surfaces.views import checkups, findings, job_pages, job_tables, summaries, tops

LONG = "n" * 52
WORDS = "worker-199 任务失败 with a long story\tabout \x1b[31m nothing " * 5
WIDTHS = (80, 60, 200)


def text(renderable: RenderableType, width: int = 500) -> str:
    """Return what a renderable prints on a terminal that never has to wrap."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable, soft_wrap=True)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def widest(renderable: RenderableType) -> int:
    return max(cell_len(line) for line in text(renderable).splitlines())


def hostile_run(phase: JobPhase = JobPhase.FAILED) -> tuple[Run, list[ReplicaRow]]:
    spec = dataclasses.replace(spec_of(LONG, ps=20, workers=180), command=("python", WORDS, "x" * 300))
    run = Run(
        name=LONG, spec=spec, source="", engine="local", directory="/short", submitted_at=1e9, phase=phase,
        message=WORDS, started_at=1e9, finished_at=1e9 + 9e7 if phase.is_final else None,
        notes=(WORDS, "x" * 300),
    )  # fmt: skip
    rows = [
        ReplicaRow(
            replica=replica, phase=ReplicaPhase.BACKING_OFF, attempt=123456, restarts=123455,
            memory_bytes=1 << 50, host="h" * 60, address="2001:db8:0:0:0:0:0:1234:31999", pid=4194304,
            cores=tuple(range(0, 400, 2)),
            exit=ExitReason(kind=ExitKind.LAUNCH_FAILED, message=WORDS),
        )
        for replica in spec.replicas()
    ]  # fmt: skip
    return run, rows


def snapshot(phase: JobPhase, *, measured: bool) -> snapshots.Snapshot:
    run, rows = hostile_run(phase)
    rows = [dataclasses.replace(row, phase=ReplicaPhase.RUNNING) for row in rows]
    samples = [
        Sample(
            replica=row.replica, attempt=row.attempt, at=1e9 + 5, interval_seconds=1.0,
            cpu_cores=123.456 * (row.replica.index == 0), cpu_limit_cores=127.999, throttled_seconds=98.7,
            memory_bytes=(1 << 50) - 1, memory_limit_bytes=(1 << 50) + 1, network_received_bytes=1 << 45,
            network_sent_bytes=1 << 45, voluntary_switches=10**9, involuntary_switches=10**9, threads=99999,
            gpu_utilization=0.999, gpu_memory_bytes=(1 << 40) - 1,
        )
        for row in rows
    ]  # fmt: skip
    steps = [
        StepReport(
            replica=ReplicaId(Role.WORKER, index), attempt=123456, at=1e9 + 5, interval_seconds=1.0,
            step=10**15, steps=10**9, examples=10**12, loss=-1.23456e-30, input_wait_seconds=1.0,
            total_steps=10**16, all_reduce_seconds=0.999,
        )
        for index in range(180)
    ]  # fmt: skip
    return snapshots.joined(
        run, rows, samples=samples if measured else (), steps=steps if measured else (),
        latest_steps=steps if measured else (), at=1e9 + 5,
    )  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("lost", [True, False])
def test_list(width: int, lost: bool) -> None:
    summaries_ = [
        RunSummary(
            name=LONG + ("-1234" if width == 80 else ""), phase=JobPhase.RESTARTING, message=WORDS,
            engine="kubernetes", directory="/" + "d" * 200, submitted_at=0, started_at=None if lost else 0.0,
            finished_at=None, ttl_after_finished_seconds=None, labels={LONG: LONG},
            replicas="ps 1000/1000, worker 1000/1000, chief 1/1, evaluator 1/1",
        )
    ] * 3  # fmt: skip
    table = job_tables.job_list(summaries_, lost={LONG} if lost else (), now=4e9, width=width)
    assert widest(table) <= width
    if width >= 80:
        assert LONG in text(table)
    wide = job_tables.job_list(summaries_, lost=(), now=4e9, width=width, wide=True)
    assert "d" * 200 in text(wide)


@pytest.mark.parametrize("width", WIDTHS)
def test_replicas_and_page(width: int) -> None:
    run, rows = hostile_run()
    assert widest(job_tables.replica_table(rows, width=width)) <= width
    empty = [
        ReplicaRow(replica=row.replica, phase=ReplicaPhase.PENDING, attempt=0, restarts=0) for row in rows
    ]
    assert widest(job_tables.replica_table(empty, width=width)) <= width
    event = JobEvent(at=1e9, kind="replica-exited", message=WORDS, replica=rows[-1].replica, attempt=1)
    page = job_pages.page(run, rows, [event] * 30, lost=True, now=4e9, width=width)
    lines = text(page).splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert "\x1b" not in text(page)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("phase", [JobPhase.RUNNING, JobPhase.FAILED])
@pytest.mark.parametrize("measured", [True, False])
def test_top(width: int, phase: JobPhase, measured: bool) -> None:
    frame = tops.frame(snapshot(phase, measured=measured), width=width)
    assert widest(frame) <= width
    rows = [line for line in text(frame).splitlines() if line.startswith(("worker-", "ps-"))]
    assert sum(" running " in row for row in rows) == 200
    assert ("not measured" in text(frame)) is not measured
    assert widest(summaries.summary(snapshot(phase, measured=measured), width=width)) <= width


def test_top_fits_the_height_too() -> None:
    for height in (24, 30, 50, 10):
        lines = text(
            tops.frame(snapshot(JobPhase.RUNNING, measured=True), width=80, height=height)
        ).splitlines()
        assert len(lines) <= max(height, 16)
        assert "less busy" in " ".join(lines)


def test_top_without_width_shows_every_column() -> None:
    frame = text(tops.frame(snapshot(JobPhase.RUNNING, measured=True), width=None))
    for header in ("LOSS", "THREADS", "SW/S", "RESTARTS", "GPU MEM", "REDUCE"):
        assert header in frame
    assert "no room" not in frame


def test_findings_and_checks() -> None:
    finding = Finding(
        code="JOB101", severity=Severity.ERROR, path="spec.roles.ps.cpu", message=WORDS, fix=WORDS,
        position=TextPosition(file="job.yaml", line=1, column=1),
    )  # fmt: skip
    assert widest(findings.findings([finding] * 3, width=80)) <= 80
    check = Check(name="Store", state=CheckState.FAILED, detail="x" * 300, advice=WORDS)
    assert widest(checkups.line(check, width=80)) <= 80


def test_job_that_asks_for_nothing() -> None:
    spec = JobSpec(name="x")
    run = Run(name="x", spec=spec, source="", engine="local", directory="/d", submitted_at=0.0)
    assert "x  pending" in text(job_pages.page(run, [], [], lost=False, now=1.0, width=80))
    frame = tops.frame(snapshots.joined(run, [], at=1.0), width=80, height=24)
    assert "no steps reported" in text(frame)
