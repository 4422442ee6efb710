"""What the operator keeps of replicas: real agents behind a cluster in memory, with an operator on it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import datetime
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from support.agents import PodAgent
from support.operator_scenes import JOBS, Scene, job, scene
from support.recorded import text

from paceline.engines.kubernetes import kinds, loops
from paceline.engines.kubernetes.clusters import ClusterError, OutputLine
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import ReplicaId, Role
from paceline.services import logs
from paceline.services.cluster import runs
from paceline.services.cluster.jobs import ClusterJobs
from paceline.services.cluster.measurements import ClusterMeasurements
from paceline.services.operators import output_floods, rounds
from paceline.services.operators.rounds import CollectionRounds
from paceline.stores import Store, open_store

WORKER = ReplicaId(Role.WORKER, 0)
SCOPE = "default.uid-of-default/"


@pytest.fixture(autouse=True)
def _quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "ROUND_SECONDS", 0.3)
    # Agents wait for an operator that a busy machine holds up.
    monkeypatch.setattr(rounds, "SLACK_SECONDS", 300.0)
    monkeypatch.setattr(rounds, "LEAVING_SECONDS", 0.05)
    monkeypatch.setattr(rounds, "LOG_SECONDS", 0.2)
    monkeypatch.setattr(rounds, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(rounds, "TIDY_SECONDS", 0.2)


class Kept:
    """A scene whose operator keeps what replicas say."""

    def __init__(self, found: Scene, home: Path) -> None:
        self.scene = found
        self.home = home
        self.url = f"sqlite:///{home / 'paceline.db'}"
        self.agents: dict[str, PodAgent] = {}
        self.rounds: CollectionRounds | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, *, keep_seconds: float = 3600.0) -> None:
        assert self.scene.operator is not None
        self.rounds = CollectionRounds(
            self.scene.cluster, self.scene.operator, store_url=self.url, home=self.home, clock=time.time,
            keep_seconds=keep_seconds,
        )  # fmt: skip
        self._task = asyncio.create_task(self.rounds.run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def agent(self, pod: str, replica: ReplicaId = WORKER, *, has_token: bool = True) -> PodAgent:
        """Start the agent of a pod, with the token that the pod has; or one of an older operator's."""
        cluster, token = self.scene.cluster, None
        if has_token:
            found = cluster.of_kind(kinds.PODS)[pod]["spec"]
            (own,) = (each for each in found["volumes"] if each["name"] == "paceline-config")
            (name,) = (each["secret"]["name"] for each in own["projected"]["sources"] if "secret" in each)
            arguments = json.loads(found["containers"][0]["command"][-1])
            assert arguments["token_file"] == "/paceline/config/token"
            data = cluster.of_kind(kinds.SECRETS)[name]["data"]["token"]
            token = base64.b64decode(data).decode()
            assert len(token) > 40
        self.agents[pod] = PodAgent(cluster, self.home / "pods", pod)
        self.agents[pod].start(replica, token=token)
        return self.agents[pod]

    async def until(self, holds: Callable[[Store], Any], seconds: float = 240.0) -> Any:
        """Wait until the store has something, and return that."""
        with open_store(self.url) as store:
            deadline = time.monotonic() + seconds
            while not (found := holds(store)):
                assert self._task is None or not self._task.done(), self._task.exception()
                assert time.monotonic() < deadline, (
                    self.rounds and self.rounds.counters,
                    self.scene.status(),
                )
                await asyncio.sleep(0.02)
            return found

    def run(self, store: Store, name: str = "clicks") -> str:
        return runs.find(store, SCOPE, name).name


@contextlib.asynccontextmanager
async def keeping(home: Path) -> AsyncIterator[Kept]:
    async with scene() as found:
        kept = Kept(found, home)
        try:
            await found.submit(job(workers=1))
            await found.until_phase("running")
            yield kept
        finally:
            await kept.stop()
            for agent in kept.agents.values():
                agent.kill()


def printed(folder: Path, wanted: Callable[[ReplicaId], bool] = lambda replica: True) -> list[str]:
    """Return what is kept of the output of a run's replicas."""
    reader = logs.FolderReader(RunFolder(folder), logs.LogSelection(replica=wanted))
    return [line.text for line in logs.lines(reader)]


def test_an_end_that_is_asked_for_is_not_lost_in_an_error(tmp_path: Path) -> None:
    """Of a group of tasks one may fail as the whole is cancelled: then it tells of the failure alone."""

    async def play() -> None:
        async with keeping(tmp_path) as kept:
            asked = asyncio.Event()

            async def breaks(*_: object, **__: object) -> bytes:
                asked.set()
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    raise RuntimeError("the answer was cut off") from None
                return b""

            kept.agent("clicks-worker-0-1")
            kept.scene.cluster.read = breaks  # type: ignore[method-assign]
            kept.start()
            await asked.wait()
            done, _ = await asyncio.wait([asyncio.ensure_future(kept.stop())], timeout=240)
            assert done
            assert kept.rounds is not None
            assert kept.rounds.counters.failures == 1

    asyncio.run(play())


def test_agents_that_an_older_operator_began_are_read(tmp_path: Path) -> None:
    """Its pods have no token, and their job no secret before a replica is launched again."""

    async def play() -> None:
        async with keeping(tmp_path) as kept:
            kept.scene.cluster.remove(kinds.SECRETS, "clicks-agent")
            kept.agent("clicks-worker-0-1", has_token=False)
            kept.start()
            await kept.until(lambda store: store.run_names_like(f"{SCOPE}clicks/"))
            await kept.until(lambda store: store.step_reports(kept.run(store)))

    asyncio.run(play())


def test_a_job_has_a_token_of_its_own(tmp_path: Path) -> None:
    async def play() -> None:
        async with keeping(tmp_path) as kept:
            await kept.scene.submit(job("other", workers=1))
            await kept.scene.until_phase("running", "other")
            secrets = kept.scene.cluster.of_kind(kinds.SECRETS)
            tokens = {name: each["data"]["token"] for name, each in secrets.items()}
            assert tokens.keys() == {"clicks-agent", "other-agent"}
            assert len(set(tokens.values())) == 2
            (reference,) = secrets["clicks-agent"]["metadata"]["ownerReferences"]
            assert (reference["kind"], reference["name"]) == ("TrainingJob", "clicks"), "it goes with its job"

    asyncio.run(play())


def test_samples_steps_and_output_outlive_the_pods(tmp_path: Path) -> None:
    async def play() -> None:
        async with keeping(tmp_path) as kept:
            cluster = kept.scene.cluster
            agent = kept.agent("clicks-worker-0-1")
            cluster.outputs["clicks-worker-0-1"] = [OutputLine("2027-01-15T08:00:00Z", "begun")]
            kept.start()
            await kept.until(lambda store: store.run_names_like(f"{SCOPE}clicks/"))
            await kept.until(lambda store: store.step_reports(kept.run(store)))
            cluster.outputs["clicks-worker-0-1"].append(OutputLine("2027-01-15T08:00:09Z", "done"))
            agent.finish()
            await kept.scene.until(lambda: not agent.is_alive(), "it was not let go")
            kept.scene.kubelet.exit_code = lambda pod: 0
            await kept.scene.until_phase("succeeded")
            run = await kept.until(
                lambda store: (run := runs.find(store, SCOPE, "clicks")).phase.is_final and run
            )
            assert run.phase is JobPhase.SUCCEEDED
            await cluster.delete(JOBS, "clicks", "default")
            assert kept.scene.pods() == []
            with open_store(kept.url) as store:
                assert [each.step for each in store.step_reports(run.name)] == [
                    line["step"] for line in agent.lines("step")
                ]
                assert len(store.samples(run.name)) == len(agent.lines("sample"))
                kinds_of = [event.kind for _, event in store.events(run.name)]
                assert {"running", "started", "replica-exited", "succeeded"} <= set(kinds_of)
                (row,) = [row for row in store.replicas(run.name) if row.replica == WORKER]
                assert row.exit is not None
            assert run.started_at is not None
            assert printed(Path(run.directory), WORKER.__eq__) == ["begun", "done"]

    asyncio.run(play())


def test_another_operator_goes_on_where_one_was_killed(tmp_path: Path) -> None:
    async def play() -> None:
        async with keeping(tmp_path) as kept:
            agent = kept.agent("clicks-worker-0-1")
            output = kept.scene.cluster.outputs["clicks-worker-0-1"] = []
            for number in range(5):
                output.append(OutputLine(f"2027-01-15T08:00:0{number}Z", f"line {number}"))
                before = len(agent.lines("step"))
                kept.start()
                await kept.until(
                    lambda store, before=before: (
                        store.run_names_like(f"{SCOPE}clicks/")
                        and len(store.step_reports(kept.run(store))) > before
                    )
                )
                await asyncio.sleep(0.3)
                await kept.stop()
            kept.start()
            agent.finish()
            await kept.scene.until(lambda: not agent.is_alive())
            with open_store(kept.url) as store:
                run = runs.find(store, SCOPE, "clicks")
                steps = [each.step for each in store.step_reports(run.name)]
            assert steps == [line["step"] for line in agent.lines("step")]
            assert printed(Path(run.directory)) == [f"line {number}" for number in range(5)]

    asyncio.run(play())


def test_a_flood_of_output_is_said_once_whichever_operator_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How fast is judged elsewhere (`test_output_floods`).
    monkeypatch.setattr(output_floods, "FLOOD_BYTES_PER_SECOND", 1)
    monkeypatch.setattr(output_floods, "FLOOD_BYTES", 1)

    async def play() -> None:
        async with keeping(tmp_path) as kept:
            cluster = kept.scene.cluster
            kept.agent("clicks-worker-0-1")
            cluster.outputs["clicks-ps-0-1"] = [OutputLine("2027-01-15T08:00:00Z", "serving")]
            looks: list[int] = []

            def print_more(verb: str, plural: str, name: str) -> None:
                if (verb, name) == ("logs", "clicks-worker-0-1"):
                    looks.append(len(looks))
                    now = datetime.datetime.now(datetime.UTC)
                    output = cluster.outputs.setdefault(name, [])
                    output.append(OutputLine(f"{now:%Y-%m-%dT%H:%M:%S.%f}Z", "x" * 100_000))

            cluster.trouble = print_more
            for _ in range(2):  # Another operator goes on.
                before = len(looks)
                kept.start()
                await kept.scene.until(lambda before=before: len(looks) > before + 6)
                await kept.stop()
            with open_store(kept.url) as store:
                found = [event for _, event in store.events(kept.run(store)) if event.kind == "output"]
            (event,) = found
            assert (event.replica, event.attempt) == (WORKER, 1)
            assert f"at each of {output_floods.LEAST_LOOKS} looks" in event.message
            # Those who cannot read the store are told by the cluster, once too.
            measurements = ClusterMeasurements(cluster, store_url=None, home=tmp_path)
            with contextlib.closing(measurements), loops.threaded() as loop:
                jobs = ClusterJobs(cluster, "default", loop, measurements)
                recording = await asyncio.to_thread(jobs.recording, "clicks", since=0.0)
            told = [each for each in recording.events if each.kind == "output"]
            assert [dataclasses.replace(each, at=event.at) for each in told] == [event]

    asyncio.run(play())


def test_a_broken_store_and_silent_pods_disturb_no_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        async with keeping(tmp_path) as kept:
            (tmp_path / "paceline.db").mkdir()  # no database can be here
            kept.start()
            assert kept.rounds is not None
            counters = kept.rounds.counters
            await kept.scene.until(lambda: counters.failures > 2)
            (tmp_path / "paceline.db").rmdir()
            # No agent answers in the pods; their output is kept all the same.
            kept.scene.cluster.outputs["clicks-ps-0-1"] = [OutputLine("2027-01-15T08:00:00Z", "serving")]
            await kept.until(lambda store: store.run_names_like(f"{SCOPE}clicks/"))
            with open_store(kept.url) as store:
                folder = Path(runs.find(store, SCOPE, "clicks").directory)
            await kept.scene.until(lambda: printed(folder) == ["serving"])
            await kept.scene.edit("clicks", suspend=True)
            await kept.scene.until_phase("stopped")
            assert counters.answers == 0

    asyncio.run(play())
    assert "not kept for now" in caplog.text
    assert "a round failed" not in caplog.text


def test_replicas_whose_agents_are_silent_are_measured_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rounds, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(rounds, "OUTSIDE_SECONDS", 0.1)

    async def play() -> None:
        async with keeping(tmp_path) as kept:
            cluster = kept.scene.cluster
            node = cluster.of_kind(kinds.PODS)["clicks-ps-0-1"]["spec"]["nodeName"]
            path = f"/api/v1/nodes/{node}/proxy/metrics/cadvisor"

            async def until_asked_again() -> None:
                asked = cluster.calls.count(("GET", path))
                await kept.scene.until(lambda: cluster.calls.count(("GET", path)) > asked + 1)

            def answer(number: int) -> None:
                said = text(f"cadvisor.{number}.txt").replace('namespace="ml"', 'namespace="default"')
                cluster.pages[path] = said.encode()

            answer(1)
            kept.start()
            await kept.until(lambda store: store.run_names_like(f"{SCOPE}clicks/"))
            await until_asked_again()
            answer(2)
            (sample,) = await kept.until(lambda store: store.samples(kept.run(store), role=Role.PS))
            assert (sample.attempt, sample.memory_bytes) == (1, 606208)
            assert (sample.cpu_cores, sample.cpu_limit_cores) == (pytest.approx(0.03507, abs=1e-5), 0.5)
            await until_asked_again()
            with open_store(kept.url) as store:
                assert len(store.samples(kept.run(store))) == 1, "nothing is said twice"
            assert kept.rounds is not None
            assert kept.rounds.counters.answers == 0

    asyncio.run(play())
    assert "Traceback" not in caplog.text


def test_two_jobs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    async def play() -> None:
        async with keeping(tmp_path) as kept:
            kept.start()
            await kept.until(lambda store: store.run_names_like(f"{SCOPE}clicks/"))
            await kept.scene.cluster.delete(JOBS, "clicks", "default")
            await kept.until(lambda store: runs.find(store, SCOPE, "clicks").phase.is_final)
            await asyncio.sleep(1.1)  # resources are as old as whole seconds
            await kept.scene.submit(job(workers=3))
            await kept.scene.cluster.create(JOBS, _elsewhere())
            await kept.until(lambda store: len(store.run_names_like(f"{SCOPE}clicks/")) == 2)
            await kept.until(lambda store: store.run_names_like("ads.uid-of-ads/clicks/"))
            with open_store(kept.url) as store:
                newest = runs.find(store, SCOPE, "clicks")
                assert len(newest.spec.replicas()) == 4
                assert newest.phase is not JobPhase.STOPPED
                (old,) = store.run_names_like(f"{SCOPE}clicks/") - {newest.name}
                assert store.get_run(old).message == runs.DELETED

    asyncio.run(play())


def test_a_namespace_that_is_made_anew_does_not_inherit(tmp_path: Path) -> None:
    async def play() -> None:
        async with keeping(tmp_path) as kept:
            kept.start()
            await kept.until(lambda store: store.run_names_like(f"{SCOPE}clicks/"))
            cluster = kept.scene.cluster
            await cluster.delete(JOBS, "clicks", "default")
            await kept.until(lambda store: runs.find(store, SCOPE, "clicks").phase.is_final)
            cluster.namespaces["default"] = "another"
            await kept.scene.submit(job(workers=2))
            await kept.until(lambda store: store.run_names_like("default.another/clicks/"))
            with open_store(kept.url) as store:
                assert len(store.run_names_like(f"{SCOPE}clicks/")) == 1
                assert len(runs.find(store, "default.another/", "clicks").spec.replicas()) == 3

    asyncio.run(play())


def test_a_job_is_not_held_to_be_deleted_while_its_namespace_cannot_be_asked(tmp_path: Path) -> None:
    async def play() -> None:
        async with keeping(tmp_path) as kept:
            kept.start(keep_seconds=0.0)
            await kept.until(lambda store: store.run_names_like(f"{SCOPE}clicks/"))
            await kept.stop()

            def refuse(verb: str, plural: str, name: str) -> None:
                if (verb, plural) == ("get", "namespaces"):
                    raise ClusterError("namespaces is forbidden", code=403)

            kept.scene.cluster.trouble = refuse
            kept.start(keep_seconds=0.0)
            assert kept.rounds is not None
            counters = kept.rounds.counters
            await kept.scene.until(lambda: counters.rounds > 3)
            assert counters.failures > 0
            with open_store(kept.url) as store:
                assert not runs.find(store, SCOPE, "clicks").phase.is_final

    asyncio.run(play())


def _elsewhere() -> dict[str, Any]:
    from paceline.specs.job_file import custom_resources

    return custom_resources.resource(job(), "ads")


def test_runs_are_forgotten_in_time(tmp_path: Path) -> None:
    async def play() -> None:
        async with keeping(tmp_path) as kept:
            kept.scene.cluster.outputs["clicks-ps-0-1"] = [OutputLine("2027-01-15T08:00:00Z", "serving")]
            kept.start(keep_seconds=0.5)
            await kept.until(lambda store: store.run_names_like(f"{SCOPE}clicks/"))
            with open_store(kept.url) as store:
                folder = Path(runs.find(store, SCOPE, "clicks").directory)
            await kept.scene.until(folder.exists)
            assert kept.rounds is not None
            counters = kept.rounds.counters
            seen = counters.rounds
            # Longer than the half second, and tidied several times.
            await kept.scene.until(lambda: counters.rounds > seen + 4)
            assert folder.exists()
            await kept.scene.cluster.delete(JOBS, "clicks", "default")
            await kept.until(lambda store: not store.run_names_like(f"{SCOPE}clicks/"))
            assert not folder.exists()

    asyncio.run(play())


def test_only_what_is_there_is_asked(tmp_path: Path) -> None:
    """A refused right to the proxy is told and not tried at every turn."""

    async def play() -> None:
        async with keeping(tmp_path) as kept:
            asked = []

            def refuse(verb: str, plural: str, name: str) -> None:
                if plural == "proxy":
                    asked.append(name)
                    raise ClusterError("pods is forbidden", code=403, reason="Forbidden")

            kept.scene.cluster.trouble = refuse
            kept.start()
            await kept.until(lambda store: kept.rounds and kept.rounds.counters.rounds > 8)
            assert 2 <= len(asked) <= 2 * 5

    asyncio.run(play())
