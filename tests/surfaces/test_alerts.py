"""Lines about findings of a job that is followed: when they come, how they read; they hold up nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

import pytest
from support import measured_runs
from support.filled_homes import fill

from paceline.errors import StoreError
from paceline.model.explanations.causes import Cause
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.runs import JobEvent, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local.state_dirs import Home
from paceline.services.observing import diagnosis_runs
from paceline.services.observing.finding_debounce import FindingChange
from paceline.surfaces.cli import alerts, following
from paceline.surfaces.cli.sessions import CliSession

if TYPE_CHECKING:
    from paceline.services.life_cycles import LifeCycle

CAUSE = Cause(
    name="giant-variable", what="The variable\nids makes ps-0 hot.", severity=Severity.WARNING,
    subjects=("ids", "ps-0"),
)  # fmt: skip


@pytest.fixture
def session(home: Home, monkeypatch: pytest.MonkeyPatch) -> CliSession:
    monkeypatch.setattr(alerts, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(diagnosis_runs, "pause_seconds", lambda took, *, confirms: 0.02)
    return CliSession(home_option=str(home.path))


def awaited(lines: Callable[[], list[str]], seconds: float = 240.0) -> list[str]:
    deadline = time.monotonic() + seconds
    while not (found := lines()):
        assert time.monotonic() < deadline, "nothing was told"
        time.sleep(0.02)
    return found


def test_a_line_says_when_what_and_where_to_look() -> None:
    appeared, over = (FindingChange(cause=CAUSE, is_over=is_over) for is_over in (False, True))
    assert alerts.line(appeared, 1.8e9, "paceline why clicks") == (
        "08:00:00 PS001 warning: The variable ids makes ps-0 hot. (paceline why clicks)"
    )
    assert alerts.line(over, 1.8e9, "paceline why clicks") == "08:00:00 PS001 is over: ids, ps-0"
    silent = dataclasses.replace(CAUSE, subjects=())
    assert alerts.line(FindingChange(cause=silent, is_over=True), 1.8e9, "").endswith("PS001 is over")


def test_a_finding_is_told_once(home: Home, session: CliSession, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home, "clicks", phase=JobPhase.RUNNING)
    looked = threading.Semaphore(0)
    original = diagnosis_runs.Looker.look

    def counted(self: diagnosis_runs.Looker) -> diagnosis_runs.DiagnosisRun:
        looked.release()
        return original(self)

    monkeypatch.setattr(diagnosis_runs.Looker, "look", counted)
    with alerts.watching(session, "clicks") as lines:
        (line,) = awaited(lines)
        for _ in range(4):
            assert looked.acquire(timeout=240)
        assert lines() == []
    assert "LIFE101 error: No supervisor watches it" in line
    assert line.endswith(f"(paceline --home {home.path} why clicks)")


def test_errors_and_slow_looks_hold_up_nothing(
    home: Home, session: CliSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home, "clicks", phase=JobPhase.RUNNING)
    calls = []
    original = diagnosis_runs.Looker.look

    def broken(self: diagnosis_runs.Looker) -> diagnosis_runs.DiagnosisRun:
        calls.append(time.monotonic())
        if len(calls) < 3:
            raise StoreError("the disk is gone")
        return original(self)

    monkeypatch.setattr(diagnosis_runs.Looker, "look", broken)
    with alerts.watching(session, "clicks") as lines:
        assert "LIFE101" in awaited(lines)[0]
    release = threading.Event()
    monkeypatch.setattr(diagnosis_runs.Looker, "look", lambda self: release.wait())
    monkeypatch.setattr(alerts, "END_SECONDS", 0.05)
    monkeypatch.setattr(alerts, "_lines", lambda *_: [])
    # Were the look waited for, this would never end.
    with alerts.watching(session, "clicks") as lines:
        assert lines() == []
    release.set()


def test_who_is_quiet_looks_for_nothing(
    home: Home, session: CliSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis_runs.Looker, "look", lambda self: pytest.fail("looked"))
    with alerts.watching(dataclasses.replace(session, quiet=True), "clicks") as lines:
        assert lines() == []


class Ending:
    """Stands in for the jobs of a home: a job that runs when it is looked at first, and has ended then."""

    POLL_SECONDS = 0.0

    def __init__(self) -> None:
        self.phases = iter((JobPhase.RUNNING, JobPhase.SUCCEEDED))

    def get(self, name: str) -> Run:
        return measured_runs.run(name=name, phase=next(self.phases))

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        return []

    def is_lost(self, run: Run) -> bool:
        return False


def test_lines_go_where_other_messages_go(
    session: CliSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextlib.contextmanager
    def watching(session: CliSession, name: str) -> Iterator[Callable[[], list[str]]]:
        yield lambda: ["08:00:00 PS001 is over"]

    monkeypatch.setattr(alerts, "watching", watching)
    jobs = cast("LifeCycle", Ending())
    monkeypatch.setattr(following.Follower, "_tell_line", lambda self, run: None)
    assert following.Follower(session, jobs, "clicks").follow().phase is JobPhase.SUCCEEDED
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "08:00:00 PS001 is over\n" * 2)


def test_what_happens_is_told_and_facts_of_scripts_are_not(
    session: CliSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Telling(Ending):
        def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
            said = [("fact", "device_filters: no"), ("instrumentation", "TensorFlow 2.21.0")]
            return [
                (id, JobEvent(at=1e9, kind=kind, message=text)) for id, (kind, text) in enumerate(said, 1)
            ]

    monkeypatch.setattr(alerts, "watching", lambda session, name: contextlib.nullcontext(lambda: []))
    monkeypatch.setattr(following.Follower, "_tell_line", lambda self, run: None)
    following.Follower(session, cast("LifeCycle", Telling()), "clicks").follow()
    told = capsys.readouterr().err
    assert "TensorFlow 2.21.0" in told
    assert "device_filters" not in told
