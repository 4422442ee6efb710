"""The commands of the state machine. Each may be executed twice without harm."""

from __future__ import annotations

import dataclasses

from paceline.control import events
from paceline.model import roles


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Start this attempt of a replica, with this memory limit (None: no limit)."""

    replica: roles.ReplicaId
    attempt: int
    memory_bytes: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """Ask the replica to end; its agent forwards SIGTERM, and kills after the job's grace period."""

    replica: roles.ReplicaId
    attempt: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """End every process of the replica now."""

    replica: roles.ReplicaId
    attempt: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StartTimer:
    """Report ``timer`` as fired after a number of seconds."""

    timer: events.Timer
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """Release everything that the job holds, then report ``Released``."""


Command = Launch | Terminate | Kill | StartTimer | Release
