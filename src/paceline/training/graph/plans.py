"""The plan of a model's variables: the one in the job file, or one made from the settings."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.model.variables import plan_comparisons, variable_plans
from paceline.model.variables.variables import Variable
from paceline.training import errors, settings


def plan(variables: Sequence[Variable], servers: int, chosen: settings.Settings) -> variable_plans.Plan:
    """Return where the variables of the model lie.

    In a process without parameter servers, the job's plan may be for any number of them.

    Raises:
        SettingsError: the job's plan is for another model or another number of parameter servers.
    """
    if chosen.variable_plan is None:
        return variable_plans.plan(
            variables,
            servers=max(1, servers),
            cut=chosen.partitioning.cut(),
            rule=variable_plans.PlacementRule(chosen.variable_placement),
        )
    try:
        return plan_comparisons.fitted(
            chosen.variable_plan, variables, servers or chosen.variable_plan.servers
        )
    except ValueError as error:
        raise errors.SettingsError(
            f"training.variable_plan does not fit the model: {error}; save another with `paceline plan` from "
            "the variables.json of a run of this model, or leave variable_plan out"
        ) from error
