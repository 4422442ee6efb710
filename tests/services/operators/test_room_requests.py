"""Requests for room: a verdict holds for the job as it was decided on, and for no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.kubelets import node
from support.memory_clusters import MemoryCluster
from support.operator_scenes import job

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.kinds import ResourceKind
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import Role
from paceline.services.cluster import records
from paceline.services.cluster.admissions import AdmissionVerdict
from paceline.services.operators.operator_counters import OperatorCounters
from paceline.services.operators.room_requests import RoomRequests

KEY = ("default", "clicks")
RESOURCE = {"metadata": {"uid": "1", "creationTimestamp": "2027-01-15T08:00:00Z"}, "spec": {}}
LARGER = job(
    roles=(RoleSpec(role=Role.PS, cpu_cores=1.0), RoleSpec(role=Role.WORKER, replicas=2, cpu_cores=9.0))
)
ELSEWHERE = job(placement=PodPlacement(node_selector={"disk": "ssd"}))


class EditedCluster(MemoryCluster):
    """A cluster where something happens while its nodes are read."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def list(self, kind: ResourceKind, **more: Any) -> Any:
        found = await super().list(kind, **more)
        if kind is kinds.NODES and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return found


async def decided(rooms: RoomRequests) -> AdmissionVerdict:
    task = asyncio.create_task(rooms.run(list))
    async with asyncio.timeout(240):
        while rooms.verdict("1") == AdmissionVerdict():
            await asyncio.sleep(0.005)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return rooms.verdict("1")


async def opened() -> tuple[EditedCluster, RoomRequests]:
    cluster = EditedCluster()
    await cluster.create(kinds.NODES, node("n0", cpu="4"))
    rooms = RoomRequests(
        cluster,
        clock=lambda: 1.8e9,
        sees_nodes=True,
        counters=OperatorCounters(),
        look_again=lambda key: None,
    )
    return cluster, rooms


@pytest.mark.parametrize("edited", [LARGER, ELSEWHERE], ids=["larger", "on other nodes"])
def test_room_for_a_job_as_it_was_is_no_room_for_the_edited_job(edited: JobSpec) -> None:
    async def test() -> None:
        _, rooms = await opened()
        await rooms.apply_to_begin(KEY, RESOURCE, job())
        assert (await decided(rooms)).room
        await rooms.apply_to_begin(KEY, RESOURCE, job())
        assert rooms.verdict("1").room, "nothing was edited"
        await rooms.apply_to_begin(KEY, RESOURCE, edited)
        assert rooms.verdict("1").room is None
        assert (await decided(rooms)).room is None

    asyncio.run(test())


@pytest.mark.parametrize("edited", [LARGER, ELSEWHERE], ids=["larger", "on other nodes"])
def test_a_job_that_is_edited_during_the_decision_is_decided_on_anew(edited: JobSpec) -> None:
    async def test() -> None:
        cluster, rooms = await opened()
        cluster.meanwhile = lambda: rooms.apply_to_begin(KEY, RESOURCE, edited)
        await rooms.apply_to_begin(KEY, RESOURCE, job())
        assert (await decided(rooms)).room is None
        assert cluster.meanwhile is None

    asyncio.run(test())


def test_room_for_workers_of_one_size_is_none_for_larger_workers() -> None:
    async def test() -> None:
        _, rooms = await opened()

        def grow(spec: JobSpec) -> None:
            rooms.apply_for_more(KEY, "1", records.new(spec), 3, [])

        grow(job())
        assert (await decided(rooms)).room
        grow(job())
        assert rooms.verdict("1").room, "nothing was changed"
        grow(LARGER)
        assert rooms.verdict("1").room is None
        assert (await decided(rooms)).room is None

    asyncio.run(test())
