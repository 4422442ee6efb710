"""When a trainer traces: at regular times, and on request.

All trainers trace at the same clock times, so their traces of one moment can be compared. A request is the
name of a trace in a file of the run's folder; every trainer that has not answered yet takes that trace. Both
work wherever the trainers see that folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from paceline.model.traces import traced_steps
from paceline.training import clusters, settings

POLL_SECONDS = 0.5
WARM_UP_STEPS = 20
"""The first steps of a session are not like the others."""


def read(environment: Mapping[str, str]) -> tuple[clusters.ClusterTask, settings.TraceSettings, str | None]:
    """Return the replica of a process, its trace settings, and the folder of the run, if it has one.

    Raises:
        TrainingError: TF_CONFIG or the settings are wrong.
    """
    run_dir = environment.get("PACELINE_RUN_DIR") or None
    return clusters.read(environment), settings.read(environment).trace, run_dir


class TraceSchedule:
    """Says when to trace; cheap to ask at every step.

    `folder` holds all traces of the run; `file` is the name of this trainer's file.
    """

    def __init__(self, chosen: settings.TraceSettings, folder: Path, file: str) -> None:
        self._every_seconds = chosen.every_seconds
        self._folder = folder
        self._file = file
        self._looked_at = 0.0
        self._taken = self._answered = ""

    def due(self, now: float, steps: int) -> str | None:
        """Return the name of the trace to take now, once for each trace; None for none.

        `now` is in Unix seconds, `steps` is the number of steps so far.
        """
        if abs(now - self._looked_at) < POLL_SECONDS:
            return None
        self._looked_at = now
        asked = self._asked()
        if asked is not None:
            return asked
        if self._every_seconds == 0 or steps < WARM_UP_STEPS:
            return None
        name = traced_steps.name_at(now // self._every_seconds * self._every_seconds)
        if name == self._taken:
            return None
        self._taken = name
        return None if self._is_answered(name) else name

    def _asked(self) -> str | None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            name = next(iter((self._folder / traced_steps.REQUEST).read_text().split()), "")
            if traced_steps.is_name(name) and name != self._answered and not self._is_answered(name):
                self._answered = name
                return name
        return None

    def _is_answered(self, name: str) -> bool:
        return (self._folder / name / self._file).exists()
