"""Brings what agents in pods have written into a store: each line once, whichever process dies in between.

The offset is stored together with what was read up to it, as it is for the spools of one machine
(`supervisions`). What could not be stored stays with the agent for the next time.
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

#: An agent that has not answered by then is asked again later.
ANSWER_SECONDS = 10.0
#: Clocks that differ by less are the same.
SAME_SECONDS = 2.0
#: Of one replica at a time; others wait meanwhile.
MAX_PAGES = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSource:
    """An attempt of a replica, where it runs (``host``: its node), its job, and the run it is kept under."""

    run: str
    replica: ReplicaId
    attempt: int
    namespace: str
    pod: str
    host: str | None = None
    job: str = ""

    @classmethod
    def of(cls, run: str, pod: Object, sight: PodState) -> AttemptSource:
        """Return the attempt that a pod is, by what is seen of it."""
        namespace, name = key_of(pod)
        host = (pod.get("spec") or {}).get("nodeName")
        job = (pod["metadata"].get("labels") or {}).get(labels.JOB, "")
        return cls(
            run=run, replica=sight.replica, attempt=sight.attempt, namespace=namespace, pod=name, host=host,
            job=job,
        )  # fmt: skip

    @property
    def key(self) -> tuple[str, str]:
        """Return what tells it from all others."""
        return self.run, self.pod

    @property
    def whose(self) -> Whose:
        """Return whose words it says."""
        return Whose(self.namespace, self.run, self.pod)


class Collector:
    """Reads on in the spools of any number of replicas.

    Args:
        cluster: where they run.
        store: where what they say is kept.
        last_bytes: of a spool that nothing is known of yet, only so much of its end; None: all.
        intake: how much of what they say is kept; None: all.
        clock: Unix seconds; what agents write by other clocks is kept by this one.
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
            source: the replica.
            again_seconds: in how long this will be done again: until then its pod does not end by itself.

        Raises:
            ClusterError: its agent does not answer.
            NotFound: the store does not have the run.
            StoreError: nothing can be stored.
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
                # Another process has stored these lines; go on behind them.
                self._offsets.pop(source.key, None)
                continue
            self._offsets[source.key] = reading.offset
            if reading.ended or reading.offset >= page.size:
                return reading.ended
        return False

    async def let_go(self, source: AttemptSource) -> None:
        """Tell an agent whose command has ended that everything has arrived, so that its pod may end."""
        await self._ask(source, await self._offset(source), 0, None)

    def forget(self, source: AttemptSource) -> None:
        """Forget where a replica that is gone was read up to; the store knows it."""
        self._offsets.pop(source.key, None)
        self._behind.pop(source.key, None)
        if self._intake is not None:
            self._intake.forget(source.whose)

    def _seconds_behind(self, source: AttemptSource, page: agents.Page, asked_at: float) -> float:
        """Return by how much the clock of a replica's node is behind; 0: by less than can be said.

        It is the same until it is another by more than an answer may take: measurements keep their distances.
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
