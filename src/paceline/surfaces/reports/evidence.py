"""What a report is made from, gathered in one place before anything is drawn."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
from collections import deque

from paceline.engines.local import machines
from paceline.model import quantities
from paceline.model.runs import LOCAL, Run
from paceline.model.statuses import ExitKind, ReplicaPhase
from paceline.services import jobs, logs, summaries
from paceline.services.life_cycles import LifeCycle

LOG_LINES = 20
#: Logs of so many replicas are shown; more say the same again.
LOG_REPLICAS = 3
LOG_LINE_LENGTH = 400

_PACKAGES = ("paceline", "tensorflow", "numpy")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The last lines of what a replica that failed wrote."""

    replica: str
    attempt: int
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a report shows.

    Attributes:
        best_auc: the best that any model can reach on these data; None when nobody knows.
        facts: of the machine, each with its name.
        made_at: when the report was asked for (Unix seconds).
    """

    records: summaries.Records
    summary: summaries.Summary
    made_at: float
    best_auc: float | None = None
    logs: tuple[LogTail, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def gather(api: LifeCycle, name: str, *, best_auc: float | None = None) -> Evidence:
    """Return what there is to report about a run.

    Raises:
        NotFound: there is no such run.
        StoreError: the store cannot be read.
    """
    records = api.records(name)
    now = api.clock()
    return Evidence(
        records=records,
        summary=summaries.summarize(records, at=now),
        made_at=now,
        best_auc=best_auc,
        logs=log_tails(records),
        facts=facts() if records.run.engine == LOCAL else (("image", records.run.spec.image or ""),),
    )


def log_tails(records: summaries.Records) -> tuple[LogTail, ...]:
    """Return the last words of the replicas that failed by themselves, the first to fail first."""
    failed = [row for row in records.replicas if row.phase is ReplicaPhase.FAILED]
    failed = [row for row in failed if row.exit is None or row.exit.kind is not ExitKind.LAUNCH_FAILED]
    ended = {
        (event.replica, event.attempt): event.at for event in records.events if event.kind.endswith("exited")
    }
    failed.sort(key=lambda row: ended.get((row.replica, row.attempt), float("inf")))
    found = []
    for row in failed[:LOG_REPLICAS]:
        last = _last_lines(records.run, row.replica, row.attempt)
        if last:
            found.append(LogTail(replica=str(row.replica), attempt=row.attempt, lines=last))
    return tuple(found)


def _last_lines(run: Run, replica: object, attempt: int) -> tuple[str, ...]:
    try:
        lines = logs.lines(jobs.folder_of(run), wanted=lambda other: other == replica)
        texts = (line.text[:LOG_LINE_LENGTH] for line in lines if line.attempt == attempt)
        return tuple(deque(texts, maxlen=LOG_LINES))
    except OSError:
        return ()


def facts() -> tuple[tuple[str, str], ...]:
    """Return what there is to know about the machine that makes the report."""
    machine = machines.read()
    versions = []
    for package in _PACKAGES:
        try:
            versions.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return (
        ("cores", str(len(machine.cores))),
        ("memory", quantities.format_bytes(machine.memory_bytes)),
        ("processor", platform.machine()),
        ("system", f"{platform.system()} {platform.release()}"),
        ("Python", platform.python_version()),
        *versions,
    )
