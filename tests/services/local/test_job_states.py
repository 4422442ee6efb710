"""Why a job on this machine does not run: real processes."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable

import pytest
from support import kills, leftovers
from support.shell_jobs import Submit, shell_job

from paceline.diagnosing.standstills import explain
from paceline.engines.local.folders import RunFolder
from paceline.model.explanations.causes import Cause
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import job_states, jobs
from paceline.services.observing import recordings


def why(api: jobs.Jobs, name: str) -> Cause:
    (cause,) = explain(api.situation(name)).causes
    return cause


def until(condition: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_a_command_that_fails(api: jobs.Jobs, submit: Submit) -> None:
    run = submit(shell_job("exit 7", limit=1, workers=1))
    api.wait(run.name, timeout_seconds=240)
    cause = why(api, run.name)
    assert (cause.name, cause.what) == ("command-failed", "The command of worker-0 failed (exit code 7).")
    (seen,) = cause.evidence
    assert seen.text == "worker-0: the command ended with code 7, after 1 of 1 restarts"
    assert seen.count == 2
    assert time.time() - 60 < seen.at < time.time() + 1


def test_a_script_that_fails_is_quoted(api: jobs.Jobs, submit: Submit) -> None:
    script = "import no_such_module_at_all"
    run = submit(shell_job(f"echo begun; exec {sys.executable} -c '{script}'", limit=1, workers=1))
    api.wait(run.name, timeout_seconds=240)
    _, explanation = recordings.explain(api, run.name)
    cause = explanation.causes[0]
    assert cause.what == (
        "The command of worker-0 failed (exit code 1). The Python module no_such_module_at_all is not there."
    )
    assert cause.evidence[0].text == (
        "it wrote: ModuleNotFoundError: No module named 'no_such_module_at_all'"
    )
    # It would fail in the same way the next time.
    assert api.get(run.name).message.endswith("it would fail again, so it was not restarted")
    (worker,) = [row for row in api.replicas(run.name) if str(row.replica) == "worker-0"]
    assert (worker.attempt, worker.restarts) == (1, 0)


def test_a_job_that_is_stopped_between_two_failures_keeps_its_cause(api: jobs.Jobs, submit: Submit) -> None:
    run = submit(
        shell_job("echo 'ValueError: 7 is too many'; exit 7", limit=9, workers=1, backoff_seconds=60)
    )
    api.wait(run.name, timeout_seconds=240, until=lambda run: run.phase is JobPhase.RESTARTING)
    api.stop(run.name)
    api.wait(run.name, timeout_seconds=240)
    _, explanation = recordings.explain(api, run.name)
    cause = explanation.causes[0]
    assert cause.what == "The command of worker-0 failed (exit code 7)."
    assert cause.evidence[0].text == "it wrote: ValueError: 7 is too many"


def test_a_command_that_is_not_there(api: jobs.Jobs, submit: Submit) -> None:
    spec = shell_job("true", workers=1)
    missing = dataclasses.replace(spec.roles[1], command=("no-such-command-here",))
    run = submit(dataclasses.replace(spec, roles=(spec.roles[0], missing)))
    api.wait(run.name, timeout_seconds=240)
    cause = why(api, run.name)
    assert cause.name == "launch-failed"
    assert "see that no-such-command-here is there" in cause.next_steps[0]


def test_a_job_that_runs_is_stopped_and_is_lost(
    api: jobs.Jobs, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit(shell_job("exec sleep 600", workers=1))
    api.wait(run.name, timeout_seconds=240, until=lambda run: run.phase is JobPhase.RUNNING)
    found = explain(api.situation(run.name))
    assert found.summary.startswith("nothing is wrong: job runs")
    assert found.causes == ()
    with monkeypatch.context() as patched:
        patched.setattr(job_states, "FULL_BYTES", 1 << 60)
        assert why(api, run.name).name == "disk-full"
    kills.kill(leftovers.supervisor_pids(RunFolder.of(run)))
    until(lambda: api.is_lost(api.get(run.name)))
    cause = why(api, run.name)
    assert cause.name == "no-supervisor"
    assert cause.next_steps == (f"paceline resume {run.name}",)
    assert "supervisor.lock" in cause.evidence[0].text
    api.resume(run.name)
    api.stop(run.name)
    api.wait(run.name, timeout_seconds=240)
    assert why(api, run.name).name == "suspended"
