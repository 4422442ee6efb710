"""A server over a home with something to show, and a browser that looks at it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import browsers, filled_homes, searches, trained_runs
from support.served import Server, serving

from paceline.model.jobs.runs import JobEvent
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import state_dirs
from paceline.stores import open_store, recordings

RECORDED = Path(__file__).parents[4] / "benchmarks" / "diagnosis" / "recordings"
LINES = 300


@dataclasses.dataclass(frozen=True)
class Shown:
    """A server, and what there is to see.

    Attributes:
        job: one that was measured, and has a cause with a change.
        model: one with a dozen runs.
    """

    server: Server
    job: str
    model: str

    @property
    def link(self) -> str:
        """The link that lets a browser in."""
        return f"{self.server.url}/enter?token={self.server.token}"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """A server over a home with jobs of all kinds."""
    folder = tmp_path_factory.mktemp("shown")
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(folder / "home")})
    with open_store(home.store_url) as store:
        found = recordings.read(RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet")
        job = filled_homes.keep(store, found, folder)
        logs = folder / "logs"
        logs.mkdir()
        for replica in ("ps-0", "worker-0", "worker-1"):
            (logs / f"{replica}.1.log").write_text(
                "".join(f"step {10 * each}: loss 0.{4 * each:03d}\n" for each in range(LINES))
            )
        store.append_events(
            job,
            [JobEvent(at=found.run.submitted_at + 5, kind="replica-exited", message="worker-1: exit code 1")],
        )
        store.save_study(searches.ENDED, at=found.run.submitted_at)
        store.save_study(searches.COMPARED, at=found.run.submitted_at + 1)
    filled_homes.fill(home, "census", loads=(0.5, 0.9), steps=3)
    filled_homes.fill(home, "gone", phase=JobPhase.FAILED, message="worker-0: exit code 1")
    filled_homes.fill(home, "lost", phase=JobPhase.RUNNING, loads=(0.9, 0.9), steps=3)
    filled_homes.fill(home, "x" * 60)
    model = trained_runs.fill(home)
    with serving(home) as server:
        yield Shown(server, job, model)


@pytest.fixture(scope="module")
def browser() -> Iterator[browsers.playwright.Browser]:
    """A browser for the tests of a module."""
    with browsers.launched() as launched:
        yield launched
