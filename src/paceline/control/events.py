"""The events of a job. They may come late, twice or not at all; the state machine handles all of this."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from paceline.model import roles
from paceline.model.jobs import job_specs, statuses
from paceline.model.jobs.adjustments import Adjustment


class TimerKind(enum.StrEnum):
    """What a timer is for."""

    DEADLINE = "deadline"  # the job has run for too long
    BACKOFF = "backoff"  # the replica's next attempt is due
    KILL = "kill"  # the replica was asked to end and should be gone by now
    UNSERVED = "unserved"  # a parameter server ended by itself, and the job should be over by now


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer's identity; a timer for an older attempt of a replica is stale and ignored."""

    kind: TimerKind
    replica: roles.ReplicaId | None = None
    attempt: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Begin:
    """All replicas may be launched."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStarted:
    """The agent of this attempt runs and has started the command."""

    replica: roles.ReplicaId
    attempt: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaExited:
    """An attempt has ended and nothing of it is left.

    Attributes:
        is_lasting: whether the next attempt is certain to end for the same reason.
    """

    replica: roles.ReplicaId
    attempt: int
    reason: statuses.ExitReason
    is_lasting: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired:
    """A timer that the machine asked for has run out."""

    timer: Timer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested:
    """A caller wants the job to end."""

    reason: str = "stopped on request"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRequested:
    """A caller wants the job to have another number of workers (`scalings.conflict` says whether it can)."""

    workers: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResizeRequested:
    """A caller wants replicas of the job to have other cores or memory.

    Attributes:
        spec: a job whose replicas have the wanted cores and memory (`resizings.taken_over`).
        source: its job file; empty: it is kept elsewhere.
    """

    spec: job_specs.JobSpec
    source: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdjustRequested:
    """A caller wants to adjust the job for a limited time; an adjustment in the past restores the setting."""

    adjustments: tuple[Adjustment, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed:
    """The time is now this (Unix seconds), and an adjustment has ended."""

    now: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EngineFailed:
    """The engine cannot give the job what it needs, whatever replica it tries."""

    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequested:
    """A caller wants a stopped or failed job to go on from its last checkpoint.

    Attributes:
        spec: the job as which it goes on; None: the job as it was.
    """

    spec: job_specs.JobSpec | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorReplaced:
    """A new supervisor took over; the old one may have left commands half done, and its timers are gone.

    Attributes:
        live: the attempts that still have processes.
        exits: the exit reasons of attempts that ended meanwhile, as far as they are known.
        active_seconds: how long the job has been active already.
    """

    live: Mapping[roles.ReplicaId, int]
    exits: Mapping[roles.ReplicaId, statuses.ExitReason] = dataclasses.field(default_factory=dict)
    active_seconds: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Released:
    """No process, cgroup, namespace, pod or port of the job is left."""


Event = (
    Begin
    | ReplicaStarted
    | ReplicaExited
    | TimerFired
    | StopRequested
    | ScaleRequested
    | ResizeRequested
    | AdjustRequested
    | TimePassed
    | EngineFailed
    | ResumeRequested
    | SupervisorReplaced
    | Released
)
