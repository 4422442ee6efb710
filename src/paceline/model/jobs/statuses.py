"""The phases of jobs and replicas, and the reasons why replicas end."""

from __future__ import annotations

import dataclasses
import enum


class JobPhase(enum.StrEnum):
    """The phases of a job. The last three are final."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def is_final(self) -> bool:
        """Whether nothing of the job runs, and nothing more happens unless a user asks for it."""
        return self in (JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.STOPPED)


#: Phases of jobs that have not ended.
ACTIVE_PHASES = tuple(phase for phase in JobPhase if not phase.is_final)


class ReplicaPhase(enum.StrEnum):
    """The phases of a replica. ``backing-off`` waits for its next attempt; the last three are final."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    BACKING_OFF = "backing-off"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def is_final(self) -> bool:
        """Whether the replica has ended for good."""
        return self in (ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED, ReplicaPhase.STOPPED)

    @property
    def is_live(self) -> bool:
        """Whether there is, or may be, a process of this replica."""
        return self in (ReplicaPhase.STARTING, ReplicaPhase.RUNNING, ReplicaPhase.STOPPING)


class ExitKind(enum.StrEnum):
    """Why a replica ended (``docs/agent-protocol.md``); agents never report ``lost`` and ``disrupted``."""

    COMPLETED = "completed"
    ERROR = "error"
    SIGNAL = "signal"
    OUT_OF_MEMORY = "out-of-memory"
    LAUNCH_FAILED = "launch-failed"
    ORPHANED = "orphaned"
    LOST = "lost"
    #: Its cluster took its place: it was preempted or drained, or its queue gave its quota to another job.
    DISRUPTED = "disrupted"


#: A shell adds this to the number of a signal that ended its command (POSIX, "Exit Status for Commands").
SHELL_CODE = 128
#: The last signal of Linux (``signal.h``). An exit code above `SHELL_CODE` plus this is the program's own.
LAST_SIGNAL = 64
#: Exit codes of shells and container runtimes for a command that can never be started.
NOT_STARTED = (126, 127, 128)


def signal_of(code: int) -> int | None:
    """Return the signal that an exit code of a shell stands for; None: the code is the command's own."""
    return code - SHELL_CODE if SHELL_CODE < code <= SHELL_CODE + LAST_SIGNAL else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExitReason:
    """Why one attempt of a replica ended."""

    kind: ExitKind
    code: int | None = None
    signal: int | None = None
    message: str = ""

    def __str__(self) -> str:
        match self.kind:
            case ExitKind.ERROR:
                return self.message or f"exit code {self.code}"
            case ExitKind.SIGNAL:
                return self.message or f"signal {self.signal}"
            case ExitKind.COMPLETED:
                return self.message or "completed"
        return f"{self.kind}: {self.message}" if self.message else str(self.kind)

    @property
    def ended_by(self) -> int | None:
        """Return the signal that ended the command, even if a shell turned the signal into an exit code.

        None: no signal ended it, or the kind of the reason says more.
        """
        if self.kind is ExitKind.SIGNAL:
            return self.signal
        if self.kind is ExitKind.ERROR and self.code is not None:
            return signal_of(self.code)
        return None

    @property
    def is_never_started(self) -> bool:
        """Whether the command can never be started, unlike after an outage of a network or a registry."""
        return self.kind is ExitKind.LAUNCH_FAILED and self.code in NOT_STARTED
