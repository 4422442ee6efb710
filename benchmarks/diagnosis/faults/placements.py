"""Faults of where variables lie: one parameter server has most of the work."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks.diagnosis import changes, checks
from benchmarks.diagnosis.bases import FOUR, KINDS, PS_HOST, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, of
from benchmarks.diagnosis.knowns import Known
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role
from paceline.model.variables import saved_plans
from paceline.model.variables.row_layouts import RowLayout, RowOrder
from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard, Variable

_WAITING = ("waiting-for-ps",)
_PIECES = 16


def giant_variable(base: Base, severity: Severity) -> Fault:
    """The table lies on one parameter server of four; mild: on two."""
    cut = {"strategy": "fixed", "shards": 2} if severity is Severity.MILD else {"strategy": "none"}

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.training(spec, partitioning=cut)

    return Fault(
        cause="giant-variable", also=_WAITING, base=base.of_kind(FOUR), felt=checks.slower(), change=change
    )


def uneven_placement(base: Base, severity: Severity) -> Fault:
    """Tables are in many small parts, too many of which lie on the first parameter server."""
    on_first = int(of(severity, 9, 11, 14))

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.training(spec, variable_plan=saved_plans.write(_heaped(_plan(known), on_first)))

    return Fault(
        cause="uneven-placement", also=_WAITING, base=base.of_kind(FOUR), felt=checks.slower(), change=change
    )


def skewed_shards(base: Base, severity: Severity) -> Fault:
    """Tables are cut into ranges of rows, the hot ones together, behind links that are not much wider than
    even servers need.
    """
    base = base.of_kind(FOUR)
    width = of(severity, 0.8, 0.6, 0.45)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        plan = _ranged(_plan(known), KINDS[base.kind].servers)
        bandwidth = round(base.bandwidth(Role.PS) * width)
        spec = changes.hosts(spec, PS_HOST, bandwidth_bits_per_second=bandwidth)
        return changes.training(spec, variable_plan=saved_plans.write(plan))

    return Fault(cause="skewed-shards", also=_WAITING, base=base, felt=checks.slower(), change=change)


def _plan(known: Known) -> Plan:
    if known.plan is None:
        raise RuntimeError("the twin's recording has no plan of its variables")
    return known.plan


def _laid(variable: Variable, order: RowOrder, servers: Sequence[int]) -> list[Shard]:
    layout = RowLayout(rows=variable.rows, shards=len(servers), order=order)
    return [
        Shard(variable=variable, layout=layout, index=index, server=server)
        for index, server in enumerate(servers)
    ]


def _heaped(plan: Plan, on_first: int) -> Plan:
    """Return a plan with tables in `_PIECES` parts: so many on the first server, the others in turn."""
    shards: list[Shard] = []
    for variable in plan.variables:
        if not variable.sparse:
            shards += plan.of(variable.name)
            continue
        others = range(1, plan.servers)
        rest = [others[i % len(others)] for i in range(_PIECES - on_first)]
        shards += _laid(variable, RowOrder.HASHED, [0] * on_first + rest)
    return dataclasses.replace(plan, shards=tuple(shards))


def _ranged(plan: Plan, count: int) -> Plan:
    """Return a plan with tables in so many ranges of rows, neighbours together on a server."""
    shards: list[Shard] = []
    for variable in plan.variables:
        if variable.sparse:
            servers = [i * plan.servers // count for i in range(count)]
            shards += _laid(variable, RowOrder.CONTIGUOUS, servers)
        else:
            shards += plan.of(variable.name)
    return dataclasses.replace(plan, shards=tuple(shards))
