"""Ways to place a model's variables on the parameter servers of a job: the chosen plan and alternatives."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role
from paceline.model.variables import plan_comparisons, saved_plans, script_plans
from paceline.model.variables.row_layouts import RowOrder
from paceline.model.variables.script_plans import PlacementRequest
from paceline.model.variables.variable_plans import (
    DEFAULT_RULE,
    CutStrategy,
    PlacementRule,
    Plan,
    RowPartitioning,
    plan,
)
from paceline.model.variables.variables import Variable

_WHOLE = RowPartitioning(strategy=CutStrategy.NONE)
_RANGES = RowPartitioning(strategy=CutStrategy.FIXED, order=RowOrder.CONTIGUOUS)
_ALTERNATIVES = (
    ("round-robin", _WHOLE, PlacementRule.ROUND_ROBIN),
    ("greedy", _WHOLE, PlacementRule.GREEDY),
    ("partitioned", _RANGES, PlacementRule.ROUND_ROBIN),
    ("balanced", RowPartitioning(), PlacementRule.BALANCED),
    ("by-traffic", RowPartitioning(), PlacementRule.TRAFFIC),
)
#: The training section with which cures do the same for an observed script; None: they cannot.
_OF_SCRIPT: tuple[tuple[str, Mapping[str, Any] | None], ...] = (
    ("round-robin", {}),
    ("greedy", {"variable_placement": "greedy"}),
    ("partitioned", {"partitioning": {"strategy": "fixed"}}),
    ("balanced", None),
)
_LIBRARY_ALONE = "rows are shuffled in scripts with the training library alone"
JOB_FILE = "job-file"
#: The ways to choose from, in this order.
NAMES = (JOB_FILE, *(name for name, _, _ in _ALTERNATIVES))
#: The keys of the training section that a finished plan replaces.
_SETTLED = ("variable_placement", "partitioning", "measured_variables")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A way to place the variables; if ``plan`` is None, ``missing`` says why."""

    name: str
    plan: Plan | None
    missing: str = ""


def alternatives(
    spec: JobSpec, variables: Sequence[Variable], *, base: Path = Path()
) -> tuple[Alternative, ...]:
    """Return the job file's placement, then TensorFlow's ways, the default way, and placement by traffic.

    Args:
        spec: the job.
        variables: the variables of its model.
        base: the folder that the path of a saved plan starts from.

    Raises:
        InvalidInput: the job has no parameter server, or its saved plan does not fit it.
        NotFound: the file of its saved plan does not exist.
    """
    asked = asked_for(spec, variables, base=base)
    servers = _servers(spec)
    return asked, *(_alternative(name, variables, servers, cut, rule) for name, cut, rule in _ALTERNATIVES)


def asked_for(spec: JobSpec, variables: Sequence[Variable], *, base: Path = Path()) -> Alternative:
    """Return the placement that the job file asks for.

    Args:
        spec: the job.
        variables: the variables of its model.
        base: the folder that the path of a saved plan starts from.

    Raises:
        InvalidInput: the job has no parameter server, or its saved plan does not fit it.
        NotFound: the file of its saved plan does not exist.
    """
    servers = _servers(spec)
    saved = _saved(spec.training or {}, base)
    if saved is None:
        return _alternative(JOB_FILE, variables, servers, *_asked(spec.training or {}))
    return Alternative(name=JOB_FILE, plan=_fitted(saved, variables, servers))


def of_script(spec: JobSpec, known: Plan, *, base: Path = Path()) -> tuple[Alternative, ...]:
    """Return the alternatives for an observed script, which only cures change; the present placement first.

    Args:
        spec: the job.
        known: the variables of its model, each with its devices.
        base: the folder that the path of a saved plan starts from.

    Raises:
        InvalidInput: the job has no parameter server, or its saved plan is invalid.
        NotFound: the file of its saved plan does not exist.
    """
    now = asked_of_script(spec, base=base)
    placements = [_of_script(JOB_FILE, known, now, now)]
    for name, training in _OF_SCRIPT:
        if training is None:
            placements.append(Alternative(name=name, plan=None, missing=_LIBRARY_ALONE))
        else:
            placements.append(
                _of_script(name, known, now, PlacementRequest(servers=now.servers, training=training))
            )
    cut = RowPartitioning(strategy=CutStrategy.NONE)
    placements.append(_alternative("by-traffic", known.variables, now.servers, cut, PlacementRule.TRAFFIC))
    return tuple(placements)


def asked_of_script(spec: JobSpec, *, base: Path = Path()) -> PlacementRequest:
    """Return the placement that the job of an observed script asks for.

    Args:
        spec: the job.
        base: the folder that the path of a saved plan starts from.

    Raises:
        InvalidInput: the job has no parameter server, or its saved plan is invalid.
        NotFound: the file of its saved plan does not exist.
    """
    training = spec.training or {}
    saved = _saved(training, base)
    planned = {} if saved is None else {each.tensorflow_name: each.server for each in saved.shards}
    return PlacementRequest(servers=_servers(spec), training=training, planned=planned)


def _of_script(name: str, known: Plan, before: PlacementRequest, after: PlacementRequest) -> Alternative:
    try:
        return Alternative(name=name, plan=script_plans.moved(known, before, after))
    except ValueError as error:
        return Alternative(name=name, plan=None, missing=str(error))


def settled(spec: JobSpec, *, base: Path) -> JobSpec:
    """Return the job with the plan itself, where its training section names files that define a plan.

    Replicas then need none of these files, and the plan that a run used can be read later.

    Args:
        spec: the job.
        base: the folder that paths start from.

    Raises:
        InvalidInput: a file is invalid, or its plan is not for this job.
        NotFound: a file does not exist.
    """
    training = spec.training or {}
    by_traffic = training.get("variable_placement") == PlacementRule.TRAFFIC
    if "variable_plan" not in training and not by_traffic:
        return spec
    servers, source = _servers(spec), training.get("measured_variables")
    variables = None if source is None else specs.load_variables(base / source)
    settled_plan = _saved(training, base)
    if settled_plan is not None:
        settled_plan = _fitted(
            settled_plan, settled_plan.variables if variables is None else variables, servers
        )
    else:
        if variables is None:
            raise InvalidInput(
                "variable_placement: traffic needs the traffic that an earlier run measured",
                "write training: {measured_variables: FILE}, the variables.json of that run's folder",
            )
        settled_plan = _by_traffic(variables, servers, _asked(training)[0])
    other_settings = {key: value for key, value in training.items() if key not in _SETTLED}
    plain = saved_plans.write(settled_plan, traffic=False)
    return dataclasses.replace(spec, training={**other_settings, "variable_plan": plain})


def _servers(spec: JobSpec) -> int:
    role = spec.role(Role.PS)
    if role is None:
        raise InvalidInput(
            "the job has no ps, so there is nothing to lay out", "add a role ps to the job file"
        )
    return role.replicas


def _saved(training: Mapping[str, Any], base: Path) -> Plan | None:
    given = training.get("variable_plan")
    if given is None:
        return None
    return specs.load_plan(base / given) if isinstance(given, str) else saved_plans.read(given)


def _fitted(saved: Plan, variables: Sequence[Variable], servers: int) -> Plan:
    try:
        return plan_comparisons.fitted(saved, variables, servers)
    except ValueError as error:
        raise InvalidInput(
            f"the saved plan does not fit the job: {error}",
            "save another: `paceline plan job.yaml --variables FILE --choose NAME --save FILE`",
        ) from error


def _by_traffic(variables: Sequence[Variable], servers: int, cut: RowPartitioning) -> Plan:
    try:
        return plan(variables, servers=servers, cut=cut, rule=PlacementRule.TRAFFIC)
    except ValueError as error:
        raise InvalidInput(
            f"variable_placement: traffic is not possible: {error}",
            "take the variables.json of a run of this model",
        ) from error


def _asked(training: Mapping[str, Any]) -> tuple[RowPartitioning, PlacementRule]:
    given, default = training.get("partitioning") or {}, RowPartitioning()
    cut = RowPartitioning(
        strategy=CutStrategy(given.get("strategy", default.strategy)),
        shards=given.get("shards"),
        min_shard_bytes=given.get("min_shard_bytes"),
        order=RowOrder(given.get("rows", default.order)),
    )
    return cut, PlacementRule(training.get("variable_placement", DEFAULT_RULE))


def _alternative(
    name: str, variables: Sequence[Variable], servers: int, cut: RowPartitioning, rule: PlacementRule
) -> Alternative:
    try:
        return Alternative(name=name, plan=plan(variables, servers=servers, cut=cut, rule=rule))
    except ValueError as error:
        return Alternative(name=name, plan=None, missing=str(error))
