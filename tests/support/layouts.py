"""What tests of layouts share: trainers, and what steps cost."""

from __future__ import annotations

from paceline.model.roles import ReplicaId, Role
from paceline.modelling import predictions
from paceline.modelling.calibrations import MeasuredRun
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout

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


def measured(layout: ModelLayout, costs: Costs) -> MeasuredRun:
    """Return what is measured of a layout whose steps have some costs."""
    found = predictions.speed(layout, costs)
    return MeasuredRun(
        layout=layout,
        steps_per_second=found.steps_per_second,
        trainer_cores=found.trainer_cores,
        server_cores=found.server_cores,
    )
