"""The verbs and the Python API on a real API server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from support.real_clusters import (
    NAMESPACE,
    PACELINE,
    OperatorProcess,
    get,
    objects,
    status,
    until,
    until_phase,
)  # fmt: skip

from paceline import specs
from paceline.engines.kubernetes import kinds
from paceline.errors import PacelineError
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.surfaces import api, composition

ON_IT = ("--engine", "kubernetes", "-n", NAMESPACE)


def job(name: str = "clicks", **labels: str) -> JobSpec:
    roles = tuple(RoleSpec(role=role, cpu_cores=1.0, memory_bytes=1 << 28) for role in (Role.PS, Role.WORKER))
    return JobSpec(
        name=name, image="localhost/work:1", command=("sleep", "3600"), roles=roles, labels=labels,
        placement=PodPlacement(node_selector={"paceline.dev/hollow": "true"}), termination_grace_seconds=1.0,
    )  # fmt: skip


def paceline(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*PACELINE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_labels_and_namespaces(operator: OperatorProcess) -> None:
    for name, team in (("one", "ads"), ("two", "search")):
        api.submit(job(name, team=team), engine="kubernetes", namespace=NAMESPACE)
    for name in ("one", "two"):
        until_phase(name, "running")
    assert paceline("list", *ON_IT, "-l", "team notin (ads)", "-o", "name").stdout == "two\n"
    everywhere = paceline("list", "--engine", "kubernetes", "-A", "-o", "name").stdout.split()
    assert {f"{NAMESPACE}/one", f"{NAMESPACE}/two"} <= set(everywhere)
    stopped = paceline("stop", *ON_IT, "-l", "team=ads")
    assert stopped.stdout == "one stopped\n", stopped.stderr
    assert status("two")["phase"] == "running"


def test_in_the_name_of_others(operator: OperatorProcess) -> None:
    refused = paceline("list", *ON_IT, "--as", "ann")
    assert refused.returncode == 1
    assert 'User "ann" cannot list resource "trainingjobs"' in " ".join(refused.stderr.split())
    master = paceline("list", *ON_IT, "--as", "ann", "--as-group", "system:masters", "-o", "json")
    assert json.loads(master.stdout)["kind"] == "RunList"
    # Paths that are no objects are read in the same name.
    mine = paceline("doctor", *ON_IT, "--as", "ann", "-o", "json")
    found = {each["name"]: each for each in json.loads(mine.stdout)["items"]}
    assert found["Rights"]["state"] == "failed"


def until_there_and_running(name: str) -> None:
    until(lambda: get(kinds.TRAINING_JOBS, name), lambda: objects(kinds.TRAINING_JOBS))
    until_phase(name, "running")


def test_a_run_is_followed_left_and_ended(operator: OperatorProcess, tmp_path: Path) -> None:
    path = tmp_path / "clicks.yaml"
    path.write_text(specs.dump_job(job()))
    assert yaml.safe_load(path.read_text())["kind"] == "TrainingJob"
    command = [*PACELINE, "run", *ON_IT, str(path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as process:
        assert process.stderr is not None
        while "running" not in (line := process.stderr.readline()):
            assert line, "it has ended"
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "detached: clicks goes on" in said
    with subprocess.Popen(command, **pipes, text=True) as process:
        until_there_and_running("clicks-2")
        assert paceline("stop", *ON_IT, "clicks-2").returncode == 0
        out, said = process.communicate(timeout=300)
    assert process.returncode == 6, said
    assert out.split()[:2] == ["clicks-2", "stopped"]
    assert status("clicks")["phase"] == "running"


def test_the_python_api_from_a_notebook(operator: OperatorProcess) -> None:
    async def cells() -> JobPhase:
        handle = api.submit(job(), engine="kubernetes", namespace=NAMESPACE)
        await asyncio.to_thread(until_phase, "clicks", "running")
        assert handle.why().summary.startswith("nothing is wrong")
        handle.stop()
        handle.resume()
        await asyncio.to_thread(until_phase, "clicks", "running")
        phase = handle.phase
        handle.delete(force=True)
        return phase

    assert asyncio.run(cells()) is JobPhase.RUNNING
    until(lambda: get(kinds.TRAINING_JOBS, "clicks") is None, lambda: "still there")


def test_a_user_that_cannot_be_a_header_is_refused() -> None:
    with (
        composition.opened_cluster(None, NAMESPACE, user="a\nb") as jobs,
        pytest.raises(PacelineError, match="trainingjobs cannot be listed"),
    ):
        jobs.runs()
