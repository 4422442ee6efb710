"""What tests of layouts share: trainers, and what steps cost."""

from __future__ import annotations

from paceline.model.roles import ReplicaId, Role
from paceline.modelling.costs import Costs

COSTS = Costs(
    trainer_seconds=0.004,
    trainer_visit_seconds=4e-4,
    server_visit_seconds=5e-4,
    server_byte_seconds=3e-9,
    server_row_seconds=3e-7,
    own_seconds=0.001,
    trainer_background_cores=0.01,
    server_background_cores=0.01,
)


def workers(count: int) -> tuple[ReplicaId, ...]:
    """Return so many workers."""
    return tuple(ReplicaId(Role.WORKER, index) for index in range(count))
