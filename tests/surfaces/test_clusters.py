"""What the command line shows of jobs on a cluster: over one in memory, with real agents in its pods."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.agents import PodAgent, wait_until
from support.memory_clusters import MemoryCluster
from support.operator_scenes import JOBS, Scene, is_worker, job

from paceline.engines.kubernetes import clients, kinds
from paceline.engines.kubernetes.clusters import OutputLine
from paceline.model.roles import ReplicaId, Role
from paceline.model.traces import traced_steps
from paceline.model.traces.traced_steps import Trace
from paceline.services.local import state_dirs
from paceline.services.operators import rounds
from paceline.services.operators.rounds import CollectionRounds
from paceline.training.tracing import trace_files

Paceline = Callable[..., Result]
WORKER = "clicks-worker-0-1"


class Lent:
    """A cluster in memory, as the client gives one."""

    namespace = "default"

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def close(self) -> None:
        pass


class Stage:
    """A cluster with a running job, and an operator that may keep what its replicas say."""

    def __init__(self, runner: asyncio.Runner, scene: Scene, home: Path) -> None:
        self.runner = runner
        self.scene = scene
        self.home = home
        self.store = f"sqlite:///{home / 'kept.db'}"
        self.agents: list[PodAgent] = []

    def agent(self, pod: str, replica: ReplicaId) -> PodAgent:
        made = PodAgent(self.scene.cluster, self.home / "pods", pod)
        self.agents.append(made)
        made.start(replica)
        wait_until(lambda: len(made.lines("step")) > 2 and len(made.lines("sample")) > 2)
        return made

    def keep(self, holds: Callable[[CollectionRounds], Any]) -> None:
        """Have the operator keep what is said until something holds."""

        async def go() -> None:
            assert self.scene.operator is not None
            made = CollectionRounds(
                self.scene.cluster, self.scene.operator, store_url=self.store, home=self.home,
                clock=time.time, keep_seconds=3600.0,
            )  # fmt: skip
            task = asyncio.create_task(made.run())
            await self.scene.until(lambda: holds(made))
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        self.runner.run(go())


@pytest.fixture
def stage(home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("PACELINE_ENGINE", "kubernetes")
    monkeypatch.setattr(rounds, "ROUND_SECONDS", 0.3)
    monkeypatch.setattr(rounds, "LOG_SECONDS", 0.1)
    with asyncio.Runner() as runner:
        scene = Scene()
        monkeypatch.setattr(clients, "RealCluster", lambda context, **_: Lent(scene.cluster))
        made = Stage(runner, scene, home.path)
        runner.run(scene.begin())
        try:
            runner.run(scene.submit(job(workers=1)))
            runner.run(scene.until_phase("running"))
            yield made
        finally:
            runner.run(scene.close())
            for agent in made.agents:
                agent.kill()


def test_top_asks_the_agents_when_there_is_no_store(stage: Stage, paceline: Paceline) -> None:
    stage.agent(WORKER, ReplicaId(Role.WORKER, 0))
    shown = paceline("top", "clicks", "--once", "-o", "wide")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("clicks  running")
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("worker-0")]
    header = next(line for line in shown.stdout.splitlines() if "STEPS/S" in line)
    assert header.rstrip().endswith("AGE")
    assert line.rstrip().endswith("s")
    found = json.loads(paceline("top", "-o", "json").stdout)
    by_role = {role["role"]: role["replicas"][0] for role in found["roles"]}
    assert by_role["worker"]["memory_bytes"] > 0
    assert by_role["worker"]["steps_per_second"] > 1
    assert found["step"] >= 2
    # No agent answers in the pod of the PS: nothing is known of it, and not 0.
    assert by_role["ps"]["memory_bytes"] is None


def test_top_says_what_it_needs_when_no_agent_answers(stage: Stage, paceline: Paceline) -> None:
    shown = paceline("top", "clicks", "--once")
    assert shown.exit_code == 1
    assert "/spool?last=65536 cannot be read" in shown.stderr
    assert "pods/proxy" in shown.stderr
    assert "--store URL" in shown.stderr


def test_a_job_that_has_just_ended_is_shown_whole(stage: Stage, paceline: Paceline) -> None:
    agent = stage.agent(WORKER, ReplicaId(Role.WORKER, 0))
    stage.keep(lambda made: made.counters.answers > 1)
    agent.finish()
    wait_until(lambda: not agent.is_alive())
    stage.scene.kubelet.exit_code = lambda pod: 0 if is_worker(pod) else None
    stage.runner.run(stage.scene.until_phase("succeeded"))
    # The operator has not told its store yet.
    shown = paceline("top", "clicks", "--store", stage.store)
    assert shown.stdout.startswith("clicks  succeeded"), shown.stderr
    assert "means over training" in shown.stdout


def test_what_an_operator_has_kept_is_shown_when_the_job_is_gone(
    stage: Stage, paceline: Paceline, tmp_path: Path
) -> None:
    agent = stage.agent(WORKER, ReplicaId(Role.WORKER, 0))
    cluster = stage.scene.cluster
    cluster.outputs[WORKER] = [OutputLine("2027-01-15T08:00:00Z", "begun")]
    stage.keep(lambda made: made.counters.answers > 1)
    assert paceline("logs", "clicks").stdout == "worker-0 | begun\n"
    kept = json.loads(paceline("top", "clicks", "-o", "json", "--store", stage.store).stdout)
    assert (kept["name"], kept["phase"]) == ("clicks", "running")
    assert kept["step"] >= 2
    agent.finish()
    cluster.outputs[WORKER].append(OutputLine("2027-01-15T08:00:09Z", "done"))
    stage.keep(lambda made: not agent.is_alive())
    stage.scene.kubelet.exit_code = lambda pod: 0 if is_worker(pod) else None
    stage.runner.run(stage.scene.until_phase("succeeded"))
    stage.keep(lambda made: made.counters.rounds > 1)
    stage.runner.run(cluster.delete(JOBS, "clicks", "default"))
    assert cluster.of_kind(kinds.PODS) == {}

    named = ("--store", stage.store)
    shown = paceline("top", "clicks", *named)
    assert shown.stdout.startswith("clicks  succeeded"), shown.stderr
    assert "means over training" in shown.stdout
    assert paceline("logs", "clicks", *named).stdout == "worker-0 | begun\nworker-0 | done\n"
    page = tmp_path / "page.html"
    report = paceline("report", "clicks", "-o", str(page), "--json", "-", *named)
    assert report.exit_code == 0, report.stderr
    numbers = json.loads(report.stdout)
    assert numbers["name"] == "clicks"
    assert "begun" not in page.read_text()
    missing = paceline("top", "other", *named)
    assert missing.exit_code == 3
    assert "the store has nothing of job 'other' in default" in missing.stderr
    assert paceline("top", "clicks").exit_code == 3
    # Another job of that name is not the job that was measured.
    stage.runner.run(stage.scene.submit(job(workers=1)))
    assert "nothing was measured" in paceline("top", "clicks", *named).stderr


def test_top_of_a_job_that_has_ended_says_where_its_figures_are(stage: Stage, paceline: Paceline) -> None:
    stage.scene.kubelet.exit_code = lambda pod: 0
    stage.runner.run(stage.scene.until_phase("succeeded"))
    shown = paceline("top", "clicks")
    assert shown.stdout.startswith("clicks  succeeded")
    assert "nothing was measured" in shown.stderr


def test_logs_say_what_is_gone(stage: Stage, paceline: Paceline) -> None:
    cluster = stage.scene.cluster
    cluster.outputs[WORKER] = [OutputLine("2027-01-15T08:00:00Z", "begun")]
    stage.scene.kubelet.exit_code = lambda pod: (
        1 if is_worker(pod) and pod["metadata"]["name"] == WORKER else None
    )
    stage.runner.run(stage.scene.until(lambda: "clicks-worker-0-2" in stage.scene.pods()))
    stage.runner.run(stage.scene.until_phase("running"))
    assert paceline("logs", "clicks", "--role", "worker").stdout == "begun\n"
    cluster.remove(kinds.PODS, WORKER)
    shown = paceline("logs", "clicks", "--role", "worker")
    assert shown.stdout == ""
    assert "gone with its pod: the output of worker-0 (attempt 1)\n" in shown.stderr


def test_a_trace_is_taken_in_the_pods_and_brought_here(stage: Stage, paceline: Paceline) -> None:
    agent = stage.agent(WORKER, ReplicaId(Role.WORKER, 0))
    folder = agent.folder / traced_steps.FOLDER

    def answer() -> None:
        request = wait_until(
            lambda: (folder / traced_steps.REQUEST).exists() and (folder / traced_steps.REQUEST).read_text()
        )
        taken = Trace(trainer="worker-0", attempt=1, at=time.time())
        trace_files.write(taken, folder / request.strip() / "worker-0.1.parquet")

    trainer = threading.Thread(target=answer)
    trainer.start()
    shown = paceline("trace", "clicks", "--timeout", "30s", "-o", "json")
    trainer.join()
    assert shown.exit_code == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert [each["trainer"] for each in found["trainers"]] == ["worker-0"]
    assert Path(found["perfetto_file"]).is_relative_to(stage.home / "clusters" / "default" / "clicks")
    again = paceline("trace", "clicks", "--last", "-o", "json")
    assert json.loads(again.stdout)["trace"] == found["trace"]
