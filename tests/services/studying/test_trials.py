"""What is measured of a trial."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.studying import trials
from paceline.services.studying.trials import TrialTimes

ONE, TWO = ReplicaId(Role.WORKER, 0), ReplicaId(Role.WORKER, 1)


class Late:
    """Jobs of which what was said is stored two looks later.

    Args:
        silent: says nothing after the beginning.
    """

    DELAY_SECONDS = 0.0

    def __init__(self, silent: ReplicaId | None = None) -> None:
        self._silent, self.looks = silent, 0

    def clock(self) -> float:
        return 100.0

    def get(self, name: str) -> Any:
        return SimpleNamespace(phase=JobPhase.RUNNING)

    def recording(self, name: str, since: float) -> Any:
        self.looks += 1
        known = 99.0 if self.looks < 3 else 101.0
        reports = [
            StepReport(replica=each, attempt=1, at=98.0 if each == self._silent else known, step=60, steps=60)
            for each in (ONE, TWO)
        ]
        return SimpleNamespace(steps=reports)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(trials, "_STORED_SECONDS", 0.2)


TIMES = TrialTimes(start_seconds=1.0, settle_seconds=0.0, window_seconds=1.5)
RUN: Any = SimpleNamespace(name="clicks")


def test_what_is_on_its_way_is_waited_for() -> None:
    jobs: Any = Late()
    assert trials.measured(jobs, RUN, 98.0, TIMES) == 100.0
    assert jobs.looks == 3


def test_who_says_nothing_any_more_is_not_waited_for_long() -> None:
    jobs: Any = Late(silent=TWO)
    assert trials.measured(jobs, RUN, 97.0, TIMES) == 100.0
    assert jobs.looks > 3
