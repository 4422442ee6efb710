"""What there is where jobs run, and whether another one fits."""

from __future__ import annotations

from typing import Literal

from paceline.model.explanations.findings import Severity
from paceline.scheduling import fits
from paceline.services.observing import capacities
from paceline.surfaces.web.schemas.bases import Document, Instant, Schema
from paceline.surfaces.web.schemas.derived import document, schema


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


#: ``hosts`` are emulated ones.
Holding = schema(capacities.NodeHolding, "Holding", asked=Amounts)


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
    holdings: list[Holding]  # type: ignore[valid-type]
    waiting: list[Waiting]
    left_out: int


#: What ``paceline fit -o json`` prints.
Fit = document(fits.Fit, "Fit", name=str)
