"""Obstacles for a job on this machine: no supervisor watches it, or its disk is full."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from paceline.engines.local.folders import RunFolder
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.jobs.obstacles import Obstacle, ObstacleKind
from paceline.model.jobs.runs import JobEvent, Run
from paceline.model.jobs.statuses import JobPhase

#: A disk with less free space counts as full: soon, checkpoints and logs cannot be written.
FULL_BYTES = 16 << 20


def unattended(run: Run, happened: Sequence[JobEvent]) -> tuple[Evidence, ...]:
    """Return the evidence that no supervisor watches a run."""
    lock = RunFolder.of(run).lock
    last = [Evidence(text=f"the last that it told: {each.kind}", at=each.at) for each in happened[-1:]]
    return (
        Evidence(text=f"no process holds {lock}; the supervisor's last words are in supervisor.log there"),
        *last,
    )


def has_checkpoint(run: Run) -> bool | None:
    """Return whether a run's checkpoint folder holds anything; None: the folder cannot be read."""
    try:
        return any(True for _ in os.scandir(RunFolder.of(run).checkpoints))
    except OSError:
        return None


def full_disks(run: Run) -> list[Obstacle]:
    """Return an obstacle if the disk of a run has no room left for its logs, samples and checkpoints."""
    try:
        free = shutil.disk_usage(run.directory).free
    except OSError:  # The folder is gone.
        return []
    if run.phase is JobPhase.SUCCEEDED or free >= FULL_BYTES:
        return []
    message = f"{quantities.format_bytes(free)} are free at {run.directory}"
    return [Obstacle(kind=ObstacleKind.DISK_FULL, message=message)]
