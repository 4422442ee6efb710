"""Nodes of a cluster, as a job has to fit on them: what they have, what is in use, and their taints."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from paceline.model.jobs.placements import Toleration


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Amounts that add up exactly: CPU in thousandths of a core, as Kubernetes counts it."""

    millicores: int = 0
    memory_bytes: int = 0
    gpus: int = 0
    pods: int = 0

    # Written out for speed: a cluster of thousands of nodes needs millions of these sums.
    def __add__(self, other: Resources) -> Resources:
        return Resources(
            millicores=self.millicores + other.millicores,
            memory_bytes=self.memory_bytes + other.memory_bytes,
            gpus=self.gpus + other.gpus,
            pods=self.pods + other.pods,
        )

    def __sub__(self, other: Resources) -> Resources:
        return self + other * -1

    def __mul__(self, count: int) -> Resources:
        return Resources(
            millicores=self.millicores * count,
            memory_bytes=self.memory_bytes * count,
            gpus=self.gpus * count,
            pods=self.pods * count,
        )

    def lacking(self, wanted: Resources) -> tuple[str, ...]:
        """Return the names of the wanted resources that are not fully available here."""
        return tuple(
            name for name in KINDS if (need := getattr(wanted, name)) > 0 and need > getattr(self, name)
        )

    def times(self, wanted: Resources) -> int:
        """Return how often ``wanted`` fits in here; it has to take at least one resource."""
        counts: list[int] = [
            getattr(self, name) // need for name in KINDS if (need := getattr(wanted, name)) > 0
        ]
        return max(0, min(counts))


KINDS = tuple(field.name for field in dataclasses.fields(Resources))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node; only ``NoSchedule`` and ``NoExecute`` keep pods away."""

    key: str
    effect: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"

    def is_tolerated(self, tolerations: tuple[Toleration, ...]) -> bool:
        """Whether one of the tolerations matches this taint.

        Source: ``Toleration.ToleratesTaint`` of Kubernetes (``k8s.io/component-helpers``): an empty effect or
        key matches all, ``Exists`` matches every value.
        """
        return any(
            (not each.effect or each.effect == self.effect)
            and (not each.key or each.key == self.key)
            and (each.operator == "Exists" or (each.value or "") == self.value)
            for each in tolerations
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node; ``used`` is the sum of the requests of pods that are bound to it and have not ended."""

    name: str
    allocatable: Resources
    used: Resources = dataclasses.field(default_factory=Resources)
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True
    is_cordoned: bool = False

    @property
    def free(self) -> Resources:
        """The allocatable resources that no pod has requested."""
        return self.allocatable - self.used


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What is left of a namespace's quota, by field of `Resources`, for the resources that it bounds."""

    name: str
    left: Mapping[str, int]
