"""What there is where jobs run, and whether another one fits."""

from __future__ import annotations

from typing import Literal

from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import JobPhase
from paceline.surfaces.web.schemas.bases import Document, Instant, Schema


class Amounts(Schema):
    """What there is, or is asked for."""

    cores: float
    memory_bytes: int
    gpus: int
    pods: int


class Node(Schema):
    """A node of the cluster, or this machine.

    Attributes:
        taken: by everybody, what jobs hold included; jobs that share cores may ask for more than there are.
        taints: that keep pods away which do not tolerate them.
    """

    name: str
    is_ready: bool
    is_cordoned: bool
    has: Amounts
    taken: Amounts
    taints: list[str]


class Holding(Schema):
    """What a job holds of a node; ``hosts`` are emulated ones. Null is what was not measured."""

    job: str
    phase: JobPhase
    node: str
    hosts: list[str]
    replicas: dict[str, int]
    asked: Amounts
    used_cores: float | None
    used_memory_bytes: float | None


class Waiting(Schema):
    """A job that has not begun, and why; ``code`` is null where no rule knows."""

    job: str
    since: Instant
    priority: int
    asked: Amounts
    code: str | None
    severity: Severity | None
    why: str


class Capacity(Document):
    """What there is, who holds it, and who waits for it; of the namespace that was asked about.

    Attributes:
        left_out: so many jobs that have not ended were not looked at.
    """

    kind: Literal["Capacity"] = "Capacity"
    nodes: list[Node]
    holdings: list[Holding]
    waiting: list[Waiting]
    left_out: int


class Blocker(Schema):
    """A reason why something has no place, and the nodes that it is true of."""

    reason: str
    nodes: list[str]
    what: str
    missing: int


class Fit(Document):
    """Whether all of a job fits now; what ``paceline fit -o json`` prints."""

    kind: Literal["Fit"] = "Fit"
    name: str
    fits: bool
    most_workers: int | None
    places: dict[str, str]
    blockers: list[Blocker]
