"""Trainers of layouts."""

from __future__ import annotations

from paceline.model.roles import ReplicaId, Role


def workers(count: int) -> tuple[ReplicaId, ...]:
    """Return so many workers."""
    return tuple(ReplicaId(Role.WORKER, index) for index in range(count))
