"""Visits all replicas of a cluster in rounds, and stores what they report: samples, steps and logs.

The rounds run beside the operator and do not hinder it: a broken store or a silent pod costs only its own
turn, is counted and logged, and is tried again later.
"""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import functools
import logging
import math
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from paceline.control.reconciliations import PodState, Stage
from paceline.diagnosing.progress.commands import OUTPUT
from paceline.engines.kubernetes import kinds, loops, pod_states, times
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.engines.local.folders import RunFolder
from paceline.errors import PacelineError, StoreError
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import JobEvent
from paceline.rendering import pods
from paceline.services import log_files
from paceline.services.cluster import announcements, runs
from paceline.services.cluster.collectors import AttemptSource, Collector
from paceline.services.cluster.intakes import Intake
from paceline.services.cluster.outside_measurements import OutsideMeasurements
from paceline.services.cluster.records import UnreadableStatus
from paceline.services.log_files import LogFile
from paceline.services.operators import kept_outputs
from paceline.services.operators.output_floods import FloodWatch
from paceline.sources import gpus
from paceline.sources.readings import Pod
from paceline.stores import Store, open_store

#: How often each replica is read; rounds that take long fill at most this share of the time.
ROUND_SECONDS, _SHARE_OF_TIME = 5.0, 0.3
#: An ended pod waits until the round after the next, plus this time.
SLACK_SECONDS = 5.0
#: How often replicas that were asked to end are read: their pods wait for it.
LEAVING_SECONDS = 1.0
#: How often output is read: it is larger, and comes through another server.
LOG_SECONDS = 15.0
#: By how much the clock of a node may be behind.
SKEW_SECONDS = 5.0
AT_ONCE = 16
#: A replica that does not answer is tried again after the first time, which doubles up to the second.
RETRY_SECONDS, MAX_RETRY_SECONDS = 5.0, 120.0
TIDY_SECONDS = 60.0
#: How long a replica's agent must be silent before the replica is measured from outside, and how often then.
SILENT_SECONDS, OUTSIDE_SECONDS = 30.0, 15.0
TELL_SECONDS = 60.0
#: A round is given up after this time; its requests to agents, cluster and store have shorter deadlines.
GIVE_UP_SECONDS = 600.0
#: The most output stored: the operator's volume has 5 GiB, and a pod that fills its volume is evicted.
OUTPUT_BYTES = 3 << 30

log = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True)
class RoundCounters:
    """Totals since the rounds began.

    Attributes:
        rounds: rounds over all replicas.
        answers: answers of replicas.
        failures: failed reads and writes, and failed rounds.
        round_seconds: how long the last round took.
    """

    rounds: int = 0
    answers: int = 0
    failures: int = 0
    round_seconds: float = 0.0


@dataclasses.dataclass(slots=True)
class _Visit:
    """What is known of an attempt between two visits; moments are in the time of the event loop.

    Attributes:
        heard_at: when its agent last answered; before the first answer, when it was first visited.
        log: the file with its output; None: its output was not read yet.
        log_due: when its output is to be read next; output that is over is read at once.
        flood: judges how fast its output comes; None: a flood was found, so judging has ended.
        due: the earliest moment of the next visit; a failure sets it.
        wait: in how many seconds to visit again if the cluster fails next; each failure doubles it.
        ended: whether its command has ended, as its agent says; the agent has nothing more to tell then.
        left: whether all of it has been read, so that it is visited no more.
    """

    heard_at: float
    log: LogFile | None = None
    log_due: float = 0.0
    flood: FloodWatch | None = dataclasses.field(default_factory=FloodWatch)
    due: float = 0.0
    wait: float = RETRY_SECONDS
    ended: bool = False
    left: bool = False


class Present(Protocol):
    """The contents of a cluster as the operator knows them (`operators.Operator`)."""

    async def wait_until_known(self) -> None:
        """Wait until everything was seen once."""

    def namespaces(self) -> Collection[str] | None:
        """Return the namespaces whose jobs are known; None: all."""

    def jobs(self) -> Iterable[Object]:
        """Return all jobs."""

    def wanted(self, resource: Object) -> JobSpec | str | None:
        """Return what a job asked for, or what was wrong, at the last look; None before the first look."""

    def pods_of(self, uid: str) -> Iterable[Object]:
        """Return the pods of the job with this UID."""


class CollectionRounds:
    """Stores what replicas report.

    Args:
        cluster: where the replicas are.
        present: the jobs and pods of the cluster.
        store_url: where samples and steps are stored.
        home: where output is stored.
        clock: Unix seconds.
        keep_seconds: how long a run is kept after its end if its resource is gone.
        exporters: the namespace of DCGM's exporters (`OutsideMeasurements`).
        output_bytes: the most output stored in total.
    """

    def __init__(
        self,
        cluster: Cluster,
        present: Present,
        *,
        store_url: str,
        home: Path,
        clock: Callable[[], float],
        keep_seconds: float,
        exporters: str | None = gpus.NAMESPACE,
        output_bytes: int = OUTPUT_BYTES,
    ) -> None:
        self._output_bytes = output_bytes
        self.counters = RoundCounters()
        self._cluster = cluster
        self._present = present
        self._store_url = store_url
        self._home = home
        self._clock = clock
        self._keep_seconds = keep_seconds
        self._store: Store | None = None
        self._collector: Collector | None = None
        #: What is known of each visited attempt.
        self._visits: dict[AttemptSource, _Visit] = {}
        self._outside = OutsideMeasurements(cluster, clock, exporters=exporters)
        self._measured_at = -math.inf
        #: The name of a job's run in the store, by the job's UID.
        self._runs: dict[str, str] = {}
        #: The version of the job's resource that the store has, by run.
        self._kept: dict[str, str] = {}
        #: The version of the job's resource that is wrong or unreadable, by run; it is not tried again.
        self._wrong: dict[str, str] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._again_seconds = math.ceil(2 * ROUND_SECONDS + SLACK_SECONDS)
        self._tidied_at = 0.0
        #: How often each error occurred since the log last named one, by its message.
        self._troubles: collections.Counter[str] = collections.Counter()
        self._told_at = -math.inf

    async def run(self) -> None:
        """Make rounds until cancelled."""
        loop = asyncio.get_running_loop()
        await self._present.wait_until_known()
        try:
            while True:
                began = loop.time()
                await self._try(self._go_round(leaving_only=False))
                took = self.counters.round_seconds = loop.time() - began
                self.counters.rounds += 1
                until = began + max(ROUND_SECONDS, took / _SHARE_OF_TIME)
                self._again_seconds = math.ceil(2 * (until - began) + SLACK_SECONDS)
                self._tell(loop.time())
                while (left := until - loop.time()) > 0:
                    await asyncio.sleep(min(left, LEAVING_SECONDS))
                    await self._try(self._go_round(leaving_only=True))
        finally:
            if self._store is not None:
                self._store.close()

    async def _try(self, round_: Coroutine[None, None, None]) -> None:
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                await round_
        except StoreError as error:
            self._count(error)
        except TimeoutError:
            self._count(PacelineError(f"a round was given up after {GIVE_UP_SECONDS:.0f} s"))
        except Exception:  # The loop's edge: storing data must never end the operator.
            self.counters.failures += 1
            log.exception("a round failed")
            loops.check_cancelled()

    def _count(self, error: PacelineError) -> None:
        self.counters.failures += 1
        self._troubles[error.message] += 1

    def _tell(self, now: float) -> None:
        if self._troubles and now - self._told_at >= TELL_SECONDS:
            (first, times), *others = self._troubles.most_common()
            log.warning("not kept for now: %s (%d times; %d other reasons)", first, times, len(others))
            self._troubles.clear()
            self._told_at = now

    async def _go_round(self, *, leaving_only: bool) -> None:
        if self._store is None or self._collector is None:
            if leaving_only:
                return
            self._store = await asyncio.to_thread(open_store, self._store_url)
            self._collector = Collector(self._cluster, self._store, intake=Intake(time.monotonic))
        await self._keep_jobs(self._store)
        pod_states_by_source = dict(self._sources())
        if not leaving_only:
            for gone in self._visits.keys() - pod_states_by_source.keys():
                self._collector.forget(gone)
                del self._visits[gone]
        async with asyncio.TaskGroup() as tasks:
            for source, pod_state in pod_states_by_source.items():
                if pod_state.is_leaving or not leaving_only:
                    tasks.create_task(self._visit(self._collector, source, pod_state.stage))
        if not leaving_only:
            await self._measure_silent(self._store, pod_states_by_source)

    async def _measure_silent(self, store: Store, found: Mapping[AttemptSource, PodState]) -> None:
        """Store measurements from outside of replicas whose agents do not answer."""
        now = asyncio.get_running_loop().time()
        if now - self._measured_at < OUTSIDE_SECONDS:
            return
        self._measured_at = now
        silent = {
            Pod(source.namespace, source.pod): source
            for source, pod_state in found.items()
            if pod_state.stage is Stage.RUNNING and self._is_silent(self._visits.get(source), now)
        }
        if not silent:
            return
        known = (
            pod
            for resource in self._present.jobs()
            for pod in self._present.pods_of(resource["metadata"]["uid"])
            if Pod(pod["metadata"]["namespace"], pod["metadata"]["name"]) in silent
        )
        for pod, sample in (await self._outside.measure(known)).items():
            await asyncio.to_thread(store.append_samples, silent[pod].run, [sample])
        self._troubles.update(self._outside.troubles.values())

    def _is_silent(self, visit: _Visit | None, now: float) -> bool:
        return visit is not None and not visit.ended and now - visit.heard_at > SILENT_SECONDS

    async def _keep_jobs(self, store: Store) -> None:
        """Store the present state of all jobs."""
        resources = list(self._present.jobs())
        await self._name_runs(resources)
        for resource in resources:
            name, version = self._run_of(resource), resource["metadata"]["resourceVersion"]
            if name is None or version in (self._kept.get(name), self._wrong.get(name)):
                continue
            spec = self._present.wanted(resource)
            if spec is None:
                continue
            if isinstance(spec, str):
                self._wrong[name] = version  # its status says what is wrong
                continue
            try:
                keep = functools.partial(runs.keep, store, name, resource, spec, self._home)
                await asyncio.to_thread(keep, now=self._clock())
            except UnreadableStatus:
                self._wrong[name] = version
                continue
            self._kept[name] = version
        present = set(self._runs.values())
        for known in (self._kept, self._wrong):
            for gone in known.keys() - present:
                del known[gone]
        now = self._clock()
        # A job whose run has no name yet must not look as if it were deleted.
        if now - self._tidied_at >= TIDY_SECONDS and len(self._runs) == len(resources):
            self._tidied_at = now
            await asyncio.to_thread(self._tidy, store, present, now)

    async def _name_runs(self, resources: Sequence[Object]) -> None:
        """Determine the names of runs in the store, which depend on the identity of their namespaces."""
        uids = {resource["metadata"]["uid"] for resource in resources}
        for gone in self._runs.keys() - uids:
            del self._runs[gone]
        scopes: dict[str, str | None] = {}
        for resource in resources:
            if self._run_of(resource) is not None:
                continue
            namespace = resource["metadata"]["namespace"]
            if namespace not in scopes:
                scopes[namespace] = await self._scope(namespace)
            scope = scopes[namespace]
            if scope is not None:
                self._runs[resource["metadata"]["uid"]] = runs.run_name(resource, scope)

    async def _scope(self, namespace: str) -> str | None:
        try:
            return runs.scope_of(await self._cluster.get(kinds.NAMESPACES, namespace))
        except ClusterError as error:
            self._count(error)
            return None

    def _run_of(self, resource: Object) -> str | None:
        """Return the name of a job's run in the store; None if it is not known yet."""
        return self._runs.get(resource["metadata"]["uid"])

    def _tidy(self, store: Store, present: set[str], now: float) -> None:
        where = self._present.namespaces()
        runs.end_all_but(store, present, namespaces=where, now=now)
        runs.forget_old(store, present, namespaces=where, before=now - self._keep_seconds)
        left_out = kept_outputs.trim(runs.folder(self._home, ""), self._output_bytes)
        if left_out:
            log.warning(
                "%d outputs are kept no more: all had more than %d bytes", len(left_out), self._output_bytes
            )

    def _sources(self) -> Iterable[tuple[AttemptSource, PodState]]:
        """Yield the attempts, running or ended, of the jobs that the store knows."""
        for resource in self._present.jobs():
            run = self._run_of(resource)
            if run is None or run not in self._kept:
                continue
            for pod in self._present.pods_of(resource["metadata"]["uid"]):
                for pod_state in pod_states.of([pod], silent={}, now=self._clock()):
                    if pod_state.stage is not Stage.COMING:
                        yield AttemptSource.of(run, pod, pod_state), pod_state

    async def _visit(self, collector: Collector, source: AttemptSource, stage: Stage) -> None:
        now = asyncio.get_running_loop().time()
        visit = self._visits.setdefault(source, _Visit(heard_at=now))
        if visit.left or now < visit.due:
            return
        async with self._gate:
            # Each step fails separately: output is kept even if the store is broken.
            is_well = True
            if stage is Stage.RUNNING and not visit.ended:
                is_well = await self._attempt(visit, self._collect(collector, source, visit))
            is_over = visit.ended or stage is Stage.ENDED
            if is_over or now >= visit.log_due:
                visit.log_due = now + LOG_SECONDS
                step = self._follow_output(source, visit, is_over=is_over)
                is_well = await self._attempt(visit, step, delays=is_over) and is_well
            if is_well and is_over and stage is Stage.RUNNING:
                is_well = await self._attempt(visit, collector.let_go(source))
            visit.left = is_well and is_over
            if is_well:
                visit.wait = RETRY_SECONDS

    async def _attempt(
        self, visit: _Visit, step: Coroutine[None, None, None], *, delays: bool = True
    ) -> bool:
        """Run a step of a visit; return whether it succeeded. By default, a failure delays the next visit."""
        try:
            await step
        except (PacelineError, OSError) as error:
            self._count(error if isinstance(error, PacelineError) else StoreError(str(error)))
            if not delays:
                return False
            # A store may recover soon; a silent pod may stay silent for long.
            wait = visit.wait if isinstance(error, ClusterError) else RETRY_SECONDS
            visit.due = asyncio.get_running_loop().time() + wait
            visit.wait = min(2 * visit.wait, MAX_RETRY_SECONDS)
            return False
        return True

    async def _collect(self, collector: Collector, source: AttemptSource, visit: _Visit) -> None:
        visit.ended = await collector.collect(source, again_seconds=self._again_seconds)
        visit.heard_at = asyncio.get_running_loop().time()
        self.counters.answers += 1

    async def _follow_output(self, source: AttemptSource, visit: _Visit, *, is_over: bool) -> None:
        if visit.log is None:
            path = RunFolder(runs.folder(self._home, source.run)).log(source.replica, source.attempt)
            visit.log = await asyncio.to_thread(LogFile, path)
        since = None
        if visit.log.until:
            since = math.ceil(max(0.0, self._clock() - times.seconds(visit.log.until)) + SKEW_SECONDS)
        asked_at = self._clock()
        lines = await self._cluster.logs(
            source.pod, source.namespace, pods.TRAINING,
            tail=log_files.MAX_LINES, since_seconds=since, last_bytes=log_files.MAX_LINES_BYTES,
        )  # fmt: skip
        piece = await asyncio.to_thread(visit.log.append, lines, is_over=is_over)
        if piece is None or visit.flood is None or self._store is None:
            return
        message = visit.flood.look(piece, asked_at)
        if message is not None:
            is_new = await asyncio.to_thread(_keep_flood, self._store, source, message, asked_at)
            visit.flood = None
            if is_new:
                await self._announce_flood(source, message, asked_at)

    async def _announce_flood(self, source: AttemptSource, message: str, now: float) -> None:
        """Publish a flood as an event, for people who cannot read the store."""
        flood = announcements.Announcement(OUTPUT, message, True, source.replica, source.attempt)
        for resource in self._present.jobs():
            if self._run_of(resource) == source.run:
                await announcements.publish(self._cluster, resource, flood, now=now, number=0)


def _keep_flood(store: Store, source: AttemptSource, message: str, now: float) -> bool:
    """Store the event that a replica floods its output; return whether it is new."""
    replica, attempt = source.replica, source.attempt
    flood = JobEvent(at=now, kind=OUTPUT, message=message, replica=replica, attempt=attempt)
    for _, event in store.events(source.run):
        if (event.kind, event.replica, event.attempt) == (flood.kind, replica, attempt):
            return False
    store.append_events(source.run, [flood])
    return True
