"""What a job, or one of its replicas, waits for."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing.situations import Situation
from paceline.model.explanations.causes import Cause, Evidence
from paceline.model.jobs.obstacles import Obstacle, ObstacleKind
from paceline.model.jobs.queue_waits import QueueWait
from paceline.model.jobs.runs import ReplicaRow
from paceline.model.jobs.statuses import ExitKind, JobPhase
from paceline.model.roles import ReplicaId
from paceline.model.words import listed
from paceline.scheduling.fits import Blocker, Fit

_REFUSED = "it does not fit: "


def room(situation: Situation) -> Iterator[Cause]:
    """Yield why a job cannot begin, or did not begin, because the cluster has no room for it."""
    if situation.phase is JobPhase.FAILED and situation.message.startswith(_REFUSED):
        blockers = situation.message.removeprefix(_REFUSED).split("; ")
        yield Cause(
            name="no-room",
            what="There was no room for all of its replicas, and it did not want to wait (fit: fail).",
            evidence=tuple(Evidence(text=blocker, at=situation.finished_at) for blocker in blockers),
            next_steps=(
                "spec.scheduling.fit: hold has it wait",
                f"paceline resume {situation.name} tries anew",
            ),
        )
    if situation.room is None or situation.phase is not JobPhase.PENDING or situation.is_suspended:
        return
    fit, ahead, running = situation.room.fit, situation.room.ahead, situation.room.running
    if fit.fits:
        if ahead:
            yield _behind(situation, ahead)
        return
    taken = [Evidence(text=f"room is taken by jobs that run: {listed(running)}")] if running else []
    yield Cause(
        name="no-room",
        what=_no_room(fit),
        evidence=(*(Evidence(text=_words(blocker)) for blocker in fit.blockers), *taken),
        next_steps=tuple(_ways_to_fit(fit, running)),
    )


def _no_room(fit: Fit) -> str:
    if fit.most_workers:
        return f"There is no room for all of it: {fit.most_workers} workers would fit now."
    return "There is no room for all of its replicas."


def _behind(situation: Situation, ahead: Sequence[str]) -> Cause:
    return Cause(
        name="behind",
        what=f"It would fit, but room is kept for a job that waits before it: {ahead[0]}.",
        evidence=(Evidence(text=f"by priority and age these come first: {listed(ahead)}"),),
        next_steps=(
            "it begins when that job has begun, or waits for longer than its patience",
            f"a higher spec.scheduling.priority than that of {ahead[0]} lets it pass",
        ),
    )


def _ways_to_fit(fit: Fit, running: Sequence[str]) -> Iterator[str]:
    if fit.most_workers:
        yield f"spec.roles.worker.replicas: {fit.most_workers} would begin at once"
    if running:
        yield f"wait until one has ended, or paceline stop {running[0]}"
    yield "request less for each replica; paceline fit FILE shows what is free"


def _words(blocker: Blocker) -> str:
    what = f"{blocker.missing} more {blocker.what}: " if blocker.what else ""
    return f"{what}{blocker.reason}{f' ({listed(blocker.nodes)})' if blocker.nodes else ''}"


def queue(situation: Situation) -> Iterator[Cause]:
    """Yield that the queue of another system holds the job back, in the words of that system."""
    wait = situation.queue_wait
    if wait is None or situation.is_suspended:
        return
    place = f"place {len(wait.ahead) + 1} of {wait.waiting}"
    lost = wait.was_evicted or any(_lost_its_place(row) for row in situation.replicas)
    was = "was let in before, lost its pods, and waits again" if lost else "waits"
    evidence = [Evidence(text=f"{wait.system}: {wait.reason}", at=wait.at)] if wait.reason else []
    if wait.ahead:
        evidence.append(Evidence(text=f"before it wait {listed(wait.ahead)}"))
    if wait.holders:
        evidence.append(Evidence(text=f"let in are {listed(wait.holders)}"))
    yield Cause(
        name="in-queue",
        what=f"It {was} in the queue {wait.queue} of {wait.system}, at {place}.",
        evidence=tuple(evidence),
        next_steps=tuple(_ways_in(wait)),
    )


def _lost_its_place(row: ReplicaRow) -> bool:
    return row.exit is not None and row.exit.kind is ExitKind.DISRUPTED and not row.phase.is_final


#: Words in what queues say, and what to do.
#: Source: ``pkg/scheduler/flavorassigner``, ``pkg/cache/queue`` of Kueue; ``pkg/scheduler/api`` of Volcano.
_QUEUE_WORDS = (
    ("maximum capacity", "it never begins as it is: request less, or have the queue's quota raised"),
    ("more needed", "it begins when so much is free in its queue; request less, and it begins sooner"),
    ("NotEnoughResources", "it begins when all of it fits at once; paceline fit FILE shows what is free"),
    ("unschedulable", "it begins when all of it fits at once; paceline fit FILE shows what is free"),
    ("inactive", "see that the queue is open: kubectl describe localqueues,clusterqueues"),
    ("doesn't exist", "see that the queue is open: kubectl describe localqueues,clusterqueues"),
    ("not active", "the workload's spec.active: true lets it wait for its turn again"),
)  # fmt: skip


def _ways_in(wait: QueueWait) -> Iterator[str]:
    yield from dict.fromkeys(way for word, way in _QUEUE_WORDS if word in wait.reason)
    if wait.holders:
        yield f"wait until one has ended, or paceline stop {wait.holders[0]}"
    if wait.ahead:
        yield f"{wait.ahead[0]} comes first: by priority, or because it waits for longer"
    kind = "localqueue" if wait.system == "Kueue" else "queue.scheduling.volcano.sh"
    yield f"kubectl describe {kind} {wait.queue} says what the queue has, and what is used"


class _Kind(NamedTuple):
    """The sentence about obstacles of a kind, and the next steps."""

    what: Callable[[str], str]
    next_steps: Callable[[Situation, Sequence[Obstacle]], Iterator[str]]


def obstacles(situation: Situation) -> Iterator[Cause]:
    """Yield what keeps replicas from running."""
    waiting = {row.replica: row.attempt for row in situation.replicas if not row.phase.is_final}
    by_kind: dict[ObstacleKind, list[Obstacle]] = collections.defaultdict(list)
    # A queue that holds the job back says more than its pods, which say that nothing places them.
    explained = (ObstacleKind.GATED, ObstacleKind.UNSCHEDULABLE) if situation.queue_wait is not None else ()
    for each in situation.obstacles:
        if each.kind in explained:
            continue
        if each.replica is None or waiting.get(each.replica) == each.attempt:
            by_kind[each.kind].append(each)
    for kind, said in _KINDS.items():
        found = by_kind.get(kind, [])
        if found:
            about = listed(sorted({each.replica for each in found if each.replica is not None}))
            yield Cause(
                name=str(kind),
                what=said.what(about),
                evidence=tuple(_gathered(found)),
                next_steps=tuple(said.next_steps(situation, found)),
            )


def _gathered(found: Sequence[Obstacle]) -> Iterator[Evidence]:
    """Yield each message once, with all the replicas that it is about."""
    by_message: dict[str, list[Obstacle]] = collections.defaultdict(list)
    for each in found:
        by_message[each.message].append(each)
    for message, same in by_message.items():
        times = [each.at for each in same if each.at is not None]
        about = listed(each.replica for each in same if each.replica is not None)
        yield Evidence(
            text=f"{about}: {message}" if about else message,
            at=max(times) if times else None,
            count=max(each.count for each in same),
        )


#: Words in the scheduler's messages about nodes (``pkg/scheduler/framework/plugins``), and what to do.
_SCHEDULER = (
    ("Insufficient", "request less, or add nodes; paceline fit FILE shows what is free on each node"),
    ("taint", "spec.placement.tolerations: tolerate the taint, or take it off (kubectl taint)"),
    ("selector", "spec.placement.node_selector: kubectl get nodes --show-labels says what there is"),
    ("affinity", "spec.placement.strategy: any asks for fewer nodes than the placement of now"),
    ("unschedulable", "kubectl uncordon NODE lets pods in again"),
    ("volume", "kubectl describe pvc says why the volume is not there"),
    ("PersistentVolumeClaim", "kubectl describe pvc says why the volume is not there"),
)


def _place_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    said = " ".join(each.message for each in found)
    yield from dict.fromkeys(way for word, way in _SCHEDULER if word in said)
    if situation.spec is not None:
        yield "spec.scheduling.fit: hold has the job wait whole, and takes no room before all of it fits"


def _gate_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    yield "the program that set the gate takes it away, or says why not: kubectl describe pod, and its logs"
    yield _described(situation, found)


def _image_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    image = situation.spec.image if situation.spec else None
    yield f"spec.image: see that {image} is there, and that the nodes may pull it (imagePullSecrets)"
    yield _described(situation, found)


def _described(situation: Situation, found: Sequence[Obstacle]) -> str:
    return f"kubectl describe pod {_pod(situation, found[0])}"


def _pod(situation: Situation, each: Obstacle) -> str:
    return f"{situation.name}-{each.replica}-{each.attempt}"


def _configuration_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    yield "make what is missing, or take it out of spec.volumes and spec.secrets"
    yield _described(situation, found)


def _volume_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    yield "spec.volumes: see that the claim, secret or folder is there and may be mounted on that node"
    yield _described(situation, found)


def _crash_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    pod = _pod(situation, found[0])
    yield f"kubectl logs {pod} --all-containers --previous says what it wrote last"


def _node_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    yield "its replicas get a next attempt elsewhere a minute after the node fell silent"
    yield "kubectl get nodes; kubectl describe node says since when and why"


def _disk_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    yield "free some room: paceline prune deletes jobs that ended some time ago"


def _coming_ways(situation: Situation, found: Sequence[Obstacle]) -> Iterator[str]:
    yield f"paceline wait {situation.name} --for running"


_KINDS: dict[ObstacleKind, _Kind] = {
    ObstacleKind.DISK_FULL: _Kind(
        lambda _: "The disk that its logs and checkpoints are on is full.", _disk_ways
    ),
    ObstacleKind.NODE_LOST: _Kind(lambda about: f"The node of {about} does not answer.", _node_ways),
    ObstacleKind.UNSCHEDULABLE: _Kind(lambda about: f"The scheduler finds no node for {about}.", _place_ways),
    ObstacleKind.GATED: _Kind(lambda about: f"Something holds back the pods of {about}.", _gate_ways),
    ObstacleKind.IMAGE: _Kind(lambda about: f"The image of {about} cannot be pulled.", _image_ways),
    ObstacleKind.CONFIGURATION: _Kind(
        lambda about: f"The container of {about} cannot be made.", _configuration_ways
    ),
    ObstacleKind.VOLUME: _Kind(lambda about: f"A volume of {about} cannot be mounted.", _volume_ways),
    ObstacleKind.CRASH_LOOP: _Kind(
        lambda about: f"A container of {about} ends again and again.", _crash_ways
    ),
    ObstacleKind.COMING: _Kind(lambda about: f"The pod of {about} is being started.", _coming_ways),
}


def replica_commands(name: str, replica: ReplicaId, attempt: int) -> str:
    """Return the command that shows the last lines of an attempt's log."""
    return f"paceline logs {name} --role {replica.role} --index {replica.index} --attempt {attempt} --tail 20"
