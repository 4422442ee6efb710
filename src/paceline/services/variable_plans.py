"""Ways to lay a model's variables over the parameter servers of a job, side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model.jobs import JobSpec
from paceline.model.roles import Role
from paceline.model.row_layouts import RowOrder
from paceline.model.variable_plans import Cut, CutStrategy, PlacementRule, Plan, plan
from paceline.model.variables import Variable

_WHOLE = Cut(strategy=CutStrategy.NONE)
_RANGES = Cut(strategy=CutStrategy.FIXED, order=RowOrder.CONTIGUOUS)
_ALTERNATIVES = (
    ("round-robin", _WHOLE, PlacementRule.ROUND_ROBIN),
    ("greedy", _WHOLE, PlacementRule.GREEDY),
    ("partitioned", _RANGES, PlacementRule.ROUND_ROBIN),
    ("by traffic", Cut(), PlacementRule.TRAFFIC),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A way to lay out the variables; ``plan`` is None where ``missing`` says why there is none."""

    name: str
    plan: Plan | None
    missing: str = ""


def alternatives(spec: JobSpec, variables: Sequence[Variable]) -> tuple[Alternative, ...]:
    """Return what the job file asks for, then TensorFlow's ways and the one by traffic.

    Raises:
        ValueError: the job has no parameter server.
    """
    servers = spec.role(Role.PS)
    if servers is None:
        raise ValueError("the job has no ps, so there is nothing to lay out")
    asked = ("job file", *_asked(spec.training or {}))
    return tuple(
        _alternative(name, variables, servers.replicas, cut, rule)
        for name, cut, rule in (asked, *_ALTERNATIVES)
    )


def _asked(training: Mapping[str, Any]) -> tuple[Cut, PlacementRule]:
    given, default = training.get("partitioning") or {}, Cut()
    cut = Cut(
        strategy=CutStrategy(given.get("strategy", default.strategy)),
        shards=given.get("shards"),
        min_shard_bytes=given.get("min_shard_bytes", default.min_shard_bytes),
        order=RowOrder(given.get("rows", default.order)),
    )
    return cut, PlacementRule(training.get("variable_placement", PlacementRule.GREEDY))


def _alternative(
    name: str, variables: Sequence[Variable], servers: int, cut: Cut, rule: PlacementRule
) -> Alternative:
    try:
        return Alternative(name=name, plan=plan(variables, servers=servers, cut=cut, rule=rule))
    except ValueError as error:
        return Alternative(name=name, plan=None, missing=str(error))
