"""Causes: why a job is as it is, each with its evidence and next steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from paceline.model.explanations.findings import Severity
from paceline.model.instants import UnixSeconds
from paceline.model.roles import ReplicaId


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSource:
    """The data that a number was computed from, so that a reader can look it up.

    Attributes:
        what: ``samples``, ``steps``, ``evaluations``, ``traces``, ``variables`` or ``job file``.
        field: the field of these, such as ``cpu_cores``.
        replicas: the replicas that were measured; empty: all.
        count: the number of measurements.
        since: the time of the first measurement; None: the data has no time.
        until: the time of the last measurement.
    """

    what: str
    field: str
    replicas: tuple[ReplicaId, ...] = ()
    count: int = 0
    since: UnixSeconds | None = None
    until: UnixSeconds | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """An observation.

    Attributes:
        text: what was seen.
        at: when it was seen last; None: it is the present state.
        count: how often it was seen.
        sources: the data that its numbers were computed from.
    """

    text: str
    at: UnixSeconds | None = None
    count: int = 1
    sources: tuple[EvidenceSource, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A change of one field of the job file.

    Attributes:
        path: the field, such as ``("spec", "roles", "ps", "cpu")``.
        value: the new value as plain YAML data; None: the field is to be removed.
    """

    path: tuple[str, ...]
    value: Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The factor on examples a second that a change is expected to bring: computed, not measured."""

    low: float
    high: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cause.

    Attributes:
        name: a stable word for programs, such as ``no-room``.
        what: one sentence for users.
        severity: how bad it is.
        subjects: the replicas, hosts and variables concerned.
        evidence: what was seen of it.
        next_steps: commands and changes that help, the best first.
        changes: changes of the job file, to be made together.
        risk: what the changes may cost.
        gain: what the changes are expected to bring; None: not known.
        effects: what else was seen that follows from it, nearest first.
        is_past: whether it is over and no longer hinders the job.
    """

    name: str
    what: str
    severity: Severity = Severity.ERROR
    subjects: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    next_steps: tuple[str, ...] = ()
    changes: tuple[FieldChange, ...] = ()
    risk: str = ""
    gain: Gain | None = None
    effects: tuple[Cause, ...] = ()
    is_past: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The expected effect of another size of the job.

    Attributes:
        what: the size, such as ``2 x workers``.
        gain: the computed gain.
        binds: what would bind then.
    """

    what: str
    gain: Gain
    binds: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How a job scales.

    Attributes:
        binds: what bounds its speed now.
        uses: the used share of each bound, between 0 and 1, the most used first.
        knee_workers: the number of workers beyond which more bring little; None: not known.
        options: the expected effects of other sizes.
    """

    binds: str
    uses: tuple[tuple[str, float], ...]
    knee_workers: float | None
    options: tuple[Option, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job is where it is, and why it is as fast as it is.

    Attributes:
        job: the name of the job.
        summary: the phase of the job, and since when it has it.
        causes: the causes, the most important first; empty: nothing is wrong.
        unknown: what could not be looked at, and why not.
        outlook: how the job scales; None: not known.
        thresholds: the numbers of rules that the site has set, by the names of their thresholds.
    """

    job: str
    summary: str
    causes: tuple[Cause, ...] = ()
    unknown: tuple[str, ...] = ()
    outlook: Outlook | None = None
    thresholds: Mapping[str, float] = dataclasses.field(default_factory=dict)
