"""The jobs that request room, to begin or for more workers, and the verdict that each job has got.

A verdict is not final. A job that got none, or has to wait, is decided on again and again until it has room.
When a job changes, its next look requests room anew, and a verdict for the job as it was is dropped.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from paceline.engines.kubernetes import loops, times
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.engines.kubernetes.mirrors import Key
from paceline.engines.kubernetes.queues import system_of
from paceline.model.jobs.job_specs import JobSpec
from paceline.services.cluster import admissions
from paceline.services.cluster.admissions import AdmissionVerdict, Applicant, ClusterRoom, Growing
from paceline.services.cluster.records import JobRecord
from paceline.services.operators import executions
from paceline.services.operators.operator_counters import OperatorCounters
from paceline.specs.job_file import custom_resources

#: How long requests are gathered before a decision, for jobs that are submitted together.
GATHER_SECONDS = 0.05
#: How often to decide on the jobs that wait for room; less often if looking at a large cluster takes long.
ADMIT_SECONDS = 1.0
#: The longest look at the room in the cluster; requests to the API server have shorter deadlines.
DECISION_SECONDS = 120.0
_SHARE_OF_LOOKING = 0.2
_ANYWHERE = AdmissionVerdict(room={})

log = logging.getLogger(__name__)


class BegunJob(NamedTuple):
    """A job that keeps the room that it was promised, if any, and its pods."""

    uid: str
    namespace: str
    record: JobRecord
    pods: Sequence[Object]


class _Basis(NamedTuple):
    """What a decision rests on: the room, what is requested by UID, and the jobs that have begun."""

    revision: int
    requests: Mapping[str, tuple[JobSpec, int]]
    begun: tuple[JobRecord, ...]


class RoomRequests:
    """Keeps the requests for room and decides on them.

    Args:
        cluster: where the jobs are.
        clock: Unix seconds.
        room: returns what the cluster has room for; None: the operator may not see it, so no job waits.
        counters: where failed decisions are counted.
        look_again: has a job looked at, because it has got a new verdict.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        clock: Callable[[], float],
        room: Callable[[], Awaitable[ClusterRoom]] | None,
        counters: OperatorCounters,
        look_again: Callable[[Key], None],
    ) -> None:
        self._cluster, self._clock, self._room = cluster, clock, room
        self._counters = counters
        self._look_again = look_again
        #: The jobs that request room to begin, by UID.
        self._applicants: dict[str, Applicant] = {}
        #: The running jobs that request room for more workers, by UID.
        self._growing: dict[str, Growing] = {}
        #: The latest verdict on each job, by UID.
        self._verdicts: dict[str, AdmissionVerdict] = {}
        self._has_waiting_jobs = asyncio.Event()
        #: Of the last decision; None: a verdict of it does not hold any more.
        self._basis: _Basis | None = None

    def verdict(self, uid: str) -> AdmissionVerdict:
        """Return the latest verdict on a job."""
        return self._verdicts.get(uid, AdmissionVerdict())

    def applied_for(self, uid: str) -> JobSpec | None:
        """Return the job for which room to begin was last requested; None: it does not wait for room."""
        applicant = self._applicants.get(uid)
        return None if applicant is None else applicant.spec

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget all other jobs."""
        for known in (self._applicants, self._growing, self._verdicts):
            for uid in known.keys() - uids:
                del known[uid]

    async def apply_to_begin(self, key: Key, resource: Object, spec: JobSpec) -> None:
        """Request room for a job that has not begun, or let it begin if it does not wait for room.

        The job may have been edited since the last time, so an earlier application or verdict may not hold.

        Raises:
            ClusterError: the job's queue cannot be read.
        """
        uid, queue = resource["metadata"]["uid"], spec.scheduling.queue
        before = self._applicants.pop(uid, None)
        if (resource.get("spec") or {}).get(custom_resources.SUSPEND):
            self._verdicts.pop(uid, None)
            return
        if queue is not None:
            known = await system_of(self._cluster, queue, key[0])
            held = executions.NO_QUEUE.format(queue)
            self._give(uid, key, _ANYWHERE if known else AdmissionVerdict(held=held))
            return
        if self._room is None or spec.scheduling.fit.is_for_scheduler:
            self._give(uid, key, _ANYWHERE)
            return
        since = times.seconds(resource["metadata"]["creationTimestamp"])
        self._applicants[uid] = Applicant(uid=uid, key=key, spec=spec, since=since)
        self._drop_outdated_verdict(before, self._applicants[uid])
        self._has_waiting_jobs.set()

    def apply_for_more(
        self, key: Key, uid: str, record: JobRecord | None, workers: int | None, pods: Iterable[Object]
    ) -> None:
        """Request room for the workers that a running job is to gain, if any.

        Args:
            key: the job's namespace and name.
            uid: the job's UID.
            record: its state.
            workers: how many workers it is to have; None: not more than it has.
            pods: its pods.
        """
        self._applicants.pop(uid, None)
        if record is None or workers is None:
            self._growing.pop(uid, None)
            self._verdicts.pop(uid, None)
            return
        if self._room is None or record.state.spec.scheduling.fit.is_for_scheduler:
            self._give(uid, key, _ANYWHERE)
            return
        before = self._growing.get(uid)
        self._growing[uid] = Growing(uid=uid, key=key, record=record, pods=[*pods], workers=workers)
        self._drop_outdated_verdict(before, self._growing[uid])
        self._has_waiting_jobs.set()

    def _drop_outdated_verdict(self, before: Applicant | Growing | None, now: Applicant | Growing) -> None:
        """Drop the verdict on a job whose request has changed; the reason for which it waits is shown on."""
        if before is None or before.request != now.request:
            self._verdicts[now.uid] = AdmissionVerdict(held=self.verdict(now.uid).held)
            self._basis = None

    def _give(self, uid: str, key: Key, verdict: AdmissionVerdict) -> None:
        """Give a job a verdict, and have the job looked at if that is a new one."""
        if self._verdicts.get(uid) != verdict:
            self._verdicts[uid] = verdict
            self._look_again(key)

    async def run(self, begun: Callable[[], Iterable[BegunJob]]) -> None:
        """Decide on requests until cancelled.

        Args:
            begun: returns all jobs that may have been promised room.
        """
        loop = asyncio.get_running_loop()
        while True:
            await self._has_waiting_jobs.wait()
            await asyncio.sleep(GATHER_SECONDS)
            began = loop.time()
            try:
                async with asyncio.timeout(DECISION_SECONDS):
                    await self._decide([*begun()])
            except TimeoutError:
                self._counters.refusals += 1
                log.warning("no job is admitted for now: no decision within %.0f s", DECISION_SECONDS)
            except ClusterError as error:
                self._counters.refusals += 1
                log.warning("no job is admitted for now: %s", error.message)
            except Exception:  # The loop's edge: running jobs need no decision.
                self._counters.failures += 1
                log.exception("no job could be admitted")
                loops.check_cancelled()
            self._has_waiting_jobs.clear()
            if self._waiting() or self._wishes():
                took = loop.time() - began
                await asyncio.sleep(max(ADMIT_SECONDS, took / _SHARE_OF_LOOKING))
                self._has_waiting_jobs.set()

    def _waiting(self) -> list[Applicant]:
        """Return the jobs that do not have room yet."""
        return [each for uid, each in self._applicants.items() if self.verdict(uid).room is None]

    def _wishes(self) -> list[Growing]:
        """Return the running jobs that do not have room for more workers yet."""
        return [each for uid, each in self._growing.items() if self.verdict(uid).room is None]

    async def _decide(self, jobs: Sequence[BegunJob]) -> None:
        assert self._room is not None, "without a room, no job waits"
        room = await self._room()
        waiting, growing = self._waiting(), self._wishes()
        begun = [(job.namespace, self._with_room(job.uid, job.record), job.pods) for job in jobs]
        undecided: list[Applicant | Growing] = [*waiting, *growing]
        requests = {one.uid: one.request for one in undecided}
        basis = _Basis(room.revision, requests, tuple(record for _, record, _ in begun))
        if basis == self._basis:
            return  # The verdicts would be the same.
        # Thousands of nodes take seconds, in which the lease has to be held.
        verdicts = await asyncio.to_thread(admissions.decide, room, waiting, begun, growing, self._clock())
        # A job that was edited during the decision is decided on anew.
        for one in undecided:
            now = self._applicants.get(one.uid) or self._growing.get(one.uid)
            if now is not None and now.request == one.request:
                self._give(one.uid, one.key, verdicts[one.uid])
        self._basis = basis

    def _with_room(self, uid: str, record: JobRecord) -> JobRecord:
        """Return the record of a job with the room that was found for it; the job may not use it yet."""
        room = self.verdict(uid).room
        if not room:
            return record
        if uid in self._growing:
            return self._growing[uid].with_room(room)
        return dataclasses.replace(record, places=room)
