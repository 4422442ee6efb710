"""How many steps the trainers of a job may be apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Mode = Literal["asynchronous", "bounded-staleness", "synchronous"]


@dataclass(frozen=True)
class Consistency:
    """How many steps trainers may be apart.

    `asynchronous`: no trainer waits for another. `bounded-staleness`: no trainer starts a step when it is
    more than `staleness` steps ahead of the slowest. `synchronous`: each global step takes the gradients of
    all trainers except the `backup_workers` (default 0) slowest, whose gradients are dropped.
    """

    mode: Mode = "asynchronous"
    staleness: int | None = field(default=None, metadata={"least": 0})
    backup_workers: int | None = field(default=None, metadata={"least": 0})

    @classmethod
    def of(cls, training: Mapping[str, Any] | None) -> Consistency:
        """Return the consistency of a job with this `training` section."""
        return cls(**((training or {}).get("consistency") or {}))

    def conflict(self) -> str | None:
        """Return what is wrong with the combination of keys, or None."""
        if self.mode == "bounded-staleness" and self.staleness is None:
            return "the mode bounded-staleness needs staleness, the steps that a worker may be ahead"
        if self.mode != "bounded-staleness" and self.staleness is not None:
            return f"staleness belongs to the mode bounded-staleness, not to {self.mode}"
        if self.mode != "synchronous" and self.backup_workers is not None:
            return f"backup_workers belongs to the mode synchronous, not to {self.mode}"
        return None

    def conflict_with(self, *, steps_in_flight: int, steps_per_exchange: int, trainers: int) -> str | None:
        """Return what is wrong with the keys in a job with these properties, or None."""
        if self.staleness is not None and self.staleness < steps_per_exchange - 1:
            return (
                f"a worker begins steps_per_exchange ({steps_per_exchange}) steps at once, so staleness must "
                f"be at least {steps_per_exchange - 1}, not {self.staleness}"
            )
        if self.mode != "synchronous":
            return None
        if max(steps_in_flight, steps_per_exchange) > 1:
            key = "steps_in_flight" if steps_in_flight > 1 else "steps_per_exchange"
            return (
                f"a synchronous step starts when the one before is applied, but {key} is above 1; "
                "leave it at 1, or choose another mode"
            )
        if self.gradients(trainers) < 1:
            return (
                f"backup_workers is {self.backup_workers}, but only {trainers} replicas train; "
                "use fewer backup workers"
            )
        return None

    def gradients(self, trainers: int) -> int:
        """Return the number of trainers whose gradients make a global step."""
        return trainers - (self.backup_workers or 0) if self.mode == "synchronous" else 1
