"""Step and evaluation reports, appended as JSON lines to `PACELINE_REPORT_FILE` for the agent to pass on.

Reports never disturb training: without the file nothing is written, and a file that cannot be written is
logged once.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from paceline.training.input.input_costs import Cost

_log = logging.getLogger(__name__)


class ReportWriter:
    """Appends reports to a file.

    Each line is one write, so the lines of several processes do not mix.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> ReportWriter:
        """Return a writer to the file that the agent has named, or to none."""
        return cls((os.environ if environment is None else environment).get("PACELINE_REPORT_FILE") or None)

    def append(self, report: Mapping[str, Any]) -> None:
        """Add the time to a report and append it as one line."""
        if self._path is None:
            return
        line = json.dumps({"at": time.time(), **report}) + "\n"
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)
        except OSError as error:
            _log.warning("reports are switched off: %s", error)
            self._path = None


class StepMeter:
    """Adds up the steps of one trainer and reports them about once a second."""

    def __init__(self, reports: ReportWriter, total_steps: int, every_seconds: float = 1.0) -> None:
        self._reports = reports
        self._total_steps = total_steps
        self._every_seconds = every_seconds
        self.restart(Cost())

    def restart(self, input_cost: Cost) -> None:
        """Begin an interval now; `input_cost` is the cost of the input so far."""
        self._since = time.monotonic()
        self._cost_before = input_cost
        self._steps = self._examples = self._last_step = 0
        self._loss = self._waited_seconds = 0.0
        self._dropped = 0

    def add(
        self,
        step: int,
        steps: int,
        examples: int,
        loss: float,
        input_cost: Cost,
        *,
        waited_seconds: float = 0.0,
        dropped: bool = False,
    ) -> None:
        """Count steps and report when a second is over.

        `step` is the global step after these `steps` steps, `loss` their mean loss. `waited_seconds` is how
        long they waited for other trainers. `dropped` says that their gradient came too late.
        """
        self._steps += steps
        self._waited_seconds += waited_seconds
        self._dropped += dropped
        self._examples += examples
        self._loss += loss * steps
        self._last_step = step
        if time.monotonic() - self._since >= self._every_seconds:
            self.flush(input_cost)

    def flush(self, input_cost: Cost) -> None:
        """Report what was counted since the last report, if anything."""
        if self._steps:
            self._reports.append(
                {
                    "type": "step",
                    "interval_seconds": time.monotonic() - self._since,
                    "step": self._last_step,
                    "steps": self._steps,
                    "examples": self._examples,
                    "loss": self._loss / self._steps,
                    "gradients_dropped": self._dropped,
                    "trainer_wait_seconds": self._waited_seconds,
                    "input_wait_seconds": input_cost.wait - self._cost_before.wait,
                    "input_cpu_seconds": input_cost.cpu - self._cost_before.cpu,
                    "total_steps": self._total_steps,
                }
            )
        self.restart(input_cost)
