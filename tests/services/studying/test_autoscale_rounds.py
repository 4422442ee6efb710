"""Rounds of autoscaling in which a change is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from paceline.control.resizings import Resize
from paceline.errors import Conflict, EngineError
from paceline.model.jobs.runs import JobEvent
from paceline.model.roles import ReplicaId
from paceline.probing.balances import Balance, Move
from paceline.services.studying import autoscales
from paceline.services.studying.autoscales import SCALED, Autoscaler

PS0, PS1, W0 = (ReplicaId.parse(name) for name in ("ps-0", "ps-1", "worker-0"))
MOVES = (
    Move(replica=PS1, before=0.5, after=0.4, why="it rests"),
    Move(replica=W0, before=0.5, after=0.3, why="it rests"),
    Move(replica=PS0, before=0.5, after=0.8, why="it binds"),
)


@dataclasses.dataclass
class Resized:
    """A job whose replicas are resized, some with a refusal.

    Attributes:
        refused: the number of the resize, from 0, from which on all are refused, and that until which.
    """

    refused: range
    cores: dict[str, float] = dataclasses.field(
        default_factory=lambda: {str(each): 0.5 for each in (PS0, PS1, W0)}
    )
    asked: int = 0
    noted: list[str] = dataclasses.field(default_factory=list)

    def clock(self) -> float:
        return 1.0

    def get(self, name: str) -> None:
        assert name == "clicks"

    def resize(self, name: str, resize: Resize) -> None:
        self.asked += 1
        if self.asked - 1 in self.refused:
            raise EngineError("no room on the node")
        assert resize.cpu_cores is not None
        self.cores[resize.target] = resize.cpu_cores

    def note(self, name: str, event: JobEvent) -> None:
        assert event.kind == SCALED
        self.noted.append(event.message)


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoscales, "decided", lambda *_: Balance(moves=MOVES, why="ps-0 binds"))
    monkeypatch.setattr(autoscales.probes.Prober, "probe", lambda *_: None)


def rounded(refused: range) -> Resized:
    """Return the job after a round of which changes are refused."""
    jobs: Any = Resized(refused)
    with pytest.raises(EngineError, match="no room on the node"):
        Autoscaler(jobs=jobs, name="clicks").round()
    assert isinstance(jobs, Resized)
    return jobs


def test_moves_before_a_refused_one_are_put_back() -> None:
    found = rounded(range(2, 3))
    assert found.cores == {"ps-0": 0.5, "ps-1": 0.5, "worker-0": 0.5}
    assert found.noted == ["nothing was changed: no room on the node"]


def test_what_cannot_be_put_back_is_said() -> None:
    found = rounded(range(2, 4))
    assert found.cores == {"ps-0": 0.5, "ps-1": 0.5, "worker-0": 0.3}
    assert found.noted == ["worker-0: 500m -> 300m CPU (it rests); no more was changed: no room on the node"]


def test_a_job_that_is_not_probed_has_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise Conflict("clicks is being probed already")

    monkeypatch.setattr(autoscales.probes.Prober, "probe", refused)
    jobs: Any = Resized(range(0))
    with pytest.raises(Conflict):
        Autoscaler(jobs=jobs, name="clicks").round()
    assert jobs.noted == []
