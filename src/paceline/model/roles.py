"""The roles of a parameter-server job and the names of its replicas."""

from __future__ import annotations

import dataclasses
import enum


class Role(enum.StrEnum):
    """What a replica does. The values are TensorFlow's own task types in ``TF_CONFIG``."""

    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"

    @property
    def trains(self) -> bool:
        """Whether replicas of this role run training steps."""
        return self in (Role.WORKER, Role.CHIEF)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class ReplicaId:
    """One replica of a job: its role and its index within the role, from 0."""

    role: Role
    index: int

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"

    @classmethod
    def parse(cls, text: str) -> ReplicaId:
        """Return the replica that ``ps-0`` names.

        Raises:
            ValueError: the text does not name a replica.
        """
        role, dash, index = text.rpartition("-")
        if not dash or not index.isdecimal() or role not in tuple(Role):
            raise ValueError(f"{text!r} does not name a replica (examples: ps-0, worker-3)")
        return cls(Role(role), int(index))
