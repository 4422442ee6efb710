"""What happened to a job, as Kubernetes events: for `kubectl describe` and for the time line."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import NamedTuple

from paceline.control import resizings
from paceline.control.states import JobState, ReplicaState
from paceline.engines.kubernetes import kinds, times
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.engines.kubernetes.mirrors import key_of
from paceline.model.jobs import adjustments
from paceline.model.jobs.runs import ADJUSTED, RESIZED
from paceline.model.jobs.statuses import ExitKind, JobPhase
from paceline.model.roles import ReplicaId
from paceline.rendering import labels

_COMPONENT = "paceline"
_LONGEST_MESSAGE = 1000
#: How the name of an event ends (`event`).
_NAME = re.compile(r"\.(?P<microseconds>[0-9a-f]{1,13})\.(?P<number>[0-9]{1,6})$", re.ASCII)

log = logging.getLogger(__name__)


class Announcement(NamedTuple):
    """News about a job or one of its replicas."""

    kind: str
    message: str
    is_warning: bool = False
    replica: ReplicaId | None = None
    attempt: int | None = None


def announcements(before: JobState, after: JobState, now: float) -> Iterator[Announcement]:
    """Yield what happened between two states; the state ``after`` is of the moment ``now`` (Unix seconds)."""
    known = {each.replica: each for each in before.replicas}
    for each in after.replicas:
        old = known.get(each.replica)
        if each.exit is not None and (old is None or _has_ended(old, each)):
            is_warning = each.exit.kind is not ExitKind.COMPLETED and after.phase is not JobPhase.STOPPING
            yield Announcement("replica-exited", str(each.exit), is_warning, each.replica, each.attempt)
    changed = "; ".join(resizings.differences(before.spec, after.spec)) if after.spec != before.spec else ""
    if changed and not after.phase.is_final:
        yield Announcement(RESIZED, changed)
    for adjustment in after.adjustments:
        if adjustment not in before.adjustments and adjustment.until > now:
            yield Announcement(ADJUSTED, adjustments.sentence(adjustment, now))
    for adjustment in before.adjustments:
        if adjustments.value(after.adjustments, adjustment.knob, adjustment.target) is None:
            yield Announcement(ADJUSTED, adjustments.ended(adjustment))
    if after.phase is not before.phase:
        is_warning = after.phase in (JobPhase.FAILED, JobPhase.RESTARTING)
        yield Announcement(str(after.phase), after.message, is_warning)


def _has_ended(before: ReplicaState, after: ReplicaState) -> bool:
    """Whether an attempt has ended, possibly for the same reason as the attempt before it."""
    ends = before.phase.is_live and after.phase.is_final
    return ends or after.restarts > before.restarts or after.exit != before.exit


def event(resource: Object, announced: Announcement, *, now: float, number: int) -> Object:
    """Return the Kubernetes event of an announcement; ``number`` distinguishes events of the same moment.

    Its name has the moment and the number, from which it is numbered (`event_number`).
    """
    namespace, name = key_of(resource)
    time = times.text(now)
    about = f"{announced.replica}: " if announced.replica else ""
    own = {labels.JOB: name}
    if announced.replica is not None:
        own |= {labels.ROLE: str(announced.replica.role), labels.INDEX: str(announced.replica.index)}
        own[labels.ATTEMPT] = str(announced.attempt)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{int(now * 1e6):x}.{number}", "namespace": namespace, "labels": own},
        "involvedObject": {
            "apiVersion": kinds.TRAINING_JOBS.api_version,
            "kind": kinds.TRAINING_JOBS.name,
            "name": name,
            "namespace": namespace,
            "uid": resource["metadata"]["uid"],
        },
        "type": "Warning" if announced.is_warning else "Normal",
        "reason": "".join(part.capitalize() for part in announced.kind.split("-")),
        "message": f"{about}{announced.message or announced.kind}"[:_LONGEST_MESSAGE],
        "source": {"component": _COMPONENT},
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }


def event_number(told: Object) -> int:
    """Return the number of a Kubernetes event: the microsecond of its moment, plus its number there.

    Kubernetes forgets old events, so their places in a list change. This number stays the same, later events
    have larger ones, and it is below 2**53, so JavaScript keeps it. An event that Paceline has not named has
    the microsecond of its time.
    """
    named = _NAME.search(told["metadata"]["name"])
    if named is None:
        return int(event_time(told) * 1e6)
    return int(named["microseconds"], 16) + int(named["number"])


def event_time(told: Object) -> float:
    """Return when a Kubernetes event happened (Unix seconds); others than Paceline may leave its time out."""
    return times.seconds(told.get("firstTimestamp") or told["metadata"]["creationTimestamp"])


async def publish(
    cluster: Cluster, resource: Object, announced: Announcement, *, now: float, number: int
) -> None:
    """Create the event of an announcement. Nothing depends on it, so a refusal is only logged."""
    try:
        await cluster.create(kinds.EVENTS, event(resource, announced, now=now, number=number))
    except ClusterError as error:
        log.info("an event is not told: %s", error.message)
