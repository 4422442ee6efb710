"""Runs: jobs that were submitted, with their events and the requests of users."""

from __future__ import annotations

import dataclasses
import enum
import signal
from collections.abc import Iterable, Mapping

from paceline import errors
from paceline.model import roles
from paceline.model.explanations import diagnosis_summaries
from paceline.model.instants import UnixSeconds
from paceline.model.jobs import job_specs, statuses

#: The values of a run's ``engine``.
LOCAL, KUBERNETES = "local", "kubernetes"
STOP, SCALE, RESIZE, ADJUST = "stop", "scale", "resize", "adjust"
#: Event kinds: limits of replicas changed for good; an adjustment for a limited time began or ended.
RESIZED, ADJUSTED = "resized", "adjusted"
#: Event kind: a cluster did not grant a resize; the message says why.
NOT_RESIZED = "not-resized"
#: Event kinds: a run goes on with another job file, or does not; the message then says why.
CHANGED, NOT_CHANGED = "changed", "not-changed"
#: Event kind, from agents: what the instrumentation sees in a script, and what it does not see, and why.
SEEN = "instrumentation"
#: The message of such an event begins like this if the steps of a script are seen.
STEPS_SEEN = "its steps,"
#: Event kind, from agents: a fact with a name and a value (`script_facts`).
FACT = "fact"
#: Event kind, from agents: what was changed in a script, and what was not, and why (`model.variables.cures`).
CURED = "cure"
#: Event kind, from agents: what a trainer does while it makes no step, and since when (`standings`).
STANDING = "standing"
#: Event kinds that hold for as long as a script runs; they are shown apart from what happened.
OF_SCRIPTS = (SEEN, FACT, CURED)
#: Event kind: the run was imported from a recording.
IMPORTED = "imported"


class Detail(enum.StrEnum):
    """How many of the measurements of a run are kept."""

    FULL = "full"
    MINUTES = "minutes"  # samples and step reports in intervals of a minute
    SUMMARY = "summary"  # none of them: what the run came to, its findings, events and evaluations


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One submitted job. Its name is unique in the store.

    Attributes:
        source: the job file, byte for byte as submitted.
        directory: where logs, checkpoints and scratch files are.
        started_at: when its replicas were first launched; None: not yet.
        finished_at: when it became final; None: not yet.
        notes: what the engine could not limit or measure, and the commit of its code.
        detail: how many of its measurements are kept.
    """

    name: str
    spec: job_specs.JobSpec
    source: str
    engine: str
    directory: str
    submitted_at: UnixSeconds
    phase: statuses.JobPhase = statuses.JobPhase.PENDING
    message: str = ""
    started_at: UnixSeconds | None = None
    finished_at: UnixSeconds | None = None
    notes: tuple[str, ...] = ()
    detail: Detail = Detail.FULL


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run as a list of runs shows it.

    Attributes:
        ttl_after_finished_seconds: how long it is kept after its end; None: until a user removes it.
        replicas: running and wanted replicas by role, such as ``ps 2/2, worker 3/4``.
        namespace: the namespace of the cluster; None on this machine.
        diagnosis: the result of its last diagnosis; None: it was never diagnosed.
        model: the name of the model that it trains (`trained_models`).
        detail: how many of its measurements are kept.
    """

    name: str
    phase: statuses.JobPhase
    message: str
    engine: str
    directory: str
    submitted_at: UnixSeconds
    started_at: UnixSeconds | None
    finished_at: UnixSeconds | None
    ttl_after_finished_seconds: float | None
    replicas: str
    labels: Mapping[str, str]
    namespace: str | None = None
    diagnosis: diagnosis_summaries.DiagnosisSummary | None = None
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
        """Whether its last attempt failed: for good, before a restart, or before the job was stopped."""
        if self.phase in (statuses.ReplicaPhase.FAILED, statuses.ReplicaPhase.BACKING_OFF):
            return True
        if self.phase is not statuses.ReplicaPhase.STOPPED or self.exit is None or not self.restarts:
            return False
        return self.exit.kind is not statuses.ExitKind.COMPLETED and self.exit.ended_by != signal.SIGTERM


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """Something that happened to a run, for users and for the time line."""

    at: UnixSeconds
    kind: str
    message: str
    replica: roles.ReplicaId | None = None
    attempt: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A user's request to a run that its supervisor has not taken up yet.

    Attributes:
        kind: ``stop``, ``scale N`` for N workers, or ``resize`` or ``adjust`` with the details as JSON.
    """

    id: int
    kind: str
    at: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpecChange:
    """A run's change to another job file, from its last checkpoint.

    Attributes:
        source: the new job file.
        before: the job file that the run had until then.
        done_at: when the run went on with it; None: the run has not ended yet to begin again.
    """

    id: int
    asked_at: UnixSeconds
    source: str
    before: str
    done_at: UnixSeconds | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """The identity of a submit, by which a repeated submit is recognized.

    Attributes:
        key: the key that the caller has chosen; unique in the store.
        fingerprint: the fingerprint of the submitted job, so that a key is not reused for another job.
    """

    key: str
    fingerprint: str

    def taken(self, name: str) -> errors.Conflict:
        """Return the error for a key that another job was submitted with: the run ``name``."""
        return errors.Conflict(
            f"another job was submitted with the key {self.key!r}: {name}",
            "give each submit a key of its own",
        )


def replica_counts(replicas: Iterable[tuple[str, bool]]) -> str:
    """Return how many of the wanted replicas of each role run: ``ps 2/2, worker 3/4``.

    Args:
        replicas: the role of each wanted replica, and whether it runs.
    """
    found: dict[str, list[bool]] = {}
    for role, runs in replicas:
        found.setdefault(role, []).append(runs)
    return ", ".join(f"{role} {sum(running)}/{len(running)}" for role, running in found.items())
