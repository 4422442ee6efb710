"""Brings what agents in pods have written into a store: each line once, even if a process dies in between.

The offset is stored together with the lines read up to it, as for the spools of one machine (`supervisions`).
Lines that could not be stored stay with the agent and are read again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping

from paceline.control.reconciliations import PodState
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.engines.kubernetes.mirrors import key_of
from paceline.errors import Conflict
from paceline.model.roles import ReplicaId
from paceline.rendering import labels
from paceline.services.cluster.agent_tokens import AgentTokens
from paceline.services.cluster.intakes import Intake, Whose
from paceline.sources import agents
from paceline.stores import Store

#: An agent that has not answered within this time is asked again later.
ANSWER_SECONDS = 10.0
#: A smaller change in how far a node's clock is behind is ignored.
SAME_SECONDS = 2.0
#: The most pages of one replica that are read in a row; other replicas wait meanwhile.
MAX_PAGES = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSource:
    """An attempt of a replica, where it runs (``host``: its node), its job, and its run in the store."""

    run: str
    replica: ReplicaId
    attempt: int
    namespace: str
    pod: str
    host: str | None = None
    job: str = ""

    @classmethod
    def of(cls, run: str, pod: Object, pod_state: PodState) -> AttemptSource:
        """Return the attempt that a pod runs, from what was observed of the pod."""
        namespace, name = key_of(pod)
        host = (pod.get("spec") or {}).get("nodeName")
        job = (pod["metadata"].get("labels") or {}).get(labels.JOB, "")
        return cls(
            run=run, job=job, replica=pod_state.replica, attempt=pod_state.attempt, namespace=namespace,
            pod=name, host=host,
        )  # fmt: skip

    @property
    def key(self) -> tuple[str, str]:
        """A key that is unique among all attempts."""
        return self.run, self.pod

    @property
    def whose(self) -> Whose:
        """The owner of what it writes, whose limits apply."""
        return Whose(self.namespace, self.run, self.pod)


class Collector:
    """Reads the spools of any number of replicas, each from where it was last read up to.

    Args:
        cluster: where the replicas run.
        store: where the records are kept.
        last_bytes: how much of the end of a spool is read if it was never read before; None: all of it.
        intake: limits how much of the spools is kept; None: all is kept.
        clock: Unix seconds; times that agents write by other clocks are converted to this clock.
    """

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        *,
        last_bytes: int | None = None,
        intake: Intake | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._intake = intake
        self._cluster = cluster
        self._clock = clock
        self._behind: dict[tuple[str, str], float] = {}
        self._store = store
        self._last_bytes = last_bytes
        self._tokens = AgentTokens(cluster)
        self._offsets: dict[tuple[str, str], int] = {}

    async def collect(self, source: AttemptSource, *, again_seconds: int | None = None) -> bool:
        """Store what a replica has written since the last time; return whether its command has ended.

        Args:
            source: the attempt of the replica.
            again_seconds: in how many seconds this will be called again: until then the pod does not end by
                itself.

        Raises:
            ClusterError: its agent does not answer.
            NotFound: the store does not have the run.
            StoreError: the store cannot be written.
        """
        for _ in range(MAX_PAGES):
            if self._intake is not None and not self._intake.may_read(source.whose):
                return False
            offset = await self._offset(source)
            last = self._last_bytes if offset == 0 else None
            asked_at = self._clock()
            page = await self._ask(source, offset, again_seconds, last)
            behind = self._seconds_behind(source, page, asked_at)
            reading = agents.reading(page, replica=source.replica, attempt=source.attempt).moved(behind)
            if reading.offset <= offset:
                return False
            if self._intake is not None:
                reading = self._intake.admit(
                    source.whose, reading, len(page.data),
                    replica=source.replica, attempt=source.attempt, now=self._clock(),
                )  # fmt: skip
            try:
                await asyncio.to_thread(
                    self._store.append_from_spool, source.run, source.replica, source.attempt,
                    previous_offset=offset, offset=reading.offset,
                    samples=reading.samples, steps=reading.steps,
                    evaluations=reading.evaluations, events=reading.events,
                )  # fmt: skip
            except Conflict:
                # Another process has stored these lines; go on after them.
                self._offsets.pop(source.key, None)
                continue
            self._offsets[source.key] = reading.offset
            if reading.ended or reading.offset >= page.size:
                return reading.ended
        return False

    async def let_go(self, source: AttemptSource) -> None:
        """Notify an agent whose command has ended that everything has arrived, so that its pod may end."""
        await self._ask(source, await self._offset(source), 0, None)

    def forget(self, source: AttemptSource) -> None:
        """Forget how far the spool of a replica that is gone was read; the store knows it."""
        self._offsets.pop(source.key, None)
        self._behind.pop(source.key, None)
        if self._intake is not None:
            self._intake.forget(source.whose)

    def _seconds_behind(self, source: AttemptSource, page: agents.Page, asked_at: float) -> float:
        """Return by how many seconds the clock of a replica's node is behind; 0: too little to be measured.

        The value stays the same until it changes by more than `SAME_SECONDS`: so the time between two
        measurements is kept.
        """
        if page.at is None:
            return 0.0
        at = min(max(page.at, asked_at), self._clock())
        behind, known = at - page.at, self._behind.get(source.key, 0.0)
        if abs(behind - known) > SAME_SECONDS:
            self._behind[source.key] = known = behind
        return known

    async def _offset(self, source: AttemptSource) -> int:
        if source.key not in self._offsets:
            await asyncio.to_thread(
                self._store.set_replica_facts, source.run, source.replica, host=source.host
            )
            self._offsets[source.key] = await asyncio.to_thread(
                self._store.spool_offset, source.run, source.replica, source.attempt
            )
        return self._offsets[source.key]

    async def _ask(
        self, source: AttemptSource, offset: int, again: int | None, last: int | None
    ) -> agents.Page:
        at = agents.address(source.namespace, source.pod)
        path = agents.spool(at, offset=offset, again_seconds=again, last_bytes=last)

        async def read(headers: Mapping[str, str]) -> bytes:
            return await self._cluster.read(path, limit_bytes=agents.MAX_PAGE_BYTES, headers=headers)

        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                page = agents.page(await self._tokens.asked(source.namespace, source.job, read))
        except TimeoutError as error:
            raise ClusterError(f"{source.pod} has not answered for {ANSWER_SECONDS:.0f} s") from error
        except ValueError as error:
            raise ClusterError(f"{source.pod}: {error}") from error
        if last is None and page.offset != offset:
            raise ClusterError(f"{source.pod} answers from {page.offset}, not from {offset}")
        return page
