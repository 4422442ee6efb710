"""Which jobs may start: whole or not at all, in order, and none waits for ever."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings
from support.examples import examples

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.nodes import Node, Quota, Resources
from paceline.model.jobs.placements import PodPlacement
from paceline.model.roles import Role
from paceline.scheduling import queues
from paceline.scheduling.node_groups import NodeGroups
from paceline.scheduling.queues import PATIENCE_SECONDS, Admission, QueuedJob
from paceline.scheduling.quota_books import QuotaBook

NODES = [
    Node(name=name, allocatable=Resources(millicores=4000, memory_bytes=1 << 30, pods=10)) for name in "abc"
]


def job(key: str, workers: int, *, since: float = 0.0, priority: int = 0, **more: object) -> QueuedJob:
    role = RoleSpec(role=Role.WORKER, replicas=workers, cpu_cores=1.5)
    spec = JobSpec(name=key, roles=(role,))
    return QueuedJob(key=key, spec=spec, since=since, priority=priority, **more)


def admitted(
    *waiting: QueuedJob, nodes: NodeGroups | None = None, now: float = 1.0, quotas: QuotaBook | None = None
) -> list[str]:
    found = queues.admit(waiting, nodes or NodeGroups(NODES), NodeGroups(NODES), quotas or QuotaBook({}), now)
    return [each.key for each in found]


def busy(job: QueuedJob, workers: int) -> NodeGroups:
    """The nodes with the first workers of a job on node a."""
    nodes = NodeGroups(NODES)
    nodes.take(job.spec, dict.fromkeys(job.spec.replicas()[:workers], "a"))
    return nodes


def test_by_priority_then_age() -> None:
    first, second, urgent = (
        job("first", 4),
        job("second", 4, since=0.5),
        job("urgent", 4, since=0.9, priority=1),
    )
    assert admitted(second, first, urgent) == ["urgent"]
    assert admitted(second, first) == ["first"]


def test_two_jobs_that_need_more_than_half_start_one_after_the_other() -> None:
    assert admitted(job("one", 4), job("other", 4)) == ["one"]


def test_a_small_job_overtakes_for_a_while() -> None:
    big, small = job("big", 6), job("small", 1, since=10.0)
    assert admitted(big, small, nodes=busy(big, 2), now=20.0) == ["small"]
    assert admitted(big, small, nodes=busy(big, 2), now=PATIENCE_SECONDS + 20) == []
    assert admitted(big, small, now=PATIENCE_SECONDS + 20) == ["big"]


def test_what_can_never_fit_delays_no_other_job() -> None:
    assert admitted(job("giant", 7), job("small", 1), now=10 * PATIENCE_SECONDS) == ["small"]


def test_a_quota_keeps_one_namespace_waiting() -> None:
    quotas = QuotaBook({"team": [Quota(name="team", left={"pods": 1})]})
    over, other = job("over", 2, namespace="team"), job("other", 2, since=0.5)
    small = job("small", 1, since=0.7, namespace="team")
    assert admitted(over, other, quotas=quotas) == ["other"]
    assert admitted(over, other, small, quotas=quotas, now=PATIENCE_SECONDS + 20) == ["other"]
    assert admitted(over, small, quotas=quotas, now=20.0) == ["small"]


def test_two_jobs_are_not_admitted_against_the_same_quota() -> None:
    quotas = QuotaBook({"team": [Quota(name="team", left={"pods": 3})]})
    both = job("first", 2, namespace="team"), job("second", 2, since=0.5, namespace="team")
    assert admitted(*both, quotas=quotas) == ["first"]
    assert quotas.of("team") == (Quota(name="team", left={"pods": 1}),)


sizes = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=8)


@settings(max_examples=examples(200))
@given(sizes)
def test_every_job_that_can_run_runs_once_and_nodes_are_never_overfull(
    jobs: list[tuple[int, int, int]],
) -> None:
    """Jobs of (workers, priority, minutes) come a minute after each other."""
    waiting = {str(index): job(str(index), size, since=60.0 * index, priority=urgency)
               for index, (size, urgency, _) in enumerate(jobs)}  # fmt: skip
    running: dict[str, tuple[float, Admission]] = {}
    ran: list[str] = []
    for minute in range(200):
        now = 60.0 * minute
        running = {key: each for key, each in running.items() if each[0] > now}
        nodes = NodeGroups(NODES)
        for key, (_, admission) in running.items():
            nodes.take(job(key, 9).spec, admission.places)
        assert all(group.free.millicores >= 0 for group in nodes.open_to(PodPlacement()))
        here = [each for each in waiting.values() if each.since <= now]
        for admission in queues.admit(here, nodes, NodeGroups(NODES), QuotaBook({}), now):
            assert admission.places.keys() == set(waiting.pop(admission.key).spec.replicas())
            running[admission.key] = (now + 60 * jobs[int(admission.key)][2], admission)
            ran.append(admission.key)
    assert sorted(ran) == sorted(str(index) for index in range(len(jobs)))
