"""Why something is as it is: causes, each with what was seen of it and what to do next."""

from __future__ import annotations

import dataclasses
from typing import Any

from paceline.model.explanations.findings import Severity
from paceline.model.roles import ReplicaId


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSource:
    """What a number was computed from, so that a reader can look it up.

    Attributes:
        what: ``samples``, ``steps``, ``evaluations``, ``traces``, ``variables`` or ``job file``.
        field: of these, such as ``cpu_cores``.
        replicas: whose; empty: of all.
        count: how many measurements.
        since: the first moment, in Unix seconds; None: it has none.
        until: the last.
    """

    what: str
    field: str
    replicas: tuple[ReplicaId, ...] = ()
    count: int = 0
    since: float | None = None
    until: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Something that was seen.

    Attributes:
        text: what.
        at: when, the last time, in Unix seconds; None: as it is now.
        count: how often.
        sources: what its numbers rest on.
    """

    text: str
    at: float | None = None
    count: int = 1
    sources: tuple[EvidenceSource, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """What a field of the job file should say.

    Attributes:
        path: the field, such as ``("spec", "roles", "ps", "cpu")``.
        value: plain, as YAML has it; None: the field is to be left out.
    """

    path: tuple[str, ...]
    value: Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How many times as many examples a second a change is expected to bring: computed, not measured."""

    low: float
    high: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason.

    Attributes:
        name: a word for programs, such as ``no-room``; stable.
        what: one sentence for people.
        severity: how bad it is.
        subjects: the replicas, hosts and variables that it is about.
        evidence: what was seen of it.
        next_steps: commands and changes that help, the best first.
        changes: of the job file, all of them together.
        risk: what the changes may cost.
        gain: what they are expected to bring; None: that cannot be said.
        effects: what else was seen that follows from it, nearest first.
        is_past: whether it is over and no longer keeps the job from anything.
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
    """What another size of the job would bring.

    Attributes:
        what: such as ``2 x workers``.
        gain: computed.
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
        uses: how far each bound is used, between 0 and 1, the most used first.
        knee_workers: from so many workers more bring little; None: that cannot be said.
        options: what other sizes would bring.
    """

    binds: str
    uses: tuple[tuple[str, float], ...]
    knee_workers: float | None
    options: tuple[Option, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job is where it is, and why it is as fast as it is.

    Attributes:
        job: which.
        summary: where it stands, and since when.
        causes: why, what matters most first; empty: nothing is wrong.
        unknown: what could not be looked at, and why not.
        outlook: how it scales; None: that cannot be said.
    """

    job: str
    summary: str
    causes: tuple[Cause, ...] = ()
    unknown: tuple[str, ...] = ()
    outlook: Outlook | None = None
