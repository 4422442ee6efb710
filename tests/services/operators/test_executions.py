"""Commands on the objects of a job, over a cluster in memory that refuses some requests."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from support.memory_clusters import MemoryCluster
from support.operator_scenes import JOBS, job

from paceline.control import commands, events
from paceline.control.reconciliations import ReconcileProgress
from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.model.roles import ReplicaId, Role
from paceline.rendering.surroundings import AgentSetup
from paceline.services.cluster import records
from paceline.services.cluster.records import JobRecord
from paceline.services.operators.executions import Executor
from paceline.specs.job_file import custom_resources

WORKERS = [ReplicaId(Role.WORKER, index) for index in range(2)]


class Refusing(MemoryCluster):
    """Answers each request to create or replace a config map with an error, if it has one."""

    error: ClusterError | None = None

    async def create(
        self, kind: kinds.ResourceKind, made: Mapping[str, Any], **more: Any
    ) -> Mapping[str, Any]:
        if kind is kinds.CONFIG_MAPS and self.error is not None:
            raise self.error
        return await super().create(kind, made, **more)


async def begun() -> tuple[Refusing, Executor, Mapping[str, Any], JobRecord]:
    """Return a cluster with a job and its pods, its executor, its resource and its record."""
    cluster = Refusing()
    resource = await cluster.create(JOBS, custom_resources.resource(job(), "default"))
    record = records.new(job())
    executor = Executor(cluster, AgentSetup(image=None))
    launches = [
        commands.Launch(replica=replica, attempt=1, memory_bytes=None) for replica in job().replicas()
    ]
    assert await executor.act(resource, record, launches) == []
    return cluster, executor, resource, record


def with_more_cores(record: JobRecord) -> JobRecord:
    """Return a record with another spec: its config map has to be written again."""
    spec = record.state.spec
    roles = tuple(dataclasses.replace(role, cpu_cores=2.0) for role in spec.roles)
    state = dataclasses.replace(record.state, spec=dataclasses.replace(spec, roles=roles))
    return dataclasses.replace(record, progress=ReconcileProgress(state=state))


@pytest.mark.parametrize("code", [422, 500])
def test_replicas_end_although_the_objects_of_new_ones_cannot_be_made(code: int) -> None:
    async def test() -> None:
        cluster, executor, resource, record = await begun()
        cluster.error = ClusterError("not now", code=code)
        actions = [
            commands.Launch(replica=WORKERS[0], attempt=2, memory_bytes=None),
            commands.Terminate(replica=WORKERS[0], attempt=1),
            commands.Kill(replica=WORKERS[1], attempt=1),
        ]
        if cluster.error.is_refusal:
            assert await executor.act(resource, with_more_cores(record), actions) == [
                events.EngineFailed(reason="not now")
            ]
        else:
            with pytest.raises(ClusterError, match="not now"):
                await executor.act(resource, with_more_cores(record), actions)
        assert set(cluster.of_kind(kinds.PODS)) == {"clicks-ps-0-1"}

    asyncio.run(test())


def test_a_resized_job_whose_objects_the_cluster_refuses_says_so() -> None:
    async def test() -> None:
        cluster, executor, resource, record = await begun()
        cluster.error = ClusterError("the config map is too large", code=422)
        assert await executor.resize(resource, with_more_cores(record), ()) == {
            "clicks": "the config map is too large"
        }
        cluster.error = None
        assert await executor.resize(resource, with_more_cores(record), ()) == {}

    asyncio.run(test())


def test_pods_mount_the_agent_that_the_operator_names() -> None:
    async def test() -> None:
        cluster = Refusing()
        spec = dataclasses.replace(job(), command=("python", "train.py"))
        resource = await cluster.create(JOBS, custom_resources.resource(spec, "default"))
        executor = Executor(cluster, AgentSetup(image="hub/paceline:1", files="hub/paceline-agent:1"))
        launch = commands.Launch(replica=WORKERS[0], attempt=1, memory_bytes=None)
        assert await executor.act(resource, records.new(spec), [launch]) == []
        (pod,) = cluster.of_kind(kinds.PODS).values()
        assert {"reference": "hub/paceline-agent:1"} in [each.get("image") for each in pod["spec"]["volumes"]]
        assert "initContainers" not in pod["spec"]

    asyncio.run(test())
