"""The resources where jobs run, what each job holds of them, and what the waiting jobs wait for."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Sequence

from paceline.errors import InvalidInput, NotFound
from paceline.model.explanations.causes import Cause
from paceline.model.jobs.nodes import Node, Resources
from paceline.model.jobs.runs import LOCAL, ReplicaRow, Run, RunSummary
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures import rates
from paceline.model.measures.snapshots import Snapshot
from paceline.model.roles import ReplicaId
from paceline.scheduling.items import requests, total
from paceline.services.life_cycles import LifeCycle
from paceline.services.observing.look_cache import LookCache

#: The most unfinished jobs that are looked at, newest first.
MOST_JOBS = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeHolding:
    """What a job holds of a node.

    Attributes:
        hosts: the emulated hosts of the machine on which the job's replicas are; empty: none is emulated.
        replicas: the number of replicas by role name.
        asked: the resources that the replicas ask for.
        used_cores, used_memory_bytes: recent use; None: not measured.
    """

    job: str
    phase: JobPhase
    node: str
    hosts: tuple[str, ...]
    replicas: dict[str, int]
    asked: Resources
    used_cores: float | None
    used_memory_bytes: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that has not begun.

    Attributes:
        since: when it was submitted (Unix seconds).
        cause: why it waits; None: not known, there is only the message.
    """

    job: str
    since: float
    priority: int
    asked: Resources
    message: str
    cause: Cause | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The nodes, and the jobs that hold or wait for their resources.

    Attributes:
        nodes: all nodes.
        holdings: what unfinished jobs hold, by node.
        waiting: the waiting jobs, in the order in which they are served.
        left_out: how many unfinished jobs were not looked at.
    """

    nodes: tuple[Node, ...]
    holdings: tuple[NodeHolding, ...]
    waiting: tuple[WaitingJob, ...]
    left_out: int

    def of(self, node: str) -> tuple[NodeHolding, ...]:
        """Return what jobs hold of a node."""
        return tuple(each for each in self.holdings if each.node == node)


def capacity(jobs: LifeCycle, look_cache: LookCache, *, with_jobs: bool = True) -> Capacity:
    """Return the nodes where jobs run, and the jobs that hold or wait for their resources.

    Args:
        jobs: the operations on the jobs.
        look_cache: looks at the jobs.
        with_jobs: whether the caller may see the jobs, too.

    Raises:
        Conflict: the nodes cannot be seen from here.
        StoreError: the store cannot be read.
        ClusterError: the cluster does not answer.
    """
    nodes = tuple(jobs.nodes())
    phases = tuple(phase for phase in JobPhase if not phase.is_final)
    active = jobs.runs(phases=phases) if with_jobs else []
    holdings: list[NodeHolding] = []
    waiting: list[WaitingJob] = []
    for summary in active[:MOST_JOBS]:
        try:
            if summary.phase is JobPhase.PENDING:
                waiting.append(_waiting(jobs, look_cache, summary))
            else:
                holdings += _holdings(jobs, look_cache, summary, nodes)
        except (NotFound, InvalidInput):  # The job was deleted, or its spec cannot be read.
            continue
    return Capacity(
        nodes=nodes,
        holdings=tuple(sorted(holdings, key=lambda each: (each.node, each.job))),
        waiting=tuple(sorted(waiting, key=lambda each: (-each.priority, each.since, each.job))),
        left_out=len(active[MOST_JOBS:]),
    )


def _waiting(jobs: LifeCycle, look_cache: LookCache, summary: RunSummary) -> WaitingJob:
    run = jobs.get(summary.name)
    causes = look_cache.look(run).explanation.causes
    return WaitingJob(
        job=run.name,
        since=run.submitted_at,
        priority=run.spec.scheduling.priority,
        asked=total(run.spec),
        message=run.message,
        cause=next((each for each in causes if not each.is_past), None),
    )


def _holdings(
    jobs: LifeCycle, look_cache: LookCache, summary: RunSummary, nodes: Sequence[Node]
) -> Iterator[NodeHolding]:
    run = jobs.get(summary.name)
    by_node: dict[str, list[ReplicaRow]] = collections.defaultdict(list)
    for row in jobs.replicas(run.name):
        # Hosts of a local job are emulated: all its replicas are on this machine.
        where = nodes[0].name if run.engine == LOCAL else row.host
        if where is not None and row.host is not None and not row.phase.is_final:
            by_node[where].append(row)
    snapshot = look_cache.snapshot(run)
    for where, rows in by_node.items():
        yield _holding(run, where, rows, snapshot)


def _holding(run: Run, node: str, rows: Sequence[ReplicaRow], snapshot: Snapshot) -> NodeHolding:
    replica_ids: set[ReplicaId] = {row.replica for row in rows}
    measured = [replica for replica in snapshot.replicas if replica.replica in replica_ids]
    emulated = {host.name for host in run.spec.hosts}
    counts = collections.Counter(str(row.replica.role) for row in rows)
    return NodeHolding(
        job=run.name,
        phase=run.phase,
        node=node,
        hosts=tuple(sorted({row.host for row in rows if row.host in emulated and row.host is not None})),
        replicas=dict(counts),
        asked=sum((requests(run.spec.role_of(row.replica)) for row in rows), Resources()),
        used_cores=rates.total(replica.cpu_cores for replica in measured),
        used_memory_bytes=rates.total(replica.memory_bytes for replica in measured),
    )
