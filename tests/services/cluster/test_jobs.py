"""The life cycle of jobs on a cluster, over one in memory with an operator."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from support.operator_scenes import Scene, is_worker, job

from paceline import specs
from paceline.engines.kubernetes import kinds, times
from paceline.engines.kubernetes.clusters import ClusterError, OutputLine
from paceline.errors import Conflict, InvalidInput, NotFound, WaitTimeout
from paceline.model.jobs.code_sources import Code, Git
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.jobs.runs import Submit
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.studies import trained_models
from paceline.model.studies.tunings import Objective
from paceline.services import packed_folders
from paceline.services.cluster import announcements
from paceline.services.cluster.announcements import Announcement
from paceline.services.cluster.jobs import ClusterJobs
from paceline.services.cluster.measurements import ClusterMeasurements
from paceline.services.cluster.submits import FINGERPRINT, SUBMIT
from paceline.services.logs import LogSelection
from paceline.services.operators import executions
from paceline.services.studying import tunings
from paceline.services.studying.probes import Prober
from paceline.services.studying.tunings import Tuner
from paceline.specs.job_file import custom_resources
from paceline.stores import open_store

HERE = Path()


class Cluster(NamedTuple):
    jobs: ClusterJobs
    scene: Scene
    runner: asyncio.Runner

    def until_phase(self, name: str, phase: str) -> None:
        self.runner.run(self.scene.until_phase(phase, name))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cluster]:
    monkeypatch.setattr(ClusterJobs, "POLL_SECONDS", 0.0)
    with asyncio.Runner() as runner:
        scene = Scene()
        runner.run(scene.begin())
        measurements = ClusterMeasurements(scene.cluster, store_url=None, home=tmp_path)
        yield Cluster(ClusterJobs(scene.cluster, "default", runner, measurements), scene, runner)
        measurements.close()
        runner.run(scene.close())


def submit(cluster: Cluster, name: str = "clicks") -> str:
    return cluster.jobs.submit(job(name), source="", base=HERE).name


def test_nothing_is_probed_while_another_pod_waits_for_cpu(cluster: Cluster) -> None:
    submit(cluster)
    cluster.until_phase("clicks", "running")
    prober, run = Prober(jobs=cluster.jobs), cluster.jobs.get("clicks")
    cluster.jobs.check_returns(run)
    cluster.scene.kubelet.is_full = True
    spec = {"containers": [{"name": "main", "image": "busybox"}]}
    other = {"metadata": {"name": "other", "namespace": "ads"}, "spec": spec}
    cluster.runner.run(cluster.scene.cluster.create(kinds.PODS, other))
    waits = cluster.scene.until(
        lambda: "conditions" in cluster.scene.cluster.of_kind(kinds.PODS)["other"]["status"]
    )
    cluster.runner.run(waits)
    for ask in (prober.probe, prober.plan):
        with pytest.raises(Conflict, match="the pod ads/other waits for CPU, and might keep"):
            ask("clicks")


def test_a_job_is_submitted_and_looked_at(cluster: Cluster) -> None:
    assert submit(cluster) == "clicks"
    assert cluster.jobs.get("clicks").phase is JobPhase.PENDING
    cluster.until_phase("clicks", "running")
    run = cluster.jobs.get("clicks")
    assert (run.phase, run.engine, run.spec) == (JobPhase.RUNNING, "kubernetes", job("clicks"))
    assert time.time() - 60 < run.started_at < time.time() + 1
    (summary,) = cluster.jobs.runs()
    assert summary.replicas == "ps 1/1, worker 2/2"
    rows = cluster.jobs.replicas("clicks")
    assert [str(row.replica) for row in rows] == ["ps-0", "worker-0", "worker-1"]
    assert {row.phase for row in rows} == {ReplicaPhase.RUNNING}
    assert {row.host for row in rows} <= {"n0", "n1"}


def test_a_name_that_is_taken_gets_a_number(cluster: Cluster) -> None:
    assert [submit(cluster) for _ in range(3)] == ["clicks", "clicks-2", "clicks-3"]


def test_a_job_that_cannot_run_in_containers_is_refused(cluster: Cluster) -> None:
    with pytest.raises(InvalidInput, match="no image"):
        cluster.jobs.submit(job(image=None), source="", base=HERE)
    assert cluster.jobs.runs() == []


def config_maps_of(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return dict(cluster.scene.cluster.of_kind(kinds.CONFIG_MAPS))


def with_folder(tmp_path: Path) -> JobSpec:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print()")
    return job(code=Code(folder="src", path="."))


def test_a_folder_goes_with_its_job(cluster: Cluster, tmp_path: Path) -> None:
    run = cluster.jobs.submit(with_folder(tmp_path), source="", base=tmp_path)
    assert run.spec.code is not None
    assert run.spec.code.folder is None
    name = run.spec.code.config_map
    assert name is not None
    packed = config_maps_of(cluster)[name]["binaryData"]["code.tar.gz"]
    assert base64.b64decode(packed) == packed_folders.pack(tmp_path / "src")
    cluster.until_phase("clicks", "running")
    made = config_maps_of(cluster)[name]
    assert made["binaryData"]["code.tar.gz"] == packed
    resource = cluster.scene.cluster.of_kind(kinds.TRAINING_JOBS)["clicks"]
    assert executions.is_owned(made, resource), "it is deleted with its job"
    pod = cluster.scene.cluster.of_kind(kinds.PODS)["clicks-worker-0-1"]
    assert {"name": "paceline-code", "configMap": {"name": name}} in pod["spec"]["volumes"]


def test_a_job_that_is_refused_leaves_no_folder(cluster: Cluster, tmp_path: Path) -> None:
    def refuse(verb: str, plural: str, name: str) -> None:
        if (verb, plural) == ("create", kinds.TRAINING_JOBS.plural):
            raise ClusterError("forbidden", code=403)

    cluster.scene.cluster.trouble = refuse
    with pytest.raises(ClusterError, match="forbidden"):
        cluster.jobs.submit(with_folder(tmp_path), source="", base=tmp_path)
    assert config_maps_of(cluster) == {}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (Code(folder="src"), "a resource cannot carry it"),
        (Code(config_map="gone"), "default has no config map gone"),
        (Code(config_map="other"), "it has no code.tar.gz"),
    ],
)
def test_a_resource_whose_code_is_not_there_fails(cluster: Cluster, code: Code, says: str) -> None:
    other = {"metadata": {"name": "other", "namespace": "default"}, "data": {"a": "b"}}
    cluster.runner.run(cluster.scene.cluster.create(kinds.CONFIG_MAPS, other))
    cluster.runner.run(cluster.scene.submit(job(code=code)))
    cluster.until_phase("clicks", "failed")
    assert says in cluster.jobs.get("clicks").message
    assert cluster.scene.pods() == []


def test_a_config_map_of_the_users_own_stays_theirs(cluster: Cluster) -> None:
    own = {"metadata": {"name": "mine", "namespace": "default"}, "binaryData": {"code.tar.gz": "eA=="}}
    cluster.runner.run(cluster.scene.cluster.create(kinds.CONFIG_MAPS, own))
    cluster.jobs.submit(job(code=Code(config_map="mine")), source="", base=HERE)
    cluster.until_phase("clicks", "running")
    assert "ownerReferences" not in config_maps_of(cluster)["mine"]["metadata"]


def test_the_commits_of_the_pods_are_in_the_notes(cluster: Cluster) -> None:
    code = Code(git=Git(url="https://h.example/x.git", revision="main"))
    cluster.jobs.submit(job(code=code), source="", base=HERE)
    cluster.until_phase("clicks", "running")
    made = cluster.scene.cluster
    for index, name in enumerate(("clicks-worker-0-1", "clicks-worker-1-1")):
        pod = made.of_kind(kinds.PODS)[name]
        word = {"exitCode": 0, "message": json.dumps({"notes": [f"code: commit {index}"]})}
        statuses = [{"name": "code", "state": {"terminated": word}}]
        made.change(kinds.PODS, name, "default", status={**pod["status"], "initContainerStatuses": statuses})
    wanted = ["code: commit 0", "code: commit 1"]
    cluster.runner.run(cluster.scene.until(lambda: cluster.scene.status().get("notes") == wanted))
    assert cluster.jobs.get("clicks").notes == tuple(wanted)


def test_the_hosts_of_a_study_are_nodes_for_as_long_as_it_lasts(cluster: Cluster) -> None:
    spec = dataclasses.replace(job(), hosts=(Host(name="one"),))
    with cluster.jobs.housed(spec, "scenes") as confined:
        cluster.jobs.submit(confined, source="", base=HERE)
        cluster.until_phase("clicks", "running")
        assert {row.host for row in cluster.jobs.replicas("clicks")} == {"n0"}
    for each in cluster.scene.cluster.of_kind(kinds.NODES).values():
        assert not each["metadata"].get("labels")
    with cluster.jobs.housed(job(), "scenes") as same:
        assert same == job()


def test_trials_need_what_the_operator_keeps(cluster: Cluster, tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/own.db") as store:
        source = specs.dump_job(job())
        begun = tunings.begun(store, source, base=tmp_path, objective=Objective(), most_trials=2)
        with pytest.raises(InvalidInput, match="no store is named that keeps them"):
            Tuner(jobs=cluster.jobs, store=store).run(begun)
    assert cluster.jobs.runs() == []


def test_stop_resume_and_delete(cluster: Cluster) -> None:
    submit(cluster)
    cluster.until_phase("clicks", "running")
    with pytest.raises(Conflict, match="running"):
        cluster.jobs.resume("clicks")
    with pytest.raises(Conflict) as refused:
        cluster.jobs.delete("clicks")
    assert "paceline stop clicks" in str(refused.value.hint)
    cluster.jobs.stop("clicks")
    cluster.until_phase("clicks", "stopped")
    with pytest.raises(Conflict, match="ended already"):
        cluster.jobs.stop("clicks")
    cluster.jobs.resume("clicks")
    cluster.until_phase("clicks", "running")
    cluster.jobs.delete("clicks", force=True)
    assert cluster.jobs.runs() == []
    assert cluster.scene.pods() == []


def test_a_job_that_was_edited_to_a_wrong_one_can_be_stopped_and_deleted(cluster: Cluster) -> None:
    for name in ("clicks", "ads"):
        submit(cluster, name)
        cluster.until_phase(name, "running")
        cluster.runner.run(cluster.scene.edit(name, roles={"wroker": {"replicas": 1}}))
    with pytest.raises(Conflict, match="clicks is running"):
        cluster.jobs.delete("clicks")
    cluster.jobs.stop("clicks")
    cluster.until_phase("clicks", "stopped")
    with pytest.raises(Conflict, match="ended already"):
        cluster.jobs.stop("clicks")
    cluster.jobs.delete("clicks")
    cluster.jobs.delete("ads", force=True)
    assert cluster.jobs.runs() == []


def test_waiting_ends_with_the_job_or_with_its_time(cluster: Cluster) -> None:
    submit(cluster)
    with pytest.raises(WaitTimeout, match="still"):
        cluster.jobs.wait("clicks", timeout_seconds=0.0)
    cluster.scene.kubelet.exit_code = lambda pod: 0 if is_worker(pod) else None
    cluster.until_phase("clicks", "succeeded")
    assert cluster.jobs.wait("clicks").phase is JobPhase.SUCCEEDED
    with pytest.raises(Conflict, match="has succeeded"):
        cluster.jobs.resume("clicks")


def test_what_happened_is_told_in_order(cluster: Cluster) -> None:
    submit(cluster)
    cluster.until_phase("clicks", "running")
    cluster.scene.kubelet.exit_code = lambda pod: 3 if "worker-0" in pod["metadata"]["name"] else None
    cluster.until_phase("clicks", "failed")
    happened = cluster.jobs.events("clicks")
    kinds_of = [event.kind for _, event in happened]
    assert kinds_of[:2] == ["starting", "running"]
    assert kinds_of[-1] == "failed"
    (_, exited), *_ = [each for each in happened if each[1].kind == "replica-exited"]
    assert (str(exited.replica), exited.attempt, exited.message) == ("worker-0", 1, "exit code 3")
    numbers = [number for number, _ in happened]
    assert cluster.jobs.events("clicks", since_id=numbers[-2]) == happened[-1:]


def test_an_event_keeps_its_number_when_kubernetes_forgets_older_ones(cluster: Cluster) -> None:
    submit(cluster)
    cluster.until_phase("clicks", "running")
    before = cluster.jobs.events("clicks")
    for name in cluster.scene.cluster.of_kind(kinds.EVENTS):
        cluster.scene.cluster.remove(kinds.EVENTS, name)
    cluster.jobs.stop("clicks")
    cluster.until_phase("clicks", "stopped")
    later = cluster.jobs.events("clicks", since_id=before[-1][0])
    assert later[-1][1].kind == "stopped"
    assert later == cluster.jobs.events("clicks")


def test_the_numbers_of_events_stay_below_those_of_the_store_until_it_has_the_job(
    cluster: Cluster, tmp_path: Path
) -> None:
    submit(cluster)
    cluster.until_phase("clicks", "running")
    url = f"sqlite:///{tmp_path}/kept.db"
    open_store(url).close()
    measurements = ClusterMeasurements(cluster.scene.cluster, store_url=url, home=tmp_path)
    jobs = dataclasses.replace(cluster.jobs, measurements=measurements)
    assert [number for number, _ in jobs.events("clicks")] == [1, 2]
    measurements.close()


def test_events_of_one_moment_are_in_the_order_of_their_numbers(cluster: Cluster) -> None:
    submit(cluster)
    resource, now = cluster.jobs.objects.resource("clicks"), 1.8e9
    for number in range(12):
        news = Announcement("output", f"event {number}")
        event = announcements.event(resource, news, now=now, number=number)
        cluster.runner.run(cluster.scene.cluster.create(kinds.EVENTS, event))
    found = [(number, each.message) for number, each in cluster.jobs.events("clicks") if each.at == now]
    assert [message for _, message in found] == [f"event {number}" for number in range(12)]
    assert len({number for number, _ in found}) == 12
    assert found[-1][0] < 2**53  # JavaScript keeps it.


@pytest.mark.parametrize("name", ["clicks", "clicks.17f1b2c3d4e5f607", "clicks.zz.1", f"clicks.{'f' * 40}.1"])
def test_an_event_with_a_foreign_name_has_its_place_by_its_time(cluster: Cluster, name: str) -> None:
    submit(cluster)
    resource = cluster.jobs.objects.resource("clicks")
    for each, now in (("first", 1.8e9), ("theirs", 1.8e9 + 1), ("last", 1.8e9 + 2)):
        event = announcements.event(resource, Announcement("output", each), now=now, number=0)
        if each == "theirs":
            event["metadata"]["name"] = name
        cluster.runner.run(cluster.scene.cluster.create(kinds.EVENTS, event))
    found = [(number, each.message) for number, each in cluster.jobs.events("clicks") if each.at >= 1.8e9]
    assert [message for _, message in found] == ["first", "theirs", "last"]
    assert found[-1][0] < 2**53


def test_an_event_without_a_time_has_that_of_its_making(cluster: Cluster) -> None:
    submit(cluster)
    resource = cluster.jobs.objects.resource("clicks")
    event = announcements.event(resource, Announcement("output", "theirs"), now=1.8e9, number=0)
    event["metadata"]["name"] = "clicks"
    event["firstTimestamp"] = None
    cluster.runner.run(cluster.scene.cluster.create(kinds.EVENTS, event))
    stored = cluster.scene.cluster.of_kind(kinds.EVENTS)["clicks"]["metadata"]["creationTimestamp"]
    ((number, told),) = [each for each in cluster.jobs.events("clicks") if each[1].message == "theirs"]
    assert (number, told.at) == (int(times.seconds(stored) * 1e6), times.seconds(stored))


def test_logs_are_read_once_and_in_order(cluster: Cluster) -> None:
    submit(cluster)
    cluster.until_phase("clicks", "running")
    run, outputs = cluster.jobs.get("clicks"), cluster.scene.cluster.outputs
    outputs["clicks-worker-0-1"] = [OutputLine(f"2027-01-15T08:00:0{i}Z", f"step {i}") for i in range(3)]
    outputs["clicks-ps-0-1"] = [OutputLine("2027-01-15T08:00:00Z", "serving")]
    found = [(str(line.replica), line.text) for line in cluster.jobs.logs(run, LogSelection(tail=2))]
    assert found == [("ps-0", "serving"), ("worker-0", "step 1"), ("worker-0", "step 2")]
    answers = iter([True, True, False])

    def follow() -> bool:
        outputs["clicks-worker-0-1"].append(OutputLine(f"2027-01-15T08:00:1{len(outputs)}Z", "more"))
        return next(answers)

    lines = [line.text for line in cluster.jobs.logs(run, follow=follow)]
    assert lines.count("step 0") == 1
    assert lines.count("serving") == 1


def test_a_job_that_is_not_there_is_not_found(cluster: Cluster) -> None:
    submit(cluster)
    with pytest.raises(NotFound, match="did you mean 'clicks'"):
        cluster.jobs.get("click")
    cluster.scene.cluster.objects.pop((kinds.TRAINING_JOBS.plural, "default", "clicks"))


def test_workers_are_scaled(cluster: Cluster) -> None:
    submit(cluster)
    cluster.until_phase("clicks", "running")
    cluster.jobs.scale("clicks", 3)
    cluster.runner.run(cluster.scene.until(lambda: cluster.scene.status()["ready"] == "4/4"))
    assert [str(row.replica) for row in cluster.jobs.replicas("clicks")][-1] == "worker-2"
    with pytest.raises(Conflict, match="18 workers at most, not 20"):
        cluster.jobs.scale("clicks", 20)
    cluster.jobs.stop("clicks")
    cluster.until_phase("clicks", "stopped")
    with pytest.raises(Conflict, match="does not run"):
        cluster.jobs.scale("clicks", 2)


@pytest.mark.parametrize(
    "spec",
    [
        job(),
        job(labels={"model": "deepfm"}),
        job(command=("python", "-m", "train", "--lr=1"), training={"hidden_units": [64, 32]}),
        dataclasses.replace(
            job(), command=(), roles=tuple(dataclasses.replace(r, command=("a", "b.py")) for r in job().roles)
        ),
    ],
)
def test_the_model_of_a_resource_is_that_of_its_job(cluster: Cluster, spec: JobSpec) -> None:
    cluster.jobs.submit(spec, source="", base=HERE)
    (run,) = cluster.jobs.runs()
    assert run.model == trained_models.name_of(spec)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_two_servers_that_are_sent_one_submit_at_once_make_one_job(cluster: Cluster, at: int) -> None:
    """Another one is quicker, whenever this one looks at what there is."""
    key = Submit(key="nightly", fingerprint="f")
    memory = cluster.scene.cluster
    looks = 0

    async def listed(kind: kinds.ResourceKind, **where: Any) -> Any:
        nonlocal looks
        looks += kind is kinds.TRAINING_JOBS
        found = await type(memory).list(memory, kind, **where)
        if kind is kinds.TRAINING_JOBS and looks == at:
            other = custom_resources.resource(job(), "default")
            other["metadata"]["annotations"] = {SUBMIT: key.key, FINGERPRINT: key.fingerprint}
            await memory.create(kinds.TRAINING_JOBS, other)
        return found

    # Only this one's client: the operator's looks are its own.
    client = SimpleNamespace(list=listed, create=memory.create, get=memory.get)
    jobs = dataclasses.replace(cluster.jobs, cluster=client)  # type: ignore[arg-type]
    jobs.submit(job(), source="", base=HERE, submit=key)
    assert list(memory.of_kind(kinds.TRAINING_JOBS)) == ["clicks"]
