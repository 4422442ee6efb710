"""A cluster in memory with nodes and an operator that can be ended and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

from paceline.engines.kubernetes import kinds
from paceline.model.jobs.job_specs import JobSpec, RestartPolicy, RoleSpec
from paceline.model.roles import Role
from paceline.rendering import labels
from paceline.rendering.surroundings import AgentSetup
from paceline.services.operators.operators import Operator
from paceline.specs.job_file import custom_resources
from support.kubelets import Kubelet, Pod, node
from support.memory_clusters import MemoryCluster

JOBS = kinds.TRAINING_JOBS


def job(name: str = "clicks", *, workers: int = 2, **more: Any) -> JobSpec:
    restart = RestartPolicy(limit=3, backoff_seconds=0.02)
    roles = (
        RoleSpec(role=Role.PS, restart=restart, cpu_cores=1.0),
        RoleSpec(role=Role.WORKER, replicas=workers, restart=restart, cpu_cores=1.0),
    )
    defaults: dict[str, Any] = {"image": "clicks:1", "command": ("train",)}
    return JobSpec(name=name, **{"roles": roles, **defaults, **more})


class Scene:
    """A cluster with nodes, and an operator that can be ended and replaced."""

    def __init__(self, *nodes: dict[str, Any], namespaces: Collection[str] | None = None) -> None:
        self.namespaces = namespaces
        self.cluster = MemoryCluster(time.time)
        self.nodes = nodes or (node("n0"), node("n1"))
        self.kubelet = Kubelet(self.cluster)
        self.operator: Operator | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self) -> None:
        for each in self.nodes:
            await self.cluster.create(kinds.NODES, each)
        self._tasks["kubelet"] = asyncio.create_task(self.kubelet.run())
        self.start_operator()

    def start_operator(self) -> None:
        self.operator = Operator(
            self.cluster, agent=AgentSetup(image="paceline:test"), clock=time.time, namespaces=self.namespaces
        )
        self._tasks["operator"] = asyncio.create_task(self.operator.run())

    async def end(self, name: str = "operator") -> None:
        task = self._tasks.pop(name)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def close(self) -> None:
        for name in list(self._tasks):
            await self.end(name)

    async def submit(self, spec: JobSpec) -> None:
        await self.cluster.create(JOBS, custom_resources.resource(spec, "default"))

    async def edit(self, name: str, **spec: Any) -> None:
        await self.cluster.patch(JOBS, name, "default", {"spec": spec})

    def status(self, name: str = "clicks") -> dict[str, Any]:
        return self.cluster.of_kind(JOBS)[name].get("status") or {}

    def pods(self, name: str = "clicks") -> list[str]:
        found = self.cluster.of_kind(kinds.PODS)
        return sorted(pod for pod, each in found.items() if each["metadata"]["labels"][labels.JOB] == name)

    async def until(self, holds: Callable[[], Any], what: str = "", seconds: float = 240.0) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert not self._tasks["kubelet"].done(), self._tasks["kubelet"].exception()
            if "operator" in self._tasks:
                assert not self._tasks["operator"].done(), self._tasks["operator"].exception()
            assert time.monotonic() < deadline, (
                what,
                {name: each.get("status") for name, each in self.cluster.of_kind(JOBS).items()},
                list(self.cluster.of_kind(kinds.PODS)),
            )
            await asyncio.sleep(0.005)

    async def until_phase(self, phase: str, name: str = "clicks") -> None:
        await self.until(lambda: self.status(name).get("phase") == phase, f"never {phase}:")


@contextlib.asynccontextmanager
async def scene(*nodes: dict[str, Any], namespaces: Collection[str] | None = None) -> AsyncIterator[Scene]:
    made = Scene(*nodes, namespaces=namespaces)
    try:
        await made.begin()
        yield made
    finally:
        await made.close()
    assert made.operator is not None
    assert made.operator.counters.failures == 0


def is_worker(pod: Pod) -> bool:
    return bool(pod["metadata"]["labels"][labels.ROLE] == "worker")
