"""A server on a cluster: its jobs, their diagnoses, several servers beside each other; over one in memory."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from support import cluster_sites
from support.agents import wait_until
from support.cluster_sites import NAMESPACE
from support.operator_scenes import Scene

from paceline.engines.kubernetes import kinds
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.cluster import runs
from paceline.services.cluster.annotations import CHANGE
from paceline.services.observing.diagnosis_summaries import SummaryRefresher
from paceline.specs.job_file import custom_resources
from paceline.surfaces.web import sites
from paceline.surfaces.web.applications import application
from paceline.surfaces.web.job_files import JobFiles
from paceline.surfaces.web.sites import MOST_NAMESPACES, ClusterSite

JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks, labels: {team: ads}}
spec:
  image: clicks:1
  command: [train]
  termination_grace: 1s
  roles:
    ps: {replicas: 1}
    worker: {replicas: 2, max_replicas: 4}
"""
EDITOR = {"Authorization": f"Bearer {cluster_sites.token('edit')}"}
ADMIN = {"Authorization": f"Bearer {cluster_sites.token('admin')}"}


class Stage:
    """A cluster with an operator in a thread, and a server over it."""

    def __init__(self, folder: Path) -> None:
        self.scene = Scene()
        cluster_sites.fill(self.scene.cluster.access)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self.folder = folder

    def run(self, coro: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coro, self._loop).result(240)

    def __enter__(self) -> Stage:
        self._thread.start()
        self.run(self.scene.begin())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.scene.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as made:
        yield made


@pytest.fixture
def site(stage: Stage) -> Iterator[ClusterSite]:
    with cluster_sites.opened(Shared(stage), stage.folder) as made:  # type: ignore[arg-type]
        yield made


class Shared:
    """The cluster of a stage for a client in another thread, as a real one is elsewhere, too."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def stream(self, path: str, **more: Any) -> AsyncGenerator[bytes]:
        yield await self.read(path, **more)

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._stage.scene.cluster, name)

        async def passed_on(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(lambda: self._stage.run(asked(*args, **kwargs)))

        return passed_on


@pytest.fixture
def client(site: ClusterSite, clock, job_files: JobFiles) -> TestClient:
    made = application(site, clock=clock, job_files=job_files)
    return TestClient(made, raise_server_exceptions=False, headers=EDITOR)


def submit(client: TestClient, source: str = JOB, **headers: str) -> str:
    answer = client.post("/api/v1/jobs", json={"source": source}, headers=headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["name"])


def phase(client: TestClient, name: str) -> str:
    return str(client.get(f"/api/v1/jobs/{name}").json()["phase"])


def test_the_life_of_a_job(client: TestClient, stage: Stage) -> None:
    name = submit(client)
    # The store has nothing of it yet; it can be looked at all the same.
    page = client.get(f"/jobs/{name}", headers={"Accept": "text/html"})
    assert page.status_code == 200, page.text
    wait_until(lambda: phase(client, name) == "running")
    resource = stage.scene.cluster.of_kind(kinds.TRAINING_JOBS)[name]
    assert resource["metadata"]["namespace"] == NAMESPACE
    for path in ("", "/source", "/events", "/snapshot", "/why", "/logs", "/samples", "/changes"):
        answer = client.get(f"/api/v1/jobs/{name}{path}")
        assert answer.status_code == 200, (path, answer.text)
    assert client.post(f"/api/v1/jobs/{name}/scale", json={"workers": 3}).status_code == 202
    wait_until(lambda: len(client.get(f"/api/v1/jobs/{name}").json()["replicas"]) == 4)
    assert client.post(f"/api/v1/jobs/{name}/stop").status_code == 202
    wait_until(lambda: phase(client, name) == "stopped")
    assert client.post(f"/api/v1/jobs/{name}/resume").status_code == 202
    wait_until(lambda: phase(client, name) == "running")
    assert client.delete(f"/api/v1/jobs/{name}").status_code == 409
    assert client.delete(f"/api/v1/jobs/{name}?force=true").status_code == 204
    wait_until(lambda: client.get("/api/v1/jobs").json()["total"] == 0)
    audits = client.get("/api/v1/audits", headers={"Authorization": f"Bearer {cluster_sites.token('admin')}"})
    done = [each["action"] for each in audits.json()["items"]]
    verbs = ("submit", "scale", "stop", "resume", "delete", "delete")
    assert done[::-1] == [f"jobs.{each}" for each in verbs]


def test_what_there_is_and_who_holds_it(client: TestClient, stage: Stage) -> None:
    name = submit(client)
    wait_until(lambda: phase(client, name) == "running")
    assert client.get("/api/v1/cluster").status_code == 403  # Nodes are the cluster's, not the team's.
    client.headers["Authorization"] = f"Bearer {cluster_sites.token('cluster-admin')}"
    said = client.get("/api/v1/cluster").json()
    nodes = {each["name"]: each for each in said["nodes"]}
    assert nodes
    assert sum(sum(each["replicas"].values()) for each in said["holdings"]) == 3
    assert {each["node"] for each in said["holdings"]} <= set(nodes)
    assert said["waiting"] == []
    large = JOB.replace("replicas: 2", "replicas: 3, cpu: 1000").replace("name: clicks", "name: huge")
    found = client.post("/api/v1/fit", json={"source": large}).json()
    assert (found["fits"], found["most_workers"]) == (False, 0)
    assert "too little CPU" in found["blockers"][0]["reason"]
    huge = submit(client, large)
    wait_until(lambda: bool(client.get("/api/v1/cluster").json()["waiting"]))
    (waiting,) = client.get("/api/v1/cluster").json()["waiting"]
    assert (waiting["job"], waiting["code"]) == (huge, "LIFE202")
    page = client.get("/cluster").text
    assert '<a class="code warning" href="/rules/LIFE202">' in page
    assert client.get("/api/v1/experiments").json()["items"] == []


def test_a_submit_that_is_sent_again_to_another_server_makes_one_job(
    client: TestClient, site: ClusterSite, stage: Stage, clock, job_files: JobFiles
) -> None:
    key = {"Idempotency-Key": "nightly"}
    with cluster_sites.opened(Shared(stage), stage.folder) as beside:  # type: ignore[arg-type]
        other = TestClient(application(beside, clock=clock, job_files=job_files), headers=EDITOR)
        names = [submit(each, **key) for each in (client, other, client)]
    assert names == ["clicks"] * 3
    assert len(stage.scene.cluster.of_kind(kinds.TRAINING_JOBS)) == 1


@pytest.mark.parametrize(
    ("source", "body", "says"),
    [
        (
            JOB.replace("  command", "  code: {folder: /etc}\n  command"),
            {},
            "a folder of code",
        ),
        (JOB, {"base": "/etc"}, "no folders for jobs"),
    ],
)
def test_files_of_the_server_go_with_no_job(
    client: TestClient, stage: Stage, source: str, body: dict[str, str], says: str
) -> None:
    answer = client.post("/api/v1/jobs", json={"source": source, **body})
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert stage.scene.cluster.of_kind(kinds.CONFIG_MAPS) == {}


@pytest.mark.parametrize(
    "name", ["%3F", "clicks%3Fdry=1", "..", "%2E%2E", "clicks%23", "Clicks", "a%00", "%25", "x" * 253]
)
def test_what_is_no_name_is_asked_of_no_cluster(client: TestClient, stage: Stage, name: str) -> None:
    """In the paths of the API server it would be something else: all jobs, say."""
    submit(client)
    stage.scene.cluster.calls.clear()
    for method, path in (("GET", ""), ("DELETE", "?force=true"), ("POST", "/stop"), ("GET", "/logs")):
        answer = client.request(method, f"/api/v1/jobs/{name}{path}")
        assert answer.status_code in (404, 405), (method, path, answer.text)
    asked = {what for _, what in stage.scene.cluster.calls if what.startswith("trainingjobs/")}
    assert asked <= {"trainingjobs/", "trainingjobs/clicks", f"trainingjobs/{'x' * 253}"}
    assert list(stage.scene.cluster.of_kind(kinds.TRAINING_JOBS)) == ["clicks"]


def test_a_running_job_goes_on_with_another_file(client: TestClient, stage: Stage) -> None:
    name = submit(client)
    edits = [{"path": ["spec", "roles", "worker", "replicas"], "value": 3}]
    answer = client.post(f"/api/v1/jobs/{name}/change", json={"edits": edits})
    assert answer.status_code == 202
    assert "replicas: 3" in answer.json()["diff"]
    resource = stage.scene.cluster.of_kind(kinds.TRAINING_JOBS)[name]
    assert resource["spec"]["roles"]["worker"]["replicas"] == 3
    assert CHANGE in resource["metadata"]["annotations"]


def refresher(site: ClusterSite) -> SummaryRefresher:
    return SummaryRefresher(site.store, site.engine, site.watched, site.clock)


def kept(site: ClusterSite, stage: Stage, name: str = "clicks") -> str:
    """Let the store know a job, as an operator does; return its run."""
    resource = stage.scene.cluster.of_kind(kinds.TRAINING_JOBS)[name]
    run = runs.run_name(resource, site.jobs(None).scope())
    runs.keep(site.store, run, resource, custom_resources.job_spec(resource), stage.folder, now=site.clock())
    return run


def deleted(client: TestClient, site: ClusterSite, stage: Stage) -> tuple[str, str]:
    """Let a job run, be kept and be deleted a minute ago; return its name and its run."""
    name = submit(client)
    wait_until(lambda: phase(client, name) == "running")
    run = kept(site, stage, name)
    client.delete(f"/api/v1/jobs/{name}?force=true")
    runs.end_all_but(site.store, (), namespaces=None, now=site.clock() - 60.0)
    return name, run


def test_lists_say_how_jobs_do(client: TestClient, site: ClusterSite, stage: Stage) -> None:
    name = submit(client)
    wait_until(lambda: phase(client, name) == "running")
    run = kept(site, stage)
    steps = [
        StepReport(
            replica=ReplicaId(Role.WORKER, 0), attempt=1, at=site.clock() - ago, steps=10, examples=512
        )
        for ago in (3.0, 2.0, 1.0)
    ]
    site.store.append_step_reports(run, steps)
    refresher(site).go_round()
    (item,) = client.get("/api/v1/jobs?sort=speed").json()["items"]
    first = site.store.diagnosis(run)
    assert first is not None
    assert first.at == pytest.approx(site.clock(), abs=240)
    assert item["diagnosis"]["examples_per_second"] == first.examples_per_second
    # Another server that goes round at the same time leaves it alone.
    SummaryRefresher(site.store, site.engine, site.watched, site.clock, every_seconds=3600.0).go_round()
    assert site.store.diagnosis(run) == first


def test_a_job_whose_name_was_taken_again_is_not_mistaken_for_the_new_one(
    client: TestClient, site: ClusterSite, stage: Stage
) -> None:
    name, old = deleted(client, site, stage)
    submit(client)
    wait_until(lambda: phase(client, name) == "running")
    new = kept(site, stage)
    made = refresher(site)
    made.go_round()
    assert made.failures == 0
    assert site.store.unconcluded(engine=site.engine, ended_before=math.inf) == []
    conclusion = site.store.conclusion(old)
    assert conclusion is not None
    assert site.store.conclusion(new) is None
    assert site.store.diagnosis(new) is not None


def test_a_namespace_that_is_made_anew_sees_nothing_of_the_one_before(
    client: TestClient, site: ClusterSite, stage: Stage
) -> None:
    name, run = deleted(client, site, stage)
    paths = (f"/jobs/{name}", f"/jobs/{name}/source", f"/jobs/{name}/samples", f"/jobs/{name}/events")

    def seen() -> tuple[list[int], int, int, int]:
        statuses = [client.get(f"/api/v1{path}").status_code for path in paths]
        audits = client.get("/api/v1/audits", headers=ADMIN).json()["items"]
        models = client.get("/api/v1/models").json()["items"]
        return statuses, len(audits), len(models), sum(client.get("/api/v1/history").json()["runs"].values())

    assert seen() == ([200] * len(paths), 2, 1, 1)
    stage.scene.cluster.namespaces["ads"] = "another"
    assert seen() == ([404] * len(paths), 0, 0, 0)
    refresher(site).go_round()
    assert site.store.conclusion(run) is not None, "what it came to is kept with it"
    assert site.store.unconcluded(engine=site.engine, ended_before=math.inf) == []


def test_many_who_look_at_a_list_make_one_list_of_the_cluster(
    client: TestClient, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "LIST_SECONDS", 3600.0)  # A busy machine takes long for twenty requests.
    submit(client)
    stage.scene.cluster.calls.clear()
    for _ in range(20):
        client.get("/?part=true", headers={"Accept": "text/html"})
    lists = [what for verb, what in stage.scene.cluster.calls if (verb, what) == ("list", "trainingjobs/")]
    assert len(lists) == 1


def test_what_is_kept_of_namespaces_is_bounded(site: ClusterSite) -> None:
    first = site.look_cache("first")
    assert site.look_cache("first") is first
    for number in range(MOST_NAMESPACES):
        site.jobs(f"n{number}")
    assert site.look_cache("first") is not first
