"""The places of a script's variables, by TensorFlow's names of devices."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paceline.model.variables.row_layouts import RowLayout
from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard, Variable

#: A device name with a job and no task means task 0.
_SERVER = re.compile(r"/job:ps(?:/|$)")
_TASK = re.compile(r"/task:(\d+)(?:/|$)")


def server(device: str) -> int | None:
    """Return the index of the parameter server that has a device; None: no parameter server has it."""
    if not _SERVER.search(device):
        return None
    task = _TASK.search(device)
    return int(task.group(1)) if task else 0


def are_known(variables: Sequence[Variable]) -> bool:
    """Whether the place of each variable is known."""
    return bool(variables) and all(each.devices for each in variables)


def elsewhere(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return the variables that have no part on a parameter server."""
    return tuple(each for each in variables if not any(server(device) is not None for device in each.devices))


def placed(plan: Plan) -> Plan:
    """Return the plan with each part on the parameter server where TensorFlow has it.

    Parts that are on no parameter server are left out. If devices are not known, the plan stays as it is.
    """
    variables = plan.variables
    if not are_known(variables):
        return plan
    return Plan(servers=plan.servers, shards=tuple(each for one in variables for each in _shards(one, plan)))


def _shards(variable: Variable, plan: Plan) -> list[Shard]:
    """Return the parts of a variable as shards; TensorFlow cuts variables into ranges of rows."""
    count = min(len(variable.devices), variable.rows)
    layout = RowLayout(rows=variable.rows, shards=count)
    found = []
    for index, device in enumerate(variable.devices[:count]):
        place = server(device)
        if place is not None and place < plan.servers:
            found.append(Shard(variable=variable, layout=layout, index=index, server=place))
    return found
