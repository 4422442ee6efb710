"""A job that was submitted: what was asked for, and how it went."""

from __future__ import annotations

import dataclasses
import enum
import signal
from collections.abc import Iterable, Mapping

from paceline import errors
from paceline.model import roles
from paceline.model.explanations import job_summaries
from paceline.model.jobs import job_specs, statuses

#: What ``engine`` of a run says.
LOCAL, KUBERNETES = "local", "kubernetes"
STOP, SCALE, RESIZE, ADJUST = "stop", "scale", "resize", "adjust"
#: Said of a change for good of what replicas may take, and of one for a time, as it begins and ends.
RESIZED, ADJUSTED = "resized", "adjusted"
#: Said of what a cluster does not give, and why.
NOT_RESIZED = "not-resized"
#: Said when a run goes on with another job file, or why it does not.
CHANGED, NOT_CHANGED = "changed", "not-changed"
#: Said by agents of what is seen in a script, and what is not, and why.
SEEN = "instrumentation"
#: How that begins where the steps of a script are seen.
STEPS_SEEN = "its steps,"
#: Said by agents of a fact with a name and a value (`script_facts`).
FACT = "fact"
#: Said by agents of what was changed in a script, and what was not, and why (`model.variables.cures`).
CURED = "cure"
#: Said by agents of what a trainer does while it makes no step, as of since when (`standings`).
STANDING = "standing"
#: Kinds of events that hold for as long as a script runs, and are shown apart from what happened.
OF_SCRIPTS = (SEEN, FACT, CURED)
#: What happened to a run that came out of a recording.
IMPORTED = "imported"


class Detail(enum.StrEnum):
    """How much of what was measured of a run is kept."""

    FULL = "full"
    MINUTES = "minutes"  # samples and step reports in intervals of a minute
    SUMMARY = "summary"  # none of them: what the run came to, its findings, events and evaluations


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One submitted job. Its name is unique in the store; times are Unix seconds.

    Attributes:
        source: the job file, byte for byte as submitted.
        directory: where logs, checkpoints and scratch files are.
        started_at: when its replicas were first launched; None before.
        finished_at: when it became final; None before.
        notes: what the engine could not limit or measure, and which commit its code is, said once.
        detail: how much of what was measured is kept.
    """

    name: str
    spec: job_specs.JobSpec
    source: str
    engine: str
    directory: str
    submitted_at: float
    phase: statuses.JobPhase = statuses.JobPhase.PENDING
    message: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    notes: tuple[str, ...] = ()
    detail: Detail = Detail.FULL


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a list of runs shows of each; times are Unix seconds.

    Attributes:
        ttl_after_finished_seconds: how long it is kept after its end; None: until a user removes it.
        replicas: running of wanted replicas by role, such as ``ps 2/2, worker 3/4``.
        namespace: of the cluster; None on this machine.
        digest: how it did when it was last diagnosed; None: it never was.
        model: which it trains (`trained_models`).
        detail: how much of what was measured is kept.
    """

    name: str
    phase: statuses.JobPhase
    message: str
    engine: str
    directory: str
    submitted_at: float
    started_at: float | None
    finished_at: float | None
    ttl_after_finished_seconds: float | None
    replicas: str
    labels: Mapping[str, str]
    namespace: str | None = None
    digest: job_summaries.Digest | None = None
    model: str = ""
    detail: Detail = Detail.FULL


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow:
    """One replica of a run as the store knows it; ``host`` and ``address`` are None before its launch."""

    replica: roles.ReplicaId
    phase: statuses.ReplicaPhase
    attempt: int
    restarts: int
    memory_bytes: int | None = None
    exit: statuses.ExitReason | None = None
    host: str | None = None
    address: str | None = None
    pid: int | None = None
    cores: tuple[int, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether its last end was a failure: for good, to come back from, or until the job was stopped."""
        if self.phase in (statuses.ReplicaPhase.FAILED, statuses.ReplicaPhase.BACKING_OFF):
            return True
        if self.phase is not statuses.ReplicaPhase.STOPPED or self.exit is None or not self.restarts:
            return False
        return self.exit.kind is not statuses.ExitKind.COMPLETED and self.exit.ended_by != signal.SIGTERM


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """Something that happened to a run, for people and for the time line."""

    at: float
    kind: str
    message: str
    replica: roles.ReplicaId | None = None
    attempt: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Something that a user wants of a run and that its supervisor has not taken up yet.

    Attributes:
        kind: ``stop``, ``scale N``: so many workers, ``resize`` or ``adjust`` with what is asked as JSON.
    """

    id: int
    kind: str
    at: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """That a run goes on with another job file, from its last checkpoint; times are Unix seconds.

    Attributes:
        source: the job file that it goes on with.
        before: the job file that it had until then.
        done_at: when it did; None: it has not ended yet to begin anew.
    """

    id: int
    asked_at: float
    source: str
    before: str
    done_at: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """How a submit that is made twice is known as one.

    Attributes:
        key: that the caller has chosen; unique in the store.
        fingerprint: of what was submitted, so that a key is not taken for something else by mistake.
    """

    key: str
    fingerprint: str

    def taken(self, name: str) -> errors.Conflict:
        """Return the error for a key with which something else was submitted: the run of that name."""
        return errors.Conflict(
            f"another job was submitted with the key {self.key!r}: {name}",
            "give each submit a key of its own",
        )


def replica_counts(replicas: Iterable[tuple[str, bool]]) -> str:
    """Return how many replicas of each role run, of those wanted: ``ps 2/2, worker 3/4``.

    Args:
        replicas: the role of each, and whether it runs.
    """
    found: dict[str, list[bool]] = {}
    for role, runs in replicas:
        found.setdefault(role, []).append(runs)
    return ", ".join(f"{role} {sum(running)}/{len(running)}" for role, running in found.items())
