"""What agents have written is stored once, even if collectors die: over real agents, a cluster in memory."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agents import PodAgent, wait_until
from support.memory_clusters import MemoryCluster
from support.operator_scenes import job

from paceline.engines.kubernetes.clusters import ClusterError
from paceline.errors import StoreError
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.cluster import runs
from paceline.services.cluster.collectors import AttemptSource, Collector
from paceline.services.observing import recordings
from paceline.specs.job_file import custom_resources
from paceline.stores import Store, open_store

WORKER = ReplicaId(Role.WORKER, 0)


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'paceline.db'}") as opened:
        yield opened


@pytest.fixture
def source(store: Store, tmp_path: Path) -> AttemptSource:
    resource = custom_resources.resource(job(), "default")
    resource["metadata"] |= {"uid": "uid-1", "creationTimestamp": "2027-01-15T08:00:00Z"}
    run = runs.run_name(resource, "default.uid-0/")
    runs.keep(store, run, resource, custom_resources.job_spec(resource), tmp_path, now=0.0)
    return AttemptSource(run=run, replica=WORKER, attempt=1, namespace="default", pod="clicks-worker-0-1")


@pytest.fixture
def agent(cluster: MemoryCluster, tmp_path: Path) -> Iterator[PodAgent]:
    one = PodAgent(cluster, tmp_path, "clicks-worker-0-1")
    one.start(WORKER)
    wait_until(lambda: one.lines("step"))
    yield one
    one.kill()


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """A store whose user dies before or after a write, as often as it is told."""

    def __init__(self, store: Store, chance: random.Random) -> None:
        self._store, self._chance = store, chance

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def append_from_spool(self, *arguments: Any, **more: Any) -> None:
        fate = self._chance.choice(("before", "after", "failing", "well"))
        if fate == "before":
            raise Died
        if fate == "failing":
            raise StoreError("the disk is full")
        self._store.append_from_spool(*arguments, **more)
        if fate == "after":
            raise Died


def stored_steps(store: Store, run: str) -> list[int | None]:
    return [report.step for report in store.step_reports(run)]


def test_nothing_twice_and_nothing_lost_when_collectors_die(
    cluster: MemoryCluster, store: Store, source: AttemptSource, agent: PodAgent
) -> None:
    chance = random.Random(7)
    deaths = failures = 0
    collector = Collector(cluster, Mortal(store, chance))  # type: ignore[arg-type]
    ended = False
    for number in range(200):
        if number == 20:
            agent.finish()
        try:
            ended = asyncio.run(collector.collect(source, again_seconds=5))
        except Died:
            deaths += 1
            collector = Collector(cluster, Mortal(store, chance))  # type: ignore[arg-type]
        except StoreError:
            failures += 1
        except ClusterError:
            # Who died behind the last line and asked again has let it go.
            ended = not agent.is_alive()
        if ended:
            break
    assert ended
    assert deaths > 3
    assert failures > 1
    assert stored_steps(store, source.run) == [line["step"] for line in agent.lines("step")]
    assert len(store.samples(source.run)) == len(agent.lines("sample"))
    assert [event.kind for _, event in store.events(source.run)].count("started") == 1


def test_the_pod_of_a_command_that_has_ended_waits_until_it_is_let_go(
    cluster: MemoryCluster, store: Store, source: AttemptSource, agent: PodAgent
) -> None:
    collector = Collector(cluster, store)
    assert asyncio.run(collector.collect(source, again_seconds=60)) is False
    agent.finish()
    wait_until(lambda: agent.lines("exited"))
    assert asyncio.run(collector.collect(source, again_seconds=60)) is True
    assert stored_steps(store, source.run) == [line["step"] for line in agent.lines("step")]
    assert agent.is_alive()
    asyncio.run(collector.let_go(source))
    wait_until(lambda: not agent.is_alive())


def test_two_that_collect_at_once_store_each_line_once(
    cluster: MemoryCluster, store: Store, source: AttemptSource, agent: PodAgent
) -> None:
    def collect() -> None:
        collector = Collector(cluster, store)
        for _ in range(15):
            asyncio.run(collector.collect(source))

    threads = [threading.Thread(target=collect) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = stored_steps(store, source.run)
    assert len(found) > 3
    assert found == sorted(set(found))  # type: ignore[type-var]
    assert found == [line["step"] for line in agent.lines("step")][: len(found)]


def test_of_a_long_spool_its_end_is_enough(
    cluster: MemoryCluster, store: Store, source: AttemptSource, agent: PodAgent
) -> None:
    wait_until(lambda: len(agent.lines("sample")) > 12)
    collector = Collector(cluster, store, last_bytes=2000)
    asyncio.run(collector.collect(source))
    few = len(store.samples(source.run))
    assert 0 < few < 12
    wait_until(lambda: len(agent.lines("sample")) > 20)
    asyncio.run(collector.collect(source))
    found = stored_steps(store, source.run)
    assert found == list(range(found[0], found[-1] + 1))  # type: ignore[operator,arg-type]


def test_a_pod_that_does_not_answer_is_an_error_that_names_it(
    cluster: MemoryCluster, store: Store, source: AttemptSource, agent: PodAgent
) -> None:
    agent.kill()
    with pytest.raises(ClusterError, match="reach"):
        asyncio.run(Collector(cluster, store).collect(source))
    assert store.samples(source.run) == []


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>", b"[]\n", b'{"offset": -1, "size": 2}\n', b'{"offset": 7, "size": 20}\n{"a": 1}\n'],
)
def test_an_answer_that_is_none_is_refused(
    cluster: MemoryCluster,
    store: Store,
    source: AttemptSource,
    answer: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read(path: str, **_: object) -> bytes:
        return answer

    monkeypatch.setattr(cluster, "read", read)
    with pytest.raises(ClusterError, match="clicks-worker-0-1"):
        asyncio.run(Collector(cluster, store).collect(source))


def test_an_endless_spool_does_not_hold_up_the_collector(
    cluster: MemoryCluster, store: Store, source: AttemptSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def read(path: str, **_: object) -> bytes:
        offset = int(path.rpartition("=")[2])
        asked.append(offset)
        return b'{"offset": %d, "size": 1000000}\n{"type": "note"}\n' % offset

    monkeypatch.setattr(cluster, "read", read)
    assert asyncio.run(Collector(cluster, store).collect(source)) is False
    assert asked == sorted(set(asked))
    assert len(asked) < 50


@pytest.mark.parametrize("ahead", [3600.0, -3600.0])
def test_what_a_clock_of_another_hour_writes_is_kept_by_our_own(
    cluster: MemoryCluster, store: Store, source: AttemptSource, agent: PodAgent, ahead: float
) -> None:
    """To a server whose clock differs by an hour from the node's, the measurements are of now."""
    collector = Collector(cluster, store, clock=lambda: time.time() - ahead)
    asyncio.run(collector.collect(source))
    now = time.time() - ahead
    found = [*store.samples(source.run), *store.step_reports(source.run)]
    assert found
    assert all(abs(each.at - now) < 600 for each in found)


def test_clocks_that_agree_leave_times_as_they_are(
    cluster: MemoryCluster, store: Store, source: AttemptSource, agent: PodAgent
) -> None:
    asyncio.run(Collector(cluster, store).collect(source))
    written = {line["at"] for line in agent.lines("step")}
    assert {each.at for each in store.step_reports(source.run)} <= written


def test_a_clock_that_was_set_back_leaves_nothing_of_later_in_a_look(
    store: Store, source: AttemptSource
) -> None:
    steps = [
        StepReport(replica=WORKER, attempt=1, at=at, interval_seconds=10.0, step=step)
        for at, step in ((4000.0, 100), (4010.0, 200), (20.0, 300), (30.0, 400))
    ]
    store.append_step_reports(source.run, steps)
    found = recordings.read(store, store.get_run(source.run), at=31.0)
    assert [each.step for each in found.steps] == [300, 400]
