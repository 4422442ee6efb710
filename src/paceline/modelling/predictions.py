"""The predicted speed of a layout, and the resource that binds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from paceline.modelling import costs, flows
from paceline.modelling.costs import Costs
from paceline.modelling.flows import Flow
from paceline.modelling.layouts import ModelLayout

#: The words for what binds if no resource does.
NOTHING_BINDS = "the trainers themselves"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast a layout trains.

    Attributes:
        steps_per_second: steps of all trainers together.
        examples_per_second: examples of all trainers together.
        uses: the share of each resource that is used, by its name.
        trainer_cores: cores used by all trainers together.
        server_cores: cores used by each parameter server.
    """

    steps_per_second: float
    examples_per_second: float
    uses: Mapping[str, float]
    trainer_cores: float
    server_cores: tuple[float, ...]

    @property
    def binds(self) -> str | None:
        """Return the most used resource; None: there is none."""
        return flows.most_used(self.uses)


def speed(layout: ModelLayout, given: Costs) -> Speed:
    """Return how fast a layout trains with these costs."""
    return speeds([(layout, given)])[0]


def speeds(cases: Sequence[tuple[ModelLayout, Costs]]) -> list[Speed]:
    """Return how fast each layout trains with its costs; hundreds together take little longer than one."""
    found = flows.flows([costs.network(layout, given) for layout, given in cases])
    return [_speed(layout, given, each) for (layout, given), each in zip(cases, found, strict=True)]


def _speed(layout: ModelLayout, given: Costs, found: Flow) -> Speed:
    steps = sum(found.steps_per_second.values())
    return Speed(
        steps_per_second=steps,
        examples_per_second=steps * layout.batch_size,
        uses=found.uses,
        trainer_cores=given.trainer_step_seconds(len(layout.servers)) * steps
        + given.trainer_background_cores * layout.trainer_count,
        server_cores=tuple(
            given.server_seconds(each) * steps + given.server_background_cores for each in layout.servers
        ),
    )
