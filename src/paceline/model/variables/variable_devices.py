"""Where TensorFlow has the variables of a script, by the names that it gives to devices."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paceline.model.variables.row_layouts import RowLayout
from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard, Variable

#: A job without a task is its first one.
_SERVER = re.compile(r"/job:ps(?:/|$)")
_TASK = re.compile(r"/task:(\d+)(?:/|$)")


def server(device: str) -> int | None:
    """Return the index of the parameter server that a device is on; None: it is on none."""
    if not _SERVER.search(device):
        return None
    task = _TASK.search(device)
    return int(task.group(1)) if task else 0


def are_known(variables: Sequence[Variable]) -> bool:
    """Whether it is known of each variable where it is."""
    return bool(variables) and all(each.devices for each in variables)


def elsewhere(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return the variables of which no part is on a parameter server."""
    return tuple(each for each in variables if not any(server(device) is not None for device in each.devices))


def placed(plan: Plan) -> Plan:
    """Return the plan with each part on the parameter server that TensorFlow has it on.

    What is on none is left out. Where devices are not known, the plan is what there is.
    """
    variables = plan.variables
    if not are_known(variables):
        return plan
    return Plan(servers=plan.servers, shards=tuple(each for one in variables for each in _shards(one, plan)))


def _shards(variable: Variable, plan: Plan) -> list[Shard]:
    """Return the parts of a variable; TensorFlow cuts it into ranges of rows."""
    count = min(len(variable.devices), variable.rows)
    layout = RowLayout(rows=variable.rows, shards=count)
    found = []
    for index, device in enumerate(variable.devices[:count]):
        place = server(device)
        if place is not None and place < plan.servers:
            found.append(Shard(variable=variable, layout=layout, index=index, server=place))
    return found
