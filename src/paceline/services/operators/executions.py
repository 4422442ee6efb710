"""Executes commands on the cluster objects of a job; every command may be executed twice."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple, TypeVar

from paceline.control import allowances, commands, events
from paceline.control.reconciliations import PodState, Stage
from paceline.engines.kubernetes import kinds, pod_states
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object, missing_is_fine
from paceline.engines.kubernetes.mirrors import key_of
from paceline.engines.kubernetes.queues import QueueSystem, system_of
from paceline.errors import EngineError
from paceline.model.jobs.job_specs import CleanUp, JobSpec
from paceline.model.jobs.statuses import ExitKind, ExitReason, ReplicaPhase
from paceline.model.roles import ReplicaId
from paceline.rendering import (
    agent_secrets,
    codes,
    config_maps,
    gangs,
    kueue,
    labels,
    network_policies,
    pods,
    services,
    sizes,
    volcano,
)
from paceline.rendering.surroundings import AgentSetup, Surroundings
from paceline.services.cluster.records import JobRecord
from paceline.specs import dump_job

#: The key in a job's config map that holds the spec that the job runs with. The operator rewrites the spec
#: when the job is scaled or resized; a running job does not follow other changes of its resource.
SNAPSHOT = "job.yaml"
NO_GANGS = (
    "this cluster knows no groups of pods that begin at once (PodGroup of scheduling.k8s.io/v1beta1: "
    "Kubernetes 1.37 with the feature GenericWorkload and that API): spec.scheduling.fit: hold does without"
)
NO_QUEUE = "there is no queue {} of Kueue or Volcano for this namespace"
_REQUESTS_AT_ONCE = 16

T = TypeVar("T")


class Executor:
    """Creates, resizes and deletes the objects of jobs.

    Args:
        cluster: the cluster that holds the objects.
        agent: how agents come into pods, and who may ask them.
    """

    def __init__(self, cluster: Cluster, agent: AgentSetup) -> None:
        self._cluster = cluster
        self._agent = agent
        self._provided: dict[str, JobSpec] = {}
        self._systems: dict[str, QueueSystem] = {}
        #: The size that the cluster refused, and its reason, by job and pod.
        self._refused: dict[str, dict[str, tuple[Object, str]]] = {}

    def forget(self, uid: str) -> None:
        """Forget what is cached about a job; its objects stay."""
        self._provided.pop(uid, None)
        self._systems.pop(uid, None)
        self._refused.pop(uid, None)

    async def act(
        self, resource: Object, record: JobRecord, actions: Sequence[commands.Command]
    ) -> list[events.Event]:
        """Execute commands, many at a time; return an event for each lasting failure.

        Before a replica is launched, the objects that all replicas share are created. If that fails, no
        replica is launched.

        Raises:
            ClusterError: the shared objects or a command have to be tried again. If one command fails, the
                others are executed all the same.
        """
        launches = [action for action in actions if isinstance(action, commands.Launch)]
        others = [action for action in actions if not isinstance(action, commands.Launch)]
        gate = asyncio.Semaphore(_REQUESTS_AT_ONCE)

        async def execute(action: commands.Command) -> events.Event | None:
            async with gate:
                return await self._execute(resource, record, action)

        async def execute_all(several: Sequence[commands.Command]) -> list[events.Event]:
            return [failure for failure in await _all(map(execute, several)) if failure is not None]

        async def launch_all() -> list[events.Event]:
            refusal = await self._provide(resource, record) if launches else None
            return await execute_all(launches) if refusal is None else [refusal]

        return [failure for some in await _all((launch_all(), execute_all(others))) for failure in some]

    async def _provide(self, resource: Object, record: JobRecord) -> events.EngineFailed | None:
        """Create the objects that all replicas share; return a lasting failure.

        They are the service, the network policy, the agents' token and config map, and the queue's pod group.
        """
        spec, uid = record.state.spec, resource["metadata"]["uid"]
        if self._provided.get(uid) == spec:
            return None
        where = self._surroundings(resource)
        try:
            config_map = config_maps.config_map(
                spec, where, services.cluster(spec, where), services.spare_workers(spec, where)
            )
        except EngineError as error:
            return events.EngineFailed(reason=error.message)
        refusal = await self._tie_code(resource, spec)
        if refusal is not None:
            return refusal
        config_map["data"][SNAPSHOT] = await asyncio.to_thread(dump_job, spec)
        try:
            await self._put(kinds.SERVICES, services.service(spec, where), resource, is_fixed=True)
            policy = network_policies.policy(spec, where)
            await self._put(kinds.NETWORK_POLICIES, policy, resource, is_fixed=True)
            token = agent_secrets.secret(spec, where, secrets.token_urlsafe(32))
            await self._put(kinds.SECRETS, token, resource, is_fixed=True)
            await self._put(kinds.CONFIG_MAPS, config_map, resource)
        except ClusterError as error:
            if error.is_refusal:
                return events.EngineFailed(reason=error.message)
            raise
        self._systems.pop(uid, None)  # A job that begins again may be in another queue, or in none.
        if spec.scheduling.queue is not None:
            await self._enter(resource, spec, spec.scheduling.queue)
        elif spec.scheduling.is_gang:
            await self._form_gang(resource, spec)
        self._provided[uid] = spec
        return None

    async def _tie_code(self, resource: Object, spec: JobSpec) -> events.EngineFailed | None:
        """Make the job the owner of the packed code that was submitted with it; return a lasting failure.

        The cluster then deletes this config map with the job. A config map of other origin stays.
        """
        name = spec.code.config_map if spec.code is not None else None
        if name is None:
            return None
        namespace, job = key_of(resource)
        try:
            config_map = await self._cluster.get(kinds.CONFIG_MAPS, name, namespace)
        except ClusterError as error:
            if not error.is_missing:
                raise
            reason = f"the code of {job} is not there: {namespace} has no config map {name}; submit it again"
            return events.EngineFailed(reason=reason)
        if codes.PACKED not in (config_map.get("binaryData") or {}):
            reason = f"the code of {job} is not in the config map {name}: it has no {codes.PACKED}"
            return events.EngineFailed(reason=reason)
        is_ours = (config_map["metadata"].get("labels") or {}).get(labels.JOB) == job
        if is_ours and not config_map["metadata"].get("ownerReferences"):
            await self._cluster.replace(kinds.CONFIG_MAPS, _owned(dict(config_map), resource))
        return None

    async def _enter(self, resource: Object, spec: JobSpec, queue: str) -> None:
        """Find out whether Kueue or Volcano has the queue, and create the pod group that Volcano needs."""
        where = self._surroundings(resource)
        system = await system_of(self._cluster, queue, where.namespace)
        if system is None:
            raise ClusterError(NO_QUEUE.format(queue))
        if system is QueueSystem.VOLCANO:
            await self._put_group(kinds.POD_GROUPS, volcano.pod_group(spec, where, queue), resource)
        self._systems[resource["metadata"]["uid"]] = system

    async def _form_gang(self, resource: Object, spec: JobSpec) -> None:
        """Create the group of pods that the scheduler places all at once."""
        try:
            group = gangs.pod_group(spec, self._surroundings(resource))
            await self._put_group(kinds.GANGS, group, resource)
        except ClusterError as error:
            raise ClusterError(NO_GANGS, code=error.code) if error.is_missing else error from error

    def _queued(self, pod: labels.Object, resource: Object, record: JobRecord) -> labels.Object:
        """Return a pod with the fields that the system of its job's queue, or the scheduler, needs."""
        spec = record.state.spec
        if spec.scheduling.is_gang:
            return gangs.grouped(pod, spec)
        match self._systems.get(resource["metadata"]["uid"]):
            case QueueSystem.KUEUE:
                return kueue.grouped(pod, spec, spec.scheduling.queue or "", record.resumes)
            case QueueSystem.VOLCANO:
                return volcano.grouped(pod, spec)
        return pod

    async def _put_group(self, kind: kinds.ResourceKind, group: labels.Object, resource: Object) -> None:
        """Create the group of a job's pods; one from before the job began again may have another size.

        Raises:
            ClusterError: such a group has to go first (a conflict), or the cluster refuses something.
        """
        present = await self._put(kind, group, resource, is_fixed=True)
        if present is not None and not _has(present["spec"], group["spec"]):
            namespace, name = key_of(group)
            await self._cluster.delete(kind, name, namespace)
            raise ClusterError(f"{kind.name} {name} is not gone yet", code=HTTPStatus.CONFLICT)

    async def _put(
        self, kind: kinds.ResourceKind, manifest: labels.Object, resource: Object, *, is_fixed: bool = False
    ) -> Object | None:
        """Create an object of a job, or replace it; return one that was there and stays as it is."""
        manifest = _owned(manifest, resource)
        try:
            await self._cluster.create(kind, manifest)
        except ClusterError as error:
            if not error.is_taken:
                raise
            present = await self._present(kind, manifest, resource)
            if is_fixed:
                return present
            await self._cluster.replace(kind, manifest)
        return None

    async def _present(self, kind: kinds.ResourceKind, manifest: labels.Object, resource: Object) -> Object:
        """Return the object that has taken a name, which is the job's.

        Raises:
            ClusterError: it is not: a conflict if it is about to go, else for people to mend.
        """
        namespace, name = key_of(manifest)
        try:
            present = await self._cluster.get(kind, name, namespace)
        except ClusterError as error:
            if not error.is_missing:
                raise
            raise ClusterError(f"{kind.name} {name} has just gone", code=HTTPStatus.CONFLICT) from error
        if is_owned(present, resource):
            return present
        if present["metadata"].get("deletionTimestamp"):
            raise ClusterError(f"{kind.name} {name} is not gone yet", code=HTTPStatus.CONFLICT)
        raise ClusterError(f"{kind.name} {name} does not belong to the job")

    async def _execute(
        self, resource: Object, record: JobRecord, action: commands.Command
    ) -> events.Event | None:
        match action:
            case commands.Launch():
                return await self._launch(resource, record, action)
            case commands.Terminate(replica=replica, attempt=attempt):
                await self._delete(resource, replica, attempt)
            case commands.Kill(replica=replica, attempt=attempt):
                await self._delete(resource, replica, attempt, grace_seconds=0)
        return None

    async def _launch(
        self, resource: Object, record: JobRecord, launch: commands.Launch
    ) -> events.Event | None:
        pod = pods.pod(
            record.state.spec,
            launch.replica,
            self._surroundings(resource),
            attempt=launch.attempt,
            memory_bytes=launch.memory_bytes,
            # The node had room when the job began, but may be full when a replica restarts.
            node=record.places.get(launch.replica) if launch.attempt == 1 else None,
        )
        try:
            queued = self._queued(pod, resource, record)
            await self._cluster.create(kinds.PODS, _owned(queued, resource))
        except ClusterError as error:
            if error.is_refusal:
                reason = ExitReason(kind=ExitKind.LAUNCH_FAILED, message=error.message)
                return events.ReplicaExited(
                    replica=launch.replica, attempt=launch.attempt, reason=reason, is_lasting=True
                )
            if not error.is_taken:
                raise
        return None

    async def _delete(
        self, resource: Object, replica: ReplicaId, attempt: int, *, grace_seconds: int | None = None
    ) -> None:
        namespace, job = key_of(resource)
        name = labels.pod_name(job, replica, attempt)
        with missing_is_fine():
            await self._cluster.delete(kinds.PODS, name, namespace, grace_seconds=grace_seconds)

    async def resize(self, resource: Object, record: JobRecord, found: Sequence[Object]) -> Mapping[str, str]:
        """Resize running pods to the current allowances of their replicas.

        Args:
            resource: the job.
            record: the job's state.
            found: the job's pods.

        Returns:
            The reason why the cluster does not resize a replica, by replica; and by the name of the job the
            reason why it takes no new objects that all replicas share. A size that the cluster rejected as
            invalid is not requested for the same pod again.

        Raises:
            ClusterError: a request has to be tried again.
        """
        refused = {}
        provided = self._provided.get(resource["metadata"]["uid"])
        if provided is not None and provided != record.state.spec:
            refusal = await self._provide(resource, record)  # The next launch uses the current spec.
            if refusal is not None:
                refused[resource["metadata"]["name"]] = refusal.reason
        refusals = self._refused.setdefault(resource["metadata"]["uid"], {})
        for gone in refusals.keys() - {pod["metadata"]["uid"] for pod in found}:
            del refusals[gone]
        for pod in found:
            seen = pod_states.attempt_of(pod)
            state = record.state.replica(seen[0]) if seen is not None else None
            if state is None or seen is None or state.attempt != seen[1]:
                continue
            # A pod that has ended keeps its size, even if the next attempt of its replica gets more memory.
            if state.phase is not ReplicaPhase.RUNNING or not _runs(pod):
                continue
            allowance = allowances.allowance(record.state, state.replica)
            wanted = sizes.adjustable(sizes.sized(record.state.spec.role_of(state.replica), allowance))
            if sizes.is_sized(pod, wanted):
                refusals.pop(pod["metadata"]["uid"], None)
                why = pod_states.not_resized(pod)
            else:
                why = await self._resize(pod, wanted, refusals)
            if why:
                refused[str(state.replica)] = why
        return refused

    async def _resize(self, pod: Object, wanted: Object, refusals: dict[str, tuple[Object, str]]) -> str:
        """Resize a pod; return the reason if the cluster does not resize it, otherwise an empty string."""
        uid, (namespace, name) = pod["metadata"]["uid"], key_of(pod)
        asked, why = refusals.get(uid, (None, ""))
        if asked == wanted:
            return why
        try:
            await self._cluster.resize(name, namespace, pods.TRAINING, wanted)
        except ClusterError as error:
            if not (error.is_refusal or error.is_forbidden or error.is_missing):
                raise
            if error.is_refusal:  # Other errors may pass: a quota may have room later.
                refusals[uid] = wanted, error.message
            return error.message
        refusals.pop(uid, None)
        return ""

    async def clean_up(self, resource: Object, record: JobRecord, seen: Sequence[PodState]) -> None:
        """Delete the pods that the clean-up policy of an ended job names; the other pods keep their logs."""
        spec = record.state.spec
        if not record.state.phase.is_final or spec.clean_up is CleanUp.RUNNING:
            return
        for pod_state in seen:
            completed = pod_state.reason is not None and pod_state.reason.kind is ExitKind.COMPLETED
            if pod_state.stage is Stage.ENDED and (completed or spec.clean_up is CleanUp.ALL):
                await self._delete(resource, pod_state.replica, pod_state.attempt)

    def _surroundings(self, resource: Object) -> Surroundings:
        return Surroundings(
            namespace=resource["metadata"]["namespace"],
            agent=self._agent,
            has_agent_token=True,
            job_uid=resource["metadata"]["uid"],
        )


async def _all(running: Iterable[Awaitable[T]]) -> list[T]:
    """Wait until all have ended, also if one fails; then raise the first error."""
    ended = await asyncio.gather(*running, return_exceptions=True)
    results = []
    for result in ended:
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


def _has(present: object, wanted: object) -> bool:
    """Return whether an object says all that is wanted; the API server may have added more."""
    if not isinstance(wanted, Mapping):
        return present == wanted
    return isinstance(present, Mapping) and all(_has(present.get(key), each) for key, each in wanted.items())


def _runs(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


class OwningJob(NamedTuple):
    """The job that owns an object."""

    uid: str
    name: str


def owner(each: Object) -> OwningJob | None:
    """Return the job that owns an object; None if no job owns it.

    The references alone say that: any user may change the labels of an object.
    """
    for one in each["metadata"].get("ownerReferences") or ():
        is_job = one["kind"] == kinds.TRAINING_JOBS.name
        if is_job and str(one.get("apiVersion")).startswith(f"{kinds.TRAINING_JOBS.group}/"):
            return OwningJob(str(one["uid"]), str(one["name"]))
    return None


def is_owned(each: Object, resource: Object) -> bool:
    """Return whether a job owns an object."""
    found = owner(each)
    return found is not None and found.uid == str(resource["metadata"]["uid"])


def _owned(made: labels.Object, resource: Object) -> labels.Object:
    """Return an object with its job as the owner, so that the cluster deletes it with the job."""
    reference = {
        "apiVersion": kinds.TRAINING_JOBS.api_version,
        "kind": kinds.TRAINING_JOBS.name,
        "name": resource["metadata"]["name"],
        "uid": resource["metadata"]["uid"],
        "controller": True,
    }
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [reference]}}
