"""Looks after every job of a cluster: follows events, and has the affected jobs reconciled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from paceline.engines.kubernetes import kinds, loops
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.engines.kubernetes.mirrors import Key, Mirror, Mirrors, key_of
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.statuses import JobPhase
from paceline.rendering import labels
from paceline.rendering.surroundings import AgentSetup
from paceline.services.operators import executions, kueue_groups, reconcilers, room_mirrors
from paceline.services.operators.operator_counters import OperatorCounters
from paceline.services.operators.reconcilers import JobView, Reconciler
from paceline.services.operators.room_mirrors import RoomMirror
from paceline.services.operators.room_requests import BegunJob, RoomRequests
from paceline.services.operators.work_queues import WorkQueue

WORKERS = 8
#: How long changes of one job are gathered before it is looked at.
GATHER_SECONDS = 0.05
#: The longest look at a job; requests have shorter deadlines.
LOOK_SECONDS = 120.0
#: A new operator admits jobs once it has looked at all of them, or after this time.
ALL_KNOWN_SECONDS = 60.0

log = logging.getLogger(__name__)


class Operator:
    """The operator of a cluster; only one may run at a time (`engines.kubernetes.leases`).

    Args:
        cluster: the cluster.
        agent: how agents come into pods, and who may ask them.
        clock: Unix seconds.
        namespaces: the only namespaces that it may access; None: all, and the nodes. With some namespaces
            only, it cannot know whether a job fits, so all jobs begin at once. A namespace that is gone or
            not accessible does not delay the others for long.
        read: returns the job that a resource asks for, or what is wrong with it.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        agent: AgentSetup,
        clock: Callable[[], float],
        namespaces: Collection[str] | None = None,
        read: Callable[[Object], JobSpec | str] = reconcilers.wanted,
    ) -> None:
        self.counters = OperatorCounters()
        self._cluster = cluster
        self._sees_nodes = namespaces is None
        self._where: tuple[str | None, ...] = (None,) if namespaces is None else tuple(namespaces)
        #: The namespaces whose jobs and pods were all seen once; None: all namespaces.
        self._known: set[str | None] = set()
        self._has_begun = asyncio.Event()
        self._reconciler = Reconciler(cluster, agent=agent, clock=clock, read=read)
        self._queue: WorkQueue[Key] = WorkQueue()
        self._room = RoomMirror(cluster, on_silence=self._all_jobs_changed)
        self._room_requests = RoomRequests(
            cluster, clock=clock, room=self._room.read if self._sees_nodes else None, counters=self.counters,
            look_again=self._queue.add,
        )  # fmt: skip
        #: Why the last look at a job failed, by job; empty: another client was quicker.
        self._troubles: dict[Key, str] = {}
        #: The jobs that were there at the beginning and were not looked at yet.
        self._unknown: set[Key] = set()
        self._all_known = asyncio.Event()
        #: The pods of each job, by the job's UID and then by the pod's key.
        self._pods_of: dict[str, dict[Key, Object]] = defaultdict(dict)
        #: The pods that were deleted since the last look at their job, as they were last, by the job's UID.
        self._gone_pods_of: dict[str, dict[Key, Object]] = defaultdict(dict)
        jobs, pods = {}, {}
        for each in self._where:
            jobs[each] = Mirror(cluster, kinds.TRAINING_JOBS, namespace=each, on_change=self._job_changed)
            # Pods that are no replicas take room, too. One mirror of both is never of two moments.
            pods[each] = Mirror(
                cluster, kinds.PODS, namespace=each, selector="" if self._sees_nodes else labels.JOB,
                on_change=self._pod_changed, trimmed=_trimmed,
            )  # fmt: skip
        self._jobs, self._pods = Mirrors(jobs), Mirrors(pods)

    @property
    def unreadable(self) -> int:
        """The number of jobs left alone because their status cannot be read."""
        return self._reconciler.unreadable

    async def run(self) -> None:
        """Look after jobs until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            begun = [tasks.create_task(self._begin(tasks, each)) for each in self._where]
            done: set[asyncio.Task[None]] = set()
            while not done:
                # An operator of all namespaces has to know all jobs; of selected ones, some may be gone.
                done, _ = await asyncio.wait(begun, timeout=None if self._sees_nodes else ALL_KNOWN_SECONDS)
            self._note_known()
            self._has_begun.set()
            if self._sees_nodes:
                tasks.create_task(self._room.run())
                await self._room.wait_for_nodes()
                tasks.create_task(self._admit())
            for _ in range(WORKERS):
                tasks.create_task(self._work())

    async def _begin(self, tasks: asyncio.TaskGroup, namespace: str | None) -> None:
        """Follow the jobs and pods of a namespace; return when all of them were seen once.

        Pods are listed after jobs: the known state of a job must not be newer than that of its pods.
        """
        tasks.create_task(self._jobs[namespace].run())
        await self._jobs[namespace].is_filled.wait()
        self._unknown |= {key_of(each) for each in self._jobs[namespace]}
        tasks.create_task(self._pods[namespace].run())
        await self._pods[namespace].is_filled.wait()
        self._known.add(namespace)
        for resource in self._jobs[namespace]:
            self._job_changed(resource)

    async def wait_until_known(self) -> None:
        """Wait until all jobs and pods were seen once; with selected namespaces, the accessible ones."""
        await self._has_begun.wait()

    def namespaces(self) -> Collection[str] | None:
        """Return the namespaces whose jobs and pods are known; None: all."""
        return None if self._sees_nodes else {each for each in self._known if each is not None}

    def jobs(self) -> Iterable[Object]:
        """Return all jobs."""
        return self._jobs

    def wanted(self, resource: Object) -> JobSpec | str | None:
        """Return what a job asked for, or what was wrong, at the last look; None before the first look."""
        return self._reconciler.last_wanted(resource)

    def pods_of(self, uid: str) -> Iterable[Object]:
        """Return the pods of the job with this UID."""
        return self._pods_of[uid].values() if uid in self._pods_of else ()

    def _job_changed(self, resource: Object) -> None:
        self._queue.add(key_of(resource), GATHER_SECONDS)

    def _pod_changed(self, pod: Object) -> None:
        owner, key = executions.owner(pod), key_of(pod)
        present = self._pods.get(key)
        self._room.pod_changed(key, None if present is None else present["use"])
        if owner is None:
            return
        if present is None:
            self._pods_of[owner.uid].pop(key, None)
            self._gone_pods_of[owner.uid][key] = _trimmed(pod)
        else:
            self._pods_of[owner.uid][key] = present
        self._queue.add((key[0], owner.name), GATHER_SECONDS)

    def _all_jobs_changed(self) -> None:
        for resource in self._jobs:
            self._job_changed(resource)

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            failed = True
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._look_after(key)
                self._troubles.pop(key, None)
                failed = False
                self._note_known(key)
            except ClusterError as error:
                self.counters.refusals += 1
                self._troubles[key] = "" if error.is_conflict else error.message
                log.warning("%s/%s is tried again: %s", *key, error.message)
            except TimeoutError:
                self.counters.refusals += 1
                self._troubles[key] = f"a look at it was given up after {LOOK_SECONDS:.0f} s"
                log.warning("%s/%s is tried again: %s", *key, self._troubles[key])
            except Exception:  # The loop's edge: one broken job must not block the others.
                self.counters.failures += 1
                log.exception("%s/%s could not be looked after", *key)
                loops.check_cancelled()
            finally:
                self._queue.done(key, failed=failed)

    def _note_known(self, *keys: Key) -> None:
        self._unknown -= {*keys}
        if not self._unknown:
            self._all_known.set()

    async def _look_after(self, key: Key) -> None:
        if not self._known & {None, key[0]}:
            return  # Its pods are not known yet, so they would look lost; it is looked at later.
        resource = self._jobs.get(key)
        if resource is None or resource["metadata"].get("deletionTimestamp"):
            # A job that is being deleted takes its pods along; their loss must not be repaired.
            self._forget_all_but_the_present()
            await kueue_groups.end(self._cluster, self._left_of(key, resource))
            return
        self.counters.reconciliations += 1
        uid = resource["metadata"]["uid"]
        verdict = self._room_requests.verdict(uid)
        gone_pods = dict(self._gone_pods_of.get(uid, {}))
        view = JobView(
            resource=resource,
            pods=list(self._pods_of[uid].values()),
            gone_pods=list(gone_pods.values()),
            silent=self._room.silent,
            room=verdict.room,
            applied_for=self._room_requests.applied_for(uid),
            refused=verdict.refused,
            note=verdict.held or self._troubles.get(key, ""),
        )
        again = await self._reconciler.reconcile(view)
        self._forget_gone_pods(uid, gone_pods)
        record = self._reconciler.record(uid)
        if record is not None and record.state.phase is JobPhase.PENDING:
            await self._room_requests.apply_to_begin(key, resource, record.state.spec)
        else:
            workers = self._reconciler.more_workers(resource)
            self._room_requests.apply_for_more(key, uid, record, workers, self.pods_of(uid))
        if again is not None:
            self._queue.add(key, again)

    def _left_of(self, job: Key, resource: Object | None) -> list[Object]:
        """Return the pods that are left of a job that is being deleted, or is gone."""
        if resource is not None:
            return list(self.pods_of(resource["metadata"]["uid"]))
        return [
            pod
            for uid in self._pods_of.keys() - self._present()
            for key, pod in self._pods_of[uid].items()
            if (owner := executions.owner(pod)) is not None and (key[0], owner.name) == job
        ]

    def _present(self) -> set[str]:
        """Return the UIDs of all jobs."""
        return {resource["metadata"]["uid"] for resource in self._jobs}

    def _forget_gone_pods(self, uid: str, seen: Mapping[Key, Object]) -> None:
        left = {key: pod for key, pod in self._gone_pods_of.pop(uid, {}).items() if seen.get(key) is not pod}
        if left:
            self._gone_pods_of[uid] = left

    def _forget_all_but_the_present(self) -> None:
        present = self._present()
        self._reconciler.keep_only(present)
        self._room_requests.keep_only(present)
        for uid in [uid for uid, pods in self._pods_of.items() if not pods and uid not in present]:
            del self._pods_of[uid]
        for uid in self._gone_pods_of.keys() - present:
            del self._gone_pods_of[uid]

    async def _admit(self) -> None:
        """Decide on requests for room, once the room promised to each job and the longest wait are known."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ALL_KNOWN_SECONDS):
                await self._all_known.wait()
        await self._room_requests.run(self._begun)

    def _begun(self) -> Iterator[BegunJob]:
        for resource in self._jobs:
            uid = resource["metadata"]["uid"]
            record = self._reconciler.record(uid)
            if record is not None:
                yield BegunJob(uid, key_of(resource)[0], record, list(self._pods_of[uid].values()))


def _trimmed(pod: Object) -> Object:
    """Return the parts of a pod that are needed; a thousand whole pods would take ten megabytes."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    use = room_mirrors.use_of(pod)
    if executions.owner(pod) is None:
        identity = {name: metadata.get(name) for name in ("name", "namespace", "resourceVersion")}
        return {"metadata": identity, "use": use}
    kept = (
        "name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences", "creationTimestamp",
        "deletionTimestamp", "finalizers",
    )  # fmt: skip
    statuses = ("phase", "reason", "message", "conditions", "containerStatuses", "initContainerStatuses")
    return {
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {
            **{name: spec[name] for name in ("nodeName",) if name in spec},
            "containers": [
                {name: each[name] for name in ("name", "resources") if name in each}
                for each in spec.get("containers") or ()
            ],
        },
        "status": {name: status[name] for name in statuses if name in status},
        "use": use,
    }
