"""An operator that was told its namespaces: it looks after those, and at no other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.kubelets import Kubelet
from support.memory_clusters import MemoryCluster
from support.operator_scenes import JOBS, job

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import ClusterError, Listing
from paceline.engines.kubernetes.kinds import ResourceKind
from paceline.model.jobs.statuses import JobPhase
from paceline.rendering.surroundings import AgentSetup
from paceline.services.cluster import runs
from paceline.services.operators import operators
from paceline.services.operators.operators import Operator
from paceline.services.operators.rounds import CollectionRounds
from paceline.specs.job_file import custom_resources
from paceline.stores import open_store


class Guarded(MemoryCluster):
    """A cluster in which only some namespaces may be looked at."""

    def __init__(self, *allowed: str) -> None:
        super().__init__(time.time)
        self.allowed = set(allowed)
        self.trusted: set[Any] = set()
        self.kubelet = Kubelet(self)

    async def list(self, kind: ResourceKind, *, namespace: str | None = None, selector: str = "") -> Listing:
        is_guarded = kind in (JOBS, kinds.PODS, kinds.NODES) and namespace not in self.allowed
        if is_guarded and asyncio.current_task() not in self.trusted:
            raise ClusterError(f"{kind.plural} is forbidden", code=403, reason="Forbidden")
        return await super().list(kind, namespace=namespace, selector=selector)

    def phase(self, namespace: str) -> str | None:
        found = self.objects["trainingjobs", namespace, f"clicks-{namespace}"]
        phase = (found.get("status") or {}).get("phase")
        return None if phase is None else str(phase)


async def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 240
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def with_operator(cluster: Guarded, told: list[str], play: Callable[[Operator], Any]) -> None:
    """Submit a job in each of three namespaces, and run an operator meanwhile."""
    for namespace in ("a", "b", "c"):
        await cluster.create(
            JOBS, custom_resources.resource(job(f"clicks-{namespace}", workers=1), namespace)
        )
    kubelet = asyncio.create_task(cluster.kubelet.run())
    cluster.trusted = {kubelet}
    operator = Operator(cluster, agent=AgentSetup(image="paceline:test"), clock=time.time, namespaces=told)
    running = asyncio.create_task(operator.run())
    try:
        await play(operator)
        assert not running.done(), running.exception()
    finally:
        for task in (running, kubelet):
            task.cancel()
        await asyncio.gather(running, kubelet, return_exceptions=True)


def test_it_looks_after_its_own_and_at_no_other() -> None:
    cluster = Guarded("a", "b")

    async def play(operator: Operator) -> None:
        await until(lambda: [cluster.phase("a"), cluster.phase("b")] == ["running"] * 2)
        assert operator.namespaces() == {"a", "b"}
        assert {each["metadata"]["namespace"] for each in operator.jobs()} == {"a", "b"}

    asyncio.run(with_operator(cluster, ["a", "b"], play))
    assert cluster.phase("c") is None
    assert not [key for key in cluster.objects if key[0] == "pods" and key[1] == "c"]


def test_one_that_it_may_not_look_at_keeps_the_others_not_waiting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor are its jobs held to be deleted, or begun anew before their pods are known."""
    monkeypatch.setattr(operators, "ALL_KNOWN_SECONDS", 0.3)
    cluster, url = Guarded("a"), f"sqlite:///{tmp_path / 'paceline.db'}"

    async def play(operator: Operator) -> None:
        rounds = CollectionRounds(
            cluster, operator, store_url=url, home=tmp_path, clock=time.time, keep_seconds=0.0
        )
        with open_store(url) as store:
            resource = cluster.objects["trainingjobs", "b", "clicks-b"]
            run = runs.run_name(resource, "b.uid-of-b/")
            runs.keep(store, run, resource, job("clicks-b", workers=1), tmp_path, now=1.0)
            going_round = asyncio.create_task(rounds.run())
            try:
                await until(lambda: cluster.phase("a") == "running")
                await until(lambda: rounds.counters.rounds > 0)
                assert store.get_run(run).phase is JobPhase.PENDING, "it is not deleted"
                assert cluster.phase("b") is None
                cluster.allowed.add("b")
                await until(lambda: cluster.phase("b") == "running")
                assert operator.namespaces() == {"a", "b"}
            finally:
                going_round.cancel()
                await asyncio.gather(going_round, return_exceptions=True)

    asyncio.run(with_operator(cluster, ["a", "b"], play))
