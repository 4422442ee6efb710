"""What is seen while trials run."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import pytest

from paceline.model.studies.studies import TrialOutcome
from paceline.model.studies.tunings import Objective, Trial, Tuning
from paceline.services.studying.trials import TrialActivity
from paceline.surfaces.cli import alerts, searching, sessions
from paceline.surfaces.cli.searching import Display

NEW = Tuning(name="x-trial", job="x", objective=Objective(), most_trials=3, source="", base="/")
FIRST = Trial(number=0, run="x-trial-0", source="")
SPEED = TrialOutcome(examples_per_second=(1200.0, 1200.0))
RUNS = dataclasses.replace(NEW, trials=(FIRST,))
DONE = dataclasses.replace(NEW, trials=(dataclasses.replace(FIRST, outcome=SPEED),))


class Lines(sessions.CliSession):
    """A session whose lines are kept, and can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.changed = threading.Condition()

    def say(self, text: str) -> None:
        with self.changed:
            self.lines.append(text)
            self.changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.lines) >= count, timeout=240)


@pytest.fixture
def causes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is noticed of the job while it runs; empty unless a test puts it there."""
    noticed: list[str] = []

    class Watching:
        def __init__(self, *_: Any) -> None:
            pass

        def __enter__(self) -> Callable[[], list[str]]:
            return lambda: [noticed.pop()] if noticed else []

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(alerts, "watching", Watching)
    monkeypatch.setattr(alerts, "lines", lambda *_: ["OPT001 at the end"])
    return noticed


def display(session: Lines, events: list[str]) -> Display:
    return Display(
        session,
        lambda run: pytest.fail("is not asked") if events is None else events.append(f"explain {run}"),
        pairs=1,
        noticed=lambda: events.append("noticed"),
        measured=lambda: events.append("measured"),
    )


def test_a_cause_is_said_while_the_job_as_it_came_runs(causes: list[str]) -> None:
    session, events = Lines(), list[str]()
    with display(session, events).shown() as shown:
        shown.tell(RUNS, TrialActivity(what="starts"))
        assert session.lines == []
        causes.append("OPT001 while it runs")
        shown.tell(RUNS, TrialActivity(what="is measured"))
        assert session.lines == ["OPT001 while it runs"]
        assert events == ["noticed"]
        shown.tell(DONE, None)
    assert session.lines[1:] == ["trial 0 of 2: the job as it came: 1,200 examples/s"]
    assert events == ["noticed", "measured"]


def test_what_is_said_of_the_start_is_not_the_first_cause(causes: list[str]) -> None:
    session, events = Lines(), list[str]()
    with display(session, events).shown() as shown:
        causes.append("PRG002 while it starts")
        shown.tell(RUNS, TrialActivity(what="starts"))
        assert session.lines == ["PRG002 while it starts"]
        shown.tell(RUNS, TrialActivity(what="is measured"))
        assert events == []
        shown.tell(DONE, None)
    assert session.lines[-1] == "OPT001 at the end"
    assert events == ["explain x-trial-0", "noticed", "measured"]


def test_a_cause_is_said_at_the_end_of_the_first_run_at_the_latest(causes: list[str]) -> None:
    session, events = Lines(), list[str]()
    with display(session, events).shown() as shown:
        shown.tell(RUNS, TrialActivity(what="is measured"))
        shown.tell(DONE, None)
    assert session.lines[-1] == "OPT001 at the end"
    assert events == ["explain x-trial-0", "noticed", "measured"]


def test_a_job_that_does_not_train_has_no_cause_here(causes: list[str]) -> None:
    session, events = Lines(), list[str]()
    failed = dataclasses.replace(FIRST, outcome=TrialOutcome(failure="it ended"))
    with display(session, events).shown() as shown:
        shown.tell(RUNS, TrialActivity(what="starts"))
        shown.tell(dataclasses.replace(NEW, trials=(failed,)), None)
    assert session.lines == ["trial 0 of 2: the job as it came: 0 examples/s it ended"]
    assert events == []


def test_what_goes_on_is_said_again_and_again(monkeypatch: pytest.MonkeyPatch, causes: list[str]) -> None:
    monkeypatch.setattr(searching, "LINE_SECONDS", 0.02)
    session = Lines()
    with display(session, []).shown() as shown:
        shown.tell(RUNS, TrialActivity(what="is measured", detail="900 examples/s", seconds_left=3.0))
        session.wait_for(3)
    assert set(session.lines) == {"trial 0 of 2: the job as it came: is measured, 900 examples/s, 3 s to go"}


def test_the_time_that_is_left_is_said_once_it_can_be_known(
    monkeypatch: pytest.MonkeyPatch, causes: list[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(searching, "time", type("Clock", (), {"monotonic": lambda: now[0]}))
    session = Lines()
    shown = display(session, [])
    shown.tell(RUNS, TrialActivity(what="starts"))
    now[0] = 30.0
    shown.tell(DONE, None)
    second = Trial(number=1, run="x-trial-1", source="", base=0)
    now[0] = 40.0
    shown.tell(dataclasses.replace(DONE, trials=(*DONE.trials, second)), TrialActivity(what="starts"))
    # Six more runs of 30 s each at most, of which the first has taken 10 s.
    assert shown._line.endswith("starts; 2m50s left at most")
