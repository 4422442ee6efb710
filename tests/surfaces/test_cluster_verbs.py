"""Verbs and the Python API over a cluster in memory, without an operator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from support.memory_clusters import MemoryCluster
from support.operator_scenes import job

from paceline.engines.kubernetes import clients, kinds
from paceline.errors import InvalidInput
from paceline.model.jobs.statuses import JobPhase
from paceline.specs.job_file import custom_resources
from paceline.surfaces import api

Paceline = Callable[..., Result]
NOW = 1_800_000_000.0
ON_IT = ("--engine", "kubernetes")


class Fake(MemoryCluster):
    """Stands in for the client of a real cluster; remembers who asked."""

    namespace = "default"

    def __init__(self) -> None:
        super().__init__(lambda: NOW)
        self.asked_as: list[tuple[str | None, tuple[str, ...]]] = []

    async def close(self) -> None:
        pass

    def submit(self, name: str, namespace: str = "default", phase: str = "running", **labels: str) -> None:
        made = custom_resources.resource(job(name, labels=labels), namespace)
        asyncio.run(self.create(kinds.TRAINING_JOBS, made))
        self.set_phase(name, phase, namespace)

    def set_phase(self, name: str, phase: str, namespace: str = "default") -> None:
        status: dict[str, Any] = {"phase": phase, "replicas": [], "startedAt": "2027-01-15T08:00:00Z"}
        self.change(kinds.TRAINING_JOBS, name, namespace, status=status)

    def of(self, name: str) -> dict[str, Any]:
        return self.of_kind(kinds.TRAINING_JOBS)[name]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()

    def opened(context: str | None, *, user: str | None, groups: tuple[str, ...]) -> Fake:
        made.asked_as.append((user, groups))
        return made

    monkeypatch.setattr(clients, "RealCluster", opened)
    return made


def test_jobs_of_all_namespaces_are_listed(cluster: Fake, paceline: Paceline) -> None:
    cluster.submit("clicks", team="ads")
    cluster.submit("census", "search", team="search")
    assert paceline("list", *ON_IT, "-o", "name").stdout == "clicks\n"
    every = ("list", *ON_IT, "-A")
    assert sorted(paceline(*every, "-o", "name").stdout.split()) == ["default/clicks", "search/census"]
    table = paceline(*every)
    header, *rows = table.stdout.splitlines()
    assert header.split()[:3] == ["NAMESPACE", "NAME", "PHASE"]
    assert [row.split()[0] for row in rows] == ["default", "search"] or len(rows) == 2
    assert " get -n " in table.stderr
    selected = paceline(*every, "-l", "team in (search)", "-o", "json")
    (only,) = json.loads(selected.stdout)["items"]
    assert (only["name"], only["namespace"]) == ("census", "search")


def test_jobs_are_stopped_and_deleted_by_labels(cluster: Fake, paceline: Paceline) -> None:
    for name, team, phase in (("a", "ads", "running"), ("b", "ads", "failed"), ("c", "x", "running")):
        cluster.submit(name, phase=phase, team=team)
    stopped = paceline("stop", *ON_IT, "-l", "team=ads", "--no-wait")
    assert stopped.stdout == "a is asked to stop\n"
    assert cluster.of("a")["spec"]["suspend"] is True
    assert "suspend" not in cluster.of("b")["spec"]
    assert paceline("delete", *ON_IT, "-l", "team!=x", "--force").stdout == "b deleted\na deleted\n"
    assert list(cluster.of_kind(kinds.TRAINING_JOBS)) == ["c"]


def test_the_cluster_is_asked_in_the_name_of_others(cluster: Fake, paceline: Paceline) -> None:
    cluster.submit("clicks")
    said = paceline("list", *ON_IT, "--as", "ann", "--as-group", "ads", "--as-group", "ops")
    assert cluster.asked_as == [("ann", ("ads", "ops"))]
    assert "paceline --engine kubernetes --as ann --as-group ads --as-group ops get clicks" in said.stderr


def test_why_of_a_job_whose_spec_is_wrong(cluster: Fake, paceline: Paceline) -> None:
    cluster.submit("clicks", phase="failed")
    resource = cluster.of("clicks")
    wrong = {**resource["spec"], "wroker": {"replicas": 1}}
    status = {"phase": "failed", "message": "the job is wrong: spec.wroker: unknown key 'wroker'"}
    cluster.change(kinds.TRAINING_JOBS, "clicks", spec=wrong, status=status)
    for output in ("table", "markdown", "json"):
        assert "unknown key 'wroker'" in paceline("why", *ON_IT, "clicks", "-o", output).stdout
    page = paceline("why", *ON_IT, "clicks", "-o", "html")
    assert page.exit_code == 1
    assert "there is no page of clicks: clicks has failed" in page.stderr


def advance(cluster: Fake, name: str, *phases: str) -> None:
    """Bring a job to a next phase whenever it is looked at."""
    left = list(phases)

    def looked_at(verb: str, plural: str, about: str) -> None:
        if verb == "get" and plural == kinds.TRAINING_JOBS.plural and left:
            cluster.set_phase(name, left.pop(0))

    cluster.trouble = looked_at


@pytest.fixture
def job_file(tmp_path: Any) -> str:
    path = tmp_path / "clicks.yaml"
    path.write_text(
        json.dumps({**custom_resources.resource(job(), "default"), "metadata": {"name": "clicks"}})
    )
    return str(path)


@pytest.mark.parametrize(("end", "code"), [("succeeded", 0), ("failed", 6)])
def test_run_follows_a_job_to_its_end(
    cluster: Fake, paceline: Paceline, job_file: str, end: str, code: int
) -> None:
    advance(cluster, "clicks", "starting", "running", end)
    result = paceline("run", *ON_IT, job_file)
    assert result.exit_code == code, result.output
    assert "clicks submitted; Ctrl-C detaches, the job goes on" in result.stderr
    assert "clicks is starting" in result.stderr
    assert result.stdout.split()[:2] == ["clicks", end]
    if end == "failed":
        assert "paceline --engine kubernetes why clicks" in result.stderr


def test_a_finding_is_waited_for(cluster: Fake, paceline: Paceline) -> None:
    cluster.submit("clicks", phase="failed")
    wait = ("wait", *ON_IT, "clicks", "--for")
    found = paceline(*wait, "finding")
    assert (found.exit_code, found.stdout[:11]) == (0, "clicks LIFE"), found.output
    missing = paceline(*wait, "finding=PS001")
    assert (missing.exit_code, "clicks failed without PS001" in missing.stderr) == (6, True)
    assert "clicks failed before step 10" in paceline(*wait, "step=10").stderr


def test_interrupting_a_run_detaches(
    cluster: Fake, paceline: Paceline, job_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance(cluster, "clicks", "running")

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("paceline.surfaces.cli.following.time.sleep", interrupt)
    result = paceline("run", *ON_IT, job_file)
    assert result.exit_code == 0
    assert "detached: clicks goes on" in result.stderr
    assert "suspend" not in cluster.of("clicks")["spec"]


def test_the_python_api_does_the_same(cluster: Fake) -> None:
    handle = api.submit(job(), engine="kubernetes")
    assert handle.phase is JobPhase.PENDING
    assert [each.name for each in api.list_jobs(engine="kubernetes")] == ["clicks"]
    assert "clicks" in repr(handle)
    assert handle.why().summary.startswith("clicks is pending")
    handle.stop(wait=False)
    assert cluster.of("clicks")["spec"]["suspend"] is True
    cluster.set_phase("clicks", "stopped")
    assert handle.wait() is JobPhase.STOPPED
    api.get("clicks", engine="kubernetes").resume()
    assert cluster.of("clicks")["spec"]["suspend"] is False
    assert list(handle.logs()) == []
    assert not handle.is_lost
    assert handle.samples(as_frame=False) == []  # there is no pod, and so no agent that could be asked
    assert handle.snapshot().run.name == "clicks"
    handle.delete(force=True)
    assert api.list_jobs(engine="kubernetes") == []


def test_the_python_api_works_within_an_event_loop(cluster: Fake) -> None:
    """As in the cells of a notebook."""

    async def cell() -> list[str]:
        api.submit(job(), engine="kubernetes")
        return [each.name for each in api.list_jobs(engine="kubernetes")]

    assert asyncio.run(cell()) == ["clicks"]


def test_an_engine_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_ENGINE", "kubrenetes")
    with pytest.raises(InvalidInput, match="no engine 'kubrenetes'"):
        api.list_jobs()


def test_a_dry_run_asks_the_server_and_makes_nothing(
    cluster: Fake, paceline: Paceline, job_file: str
) -> None:
    shown = paceline("submit", job_file, *ON_IT, "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert "would be submitted to the namespace default" in shown.stdout
    assert "does not fit" in shown.stdout  # there is no node
    made = json.loads(paceline("submit", job_file, *ON_IT, "--dry-run", "-o", "json").stdout)
    assert (made["kind"], made["namespace"], made["fit"]["fits"]) == ("JobPlan", "default", False)
    assert cluster.of_kind(kinds.TRAINING_JOBS) == {}
