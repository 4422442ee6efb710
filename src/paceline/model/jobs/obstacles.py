"""Obstacles that keep an attempt of a replica from running, or ended it, in a cluster or on this machine."""

from __future__ import annotations

import dataclasses
import enum

from paceline.model.instants import UnixSeconds
from paceline.model.roles import ReplicaId


class ObstacleKind(enum.StrEnum):
    """The kind of an obstacle; the words are stable."""

    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IMAGE = "image"
    CONFIGURATION = "configuration"
    VOLUME = "volume"
    CRASH_LOOP = "crash-loop"
    COMING = "coming"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    NODE_LOST = "node-lost"
    DISK_FULL = "disk-full"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """An obstacle.

    Attributes:
        message: the words of its source, such as the scheduler.
        replica: the replica concerned; None: the whole job.
        attempt: the attempt of the replica.
        at: when it was seen last; None: now.
        count: how often it was seen.
    """

    kind: ObstacleKind
    message: str
    replica: ReplicaId | None = None
    attempt: int | None = None
    at: UnixSeconds | None = None
    count: int = 1
