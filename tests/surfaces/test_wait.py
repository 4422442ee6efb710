"""What ``paceline wait --for`` waits for: phases, steps, findings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from click.testing import Result
from support import measured_runs
from support.filled_homes import fill

from paceline.errors import EngineError
from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.services.local import state_dirs
from paceline.services.local.jobs import Jobs
from paceline.services.observing import diagnosis_runs, wait_conditions
from paceline.surfaces.cli.verbs import run as run_verb
from paceline.surfaces.cli.wait_goals import GOAL, WaitGoal

if TYPE_CHECKING:
    from paceline.services.life_cycles import LifeCycle

Paceline = Callable[..., Result]
WAITING = Cause(name="waiting-for-ps", what="Trainers wait.", severity=Severity.INFO)
HOT = Cause(
    name="giant-variable", what="The variable\nids makes ps-0 hot.", severity=Severity.WARNING,
    effects=(WAITING,),
)  # fmt: skip
OVER = Cause(name="ps-cpu-bound", what="It was.", severity=Severity.WARNING, is_past=True)
RUN = measured_runs.run(name="clicks", phase=JobPhase.RUNNING)
ENDED = measured_runs.run(name="clicks", phase=JobPhase.SUCCEEDED)


@pytest.fixture
def condition(monkeypatch: pytest.MonkeyPatch) -> Callable[..., wait_conditions.FindingMade]:
    """Makes a condition whose looks find what is given, one after the other, without a pause."""
    monkeypatch.setattr(diagnosis_runs, "pause_seconds", lambda took, *, confirms: 0.0)

    def make(answers: Sequence[Sequence[Cause] | Exception], *codes: str) -> wait_conditions.FindingMade:
        left = iter(answers)

        def look(self: diagnosis_runs.Looker) -> diagnosis_runs.DiagnosisRun:
            answer = next(left)
            if isinstance(answer, Exception):
                raise answer
            explanation = Explanation(job="clicks", summary="", causes=tuple(answer))
            return diagnosis_runs.DiagnosisRun(recording=measured_runs.recording(), explanation=explanation)

        monkeypatch.setattr(diagnosis_runs.Looker, "look", look)
        return wait_conditions.FindingMade(cast("LifeCycle", None), "clicks", codes)

    return make


def test_a_finding_counts_once_two_looks_in_a_row_have_it(
    condition: Callable[..., wait_conditions.FindingMade],
) -> None:
    made = condition([[HOT], [], [HOT], EngineError("no agent answers"), [HOT]], "PS001")
    assert [made.is_met(RUN) for _ in range(5)] == [False, False, False, False, True]
    assert made.outcome(RUN) == "PS001 warning: The variable ids makes ps-0 hot."


def test_a_look_is_taken_when_it_is_time_or_the_job_has_ended(
    condition: Callable[..., wait_conditions.FindingMade], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = condition([[HOT], [HOT]], "PS001")
    monkeypatch.setattr(diagnosis_runs, "pause_seconds", lambda took, *, confirms: 3600.0)
    assert [made.is_met(run) for run in (RUN, RUN, RUN, ENDED)] == [False, False, False, True]


@pytest.mark.parametrize(
    ("causes", "codes", "is_met"),
    [
        ([HOT], ("WRK201",), True),  # what follows from a cause
        ([HOT], ("PS101", "PS001"), True),
        ([HOT], ("PS101",), False),
        ([OVER], ("PS101",), False),
        ([OVER], (), False),
        ([WAITING], (), False),  # no more than a remark
        ([HOT], (), True),
    ],
)
def test_which_findings_count(
    condition: Callable[..., wait_conditions.FindingMade],
    causes: list[Cause],
    codes: tuple[str, ...],
    is_met: bool,
) -> None:
    assert condition([causes], *codes).is_met(ENDED) is is_met


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("running", WaitGoal("running")),
        ("step=12", WaitGoal("step", step=12)),
        ("step=+12", WaitGoal("step", step=12, is_further=True)),
        ("finding", WaitGoal("finding")),
        ("finding=ps001,waiting-for-ps", WaitGoal("finding", codes=("PS001", "WRK201"))),
    ],
)
def test_goals_are_read(text: str, goal: WaitGoal) -> None:
    assert GOAL.convert(text, None, None) == goal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("runing", "'runing' is none of succeeded, running, finished, step, finding"),
        ("running=1", "'running=1' is none of"),
        ("step", "names no step"),
        ("step=-1", "names no step"),
        ("step=++1", "names no step"),
        ("finding=", "there is no code ''"),
        ("finding=PS01", "there is no code 'PS01'; did you mean 'PS"),
        ("finding=JOB101", "JOB101 is a finding of paceline lint, not one of a job"),
    ],
)
def test_goals_that_are_none_are_2(paceline: Paceline, text: str, said: str) -> None:
    result = paceline("wait", "clicks", "--for", text)
    assert (result.exit_code, said in " ".join(result.stderr.split())) == (2, True), result.stderr


def test_a_finding_of_a_job_that_has_ended(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "bad", phase=JobPhase.FAILED, message="worker-1: exit code 3")
    fill(home, "good")
    found = paceline("wait", "bad", "--for", "finding")
    assert (found.exit_code, found.stdout.split()[0]) == (0, "bad"), found.output
    assert "next: paceline why bad" in found.stderr
    missing = paceline("wait", "bad", "--for", "finding=PS001,hot-ps")
    assert (missing.exit_code, missing.stdout) == (6, "")
    assert "bad failed without PS001 or PS004: worker-1: exit code 3" in missing.stderr
    assert "good succeeded without a finding" in paceline("wait", "good", "--for", "finding").stderr


def test_a_message_cannot_act_on_the_terminal(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "bad", phase=JobPhase.FAILED, message="\x1b]0;mine\x07\x1b[31mred")
    missing = paceline("wait", "bad")
    assert (missing.exit_code, "\x1b" in missing.stderr, "red" in missing.stderr) == (6, False, True)


def test_last_lines_cannot_act_on_the_terminal() -> None:
    said: list[str] = []
    row = dataclasses.replace(measured_runs.recording().replicas[0], phase=ReplicaPhase.FAILED)
    line = SimpleNamespace(text="  \x1b[31mred")
    jobs = SimpleNamespace(replicas=lambda name: [row], logs=lambda run, wanted: [line])
    run_verb._say_last_words(SimpleNamespace(say=said.append), jobs, RUN)  # type: ignore[arg-type]
    assert said == [f"the last lines of {row.replica}:", "    \\x1b[31mred"]


def test_a_step(home: state_dirs.Home, paceline: Paceline) -> None:
    fill(home, "done", steps=3)
    assert paceline("wait", "done", "--for", "step=30").stdout == "done step 30\n"
    late = paceline("wait", "done", "--for", "step=31")
    assert (late.exit_code, "done succeeded before step 31" in late.stderr) == (6, True)
    assert "done succeeded before step 35" in paceline("wait", "done", "--for", "step=+5").stderr


@pytest.fixture
def attended(home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job in the store that runs and seems to be looked after."""
    monkeypatch.setattr(Jobs, "is_lost", lambda self, run: False)
    return fill(home, "going", phase=JobPhase.RUNNING, steps=3).name


@pytest.mark.parametrize(
    ("goal", "lacks"), [("finding=PS001", " without PS001"), ("step=31", " before step 31")]
)
def test_the_time_is_over_and_the_job_is_still_without_it(
    attended: str, paceline: Paceline, goal: str, lacks: str
) -> None:
    late = paceline("wait", attended, "--for", goal, "--timeout", "0.1s")
    assert late.exit_code == 5
    assert f"{attended} is still running{lacks} after 0.1 s" in late.stderr
