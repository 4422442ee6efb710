"""Requests for room: a verdict holds for the job as it was decided on, and for no other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from support.kubelets import node
from support.memory_clusters import MemoryCluster
from support.operator_scenes import job

from paceline.control import events
from paceline.engines.kubernetes import cluster_states
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import Role
from paceline.services.cluster import records
from paceline.services.cluster.admissions import AdmissionVerdict, ClusterRoom
from paceline.services.operators import reconcilers
from paceline.services.operators.operator_counters import OperatorCounters
from paceline.services.operators.room_requests import BegunJob, RoomRequests

KEY = ("default", "clicks")
RESOURCE = {"metadata": {"uid": "1", "creationTimestamp": "2027-01-15T08:00:00Z"}, "spec": {}}
LARGER = job(
    roles=(RoleSpec(role=Role.PS, cpu_cores=1.0), RoleSpec(role=Role.WORKER, replicas=2, cpu_cores=9.0))
)
ELSEWHERE = job(placement=PodPlacement(node_selector={"disk": "ssd"}))


class EditedCluster:
    """A cluster of one node, where something may happen during a decision."""

    def __init__(self) -> None:
        self.nodes = (cluster_states.node(node("n0", cpu="4")),)
        self.revision = 0
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        #: The decisions that were made.
        self.decisions = 0

    async def room(self) -> ClusterRoom:
        return ClusterRoom(
            nodes=self.nodes, without_jobs=self.nodes, quotas={}, revision=self.revision
        )  # fmt: skip

    async def in_a_thread(self, decide: Callable[..., Any], *arguments: Any) -> Any:
        self.decisions += 1
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return decide(*arguments)


class Room(NamedTuple):
    """Requests for room, and what is set when a job gets a new verdict."""

    requests: RoomRequests
    is_decided: asyncio.Event

    @property
    def verdict(self) -> AdmissionVerdict:
        return self.requests.verdict("1")

    async def decided(self) -> AdmissionVerdict:
        self.is_decided.clear()
        task = asyncio.create_task(self.requests.run(list))
        async with asyncio.timeout(240):
            await self.is_decided.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return self.verdict


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> EditedCluster:
    made = EditedCluster()
    monkeypatch.setattr(asyncio, "to_thread", made.in_a_thread)
    return made


def opened(cluster: EditedCluster) -> Room:
    is_decided = asyncio.Event()
    requests = RoomRequests(
        MemoryCluster(),
        clock=lambda: 1.8e9,
        room=cluster.room,
        counters=OperatorCounters(),
        look_again=lambda key: is_decided.set(),
    )
    return Room(requests, is_decided)


@pytest.mark.parametrize("edited", [LARGER, ELSEWHERE], ids=["larger", "on other nodes"])
def test_room_for_a_job_as_it_was_is_no_room_for_the_edited_job(
    cluster: EditedCluster, edited: JobSpec
) -> None:
    async def test() -> None:
        room = opened(cluster)
        await room.requests.apply_to_begin(KEY, RESOURCE, job())
        assert (await room.decided()).room
        await room.requests.apply_to_begin(KEY, RESOURCE, job())
        assert room.verdict.room, "nothing was edited"
        await room.requests.apply_to_begin(KEY, RESOURCE, edited)
        assert room.verdict.room is None
        assert (await room.decided()).room is None

    asyncio.run(test())


@pytest.mark.parametrize("edited", [LARGER, ELSEWHERE], ids=["larger", "on other nodes"])
def test_a_job_that_is_edited_during_the_decision_is_decided_on_anew(
    cluster: EditedCluster, edited: JobSpec
) -> None:
    async def test() -> None:
        room = opened(cluster)
        cluster.meanwhile = lambda: room.requests.apply_to_begin(KEY, RESOURCE, edited)
        await room.requests.apply_to_begin(KEY, RESOURCE, job())
        assert (await room.decided()).room is None
        assert cluster.meanwhile is None

    asyncio.run(test())


def test_room_for_workers_of_one_size_is_none_for_larger_workers(cluster: EditedCluster) -> None:
    async def test() -> None:
        room = opened(cluster)

        def grow(spec: JobSpec) -> None:
            room.requests.apply_for_more(KEY, "1", records.new(spec), 3, [])

        grow(job())
        assert (await room.decided()).room
        grow(job())
        assert room.verdict.room, "nothing was changed"
        grow(LARGER)
        assert room.verdict.room is None
        assert (await room.decided()).room is None

    asyncio.run(test())


@pytest.mark.parametrize("edited", [LARGER, ELSEWHERE], ids=["larger", "on other nodes"])
@pytest.mark.parametrize("verdict", [{"room": {}}, {"refused": "it never fits"}], ids=["room", "refused"])
def test_a_look_takes_no_verdict_on_the_job_as_it_was(edited: JobSpec, verdict: dict[str, Any]) -> None:
    def found(wanted: JobSpec) -> list[events.Event]:
        view = reconcilers.JobView(resource=RESOURCE, pods=[], applied_for=job(), **verdict)
        return reconcilers._requested(records.new(wanted), wanted, view, [])[1]

    assert found(job())
    assert found(edited) == []


def test_a_decision_is_made_again_only_if_something_has_changed(cluster: EditedCluster) -> None:
    async def test() -> None:
        room = opened(cluster)
        await room.requests.apply_to_begin(KEY, RESOURCE, LARGER)
        assert "it waits for room" in (await room.decided()).held
        for _ in range(3):
            await room.requests._decide([])
        assert cluster.decisions == 1
        cluster.revision += 1
        await room.requests._decide([])
        assert cluster.decisions == 2
        begun = BegunJob("2", "default", records.new(job()), [])
        await room.requests._decide([begun])
        assert cluster.decisions == 3
        # There and back: the verdict on the job as it was is gone.
        for edited in (ELSEWHERE, LARGER):
            await room.requests.apply_to_begin(KEY, RESOURCE, edited)
        await room.requests._decide([begun])
        assert cluster.decisions == 4

    asyncio.run(test())
