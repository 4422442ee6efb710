"""Pod placement: which replicas a job file wants on which hosts."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping


class PlacementStrategy(enum.StrEnum):
    """How the replicas of a job are distributed over hosts."""

    ANY = "any"
    SPREAD_PS = "spread-ps"  # PS on as many hosts as there are
    COLOCATE = "colocate"  # one PS with its share of the workers on each host
    ISOLATE = "isolate"  # PS and workers on separate hosts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A Kubernetes toleration, field for field."""

    key: str | None = None
    operator: str = "Equal"
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodPlacement:
    """The placement strategy, and the nodes that are allowed at all."""

    strategy: PlacementStrategy = PlacementStrategy.ANY
    node_selector: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
