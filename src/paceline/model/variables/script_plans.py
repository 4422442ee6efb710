"""The places and the traffic of the variables of an instrumented script in another job.

A script without the training library does not obey the whole job file. TensorFlow gives its variables to the
parameter servers in turn, as they are created. Cures (`cures`) change this if the job file asks for them:
they cut tables into ranges of rows, and give each part to the server with the fewest bytes. If a place cannot
be predicted, an error gives the reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model.variables import cures, variable_devices
from paceline.model.variables.row_layouts import RowLayout, RowOrder
from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard, Variable

#: The rule by which the cure cuts: a matrix with at least 16 times as many rows as columns is a table, and a
#: table below 64 KiB is not cut (`paceline_instrumentation.cures.partitions`).
ROWS_TO_COLUMNS, LEAST_CUT_BYTES = 16, 64 << 10
#: The largest size of an id.
_ID_BYTES = 8
#: If more than this share of a table's bytes is left with unique ids, its ids count as not repeating.
_DISTINCT = 0.9
#: Variables that are not trained, such as the global step, take places in the order, too. If more places than
#: this are skipped between trained variables, the order is not one that is known.
_MOST_SKIPPED = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """What a job asks for concerning the places of variables.

    Attributes:
        servers: the number of parameter servers.
        training: the ``training`` section of its job file.
        planned: the servers of a saved plan, by TensorFlow's names of variables and their parts.
    """

    servers: int
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    planned: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def is_by_size(self) -> bool:
        """Whether a cure chooses the servers."""
        return bool(self.planned) or cures.PLACEMENT.is_asked(self.training)

    def parts(self, variable: Variable) -> int:
        """Return the number of parts into which the cure cuts a variable that the script leaves whole."""
        size_bytes = variable.rows * variable.row_bytes
        if not cures.PARTITIONING.is_asked(self.training) or size_bytes < LEAST_CUT_BYTES:
            return 1
        if len(variable.shape) != 2 or variable.rows < ROWS_TO_COLUMNS * variable.shape[1]:
            return 1
        section = self.training["partitioning"]
        if section.get("rows", RowOrder.CONTIGUOUS) != RowOrder.CONTIGUOUS:
            return 1
        most = self.servers if section["strategy"] == "fixed" else None
        least_bytes = section.get("min_shard_bytes") or LEAST_CUT_BYTES
        parts = section.get("shards") or most or min(self.servers, size_bytes // least_bytes)
        return max(1, min(int(parts), variable.rows))


def moved(plan: Plan, before: PlacementRequest, after: PlacementRequest) -> Plan:
    """Return the plan of the variables in another job.

    Args:
        plan: the variables as measured, each with its devices.
        before: what the measured job asks for.
        after: what the other job asks for.

    Raises:
        ValueError: the places or the traffic cannot be predicted; the message says why.
    """
    here = _on_servers(plan)
    if not _is_cut_or_placed_otherwise(before, after):
        made = variable_devices.placed(plan)
    else:
        parts = {each.name: _parts(each, before, after) for each in here}
        made = _placed(here, parts, before, after)
    return made if _repeats_stay(before, after) else _with_unique_ids(made)


def with_unique_ids(variable: Variable) -> Variable:
    """Return a table with the traffic it has if each row moves once a batch, however often its id occurs.

    The table is returned unchanged if ids do not repeat, or if that was not measured.
    """
    share = kept_share(variable)
    if share is None or share > _DISTINCT or variable.step_bytes is None:
        return variable
    # Shares of ranges were counted by ids; hot ranges have a smaller share of the distinct ids.
    return dataclasses.replace(variable, step_bytes=variable.step_bytes * share, row_shares=())


def kept_share(variable: Variable) -> float | None:
    """Return the share of a table's bytes that is left if each row moves once a batch; None: not measured."""
    if not variable.sparse or not variable.step_bytes or variable.rows_used is None:
        return None
    return min(1.0, variable.rows_used * (2 * variable.row_bytes + _ID_BYTES) / variable.step_bytes)


def _on_servers(plan: Plan) -> tuple[Variable, ...]:
    variables = plan.variables
    if not variable_devices.are_known(variables):
        raise ValueError("it is not known where TensorFlow has the variables of the script")
    lost = {each.name for each in variable_devices.elsewhere(variables)}
    here = tuple(each for each in variables if each.name not in lost)
    if not here:
        raise ValueError("no variable of the script is on a parameter server")
    return here


def _is_cut_or_placed_otherwise(before: PlacementRequest, after: PlacementRequest) -> bool:
    def asked(each: PlacementRequest) -> tuple[Any, ...]:
        cut = each.training.get("partitioning") if cures.PARTITIONING.is_asked(each.training) else None
        return each.servers, cut, each.is_by_size, dict(each.planned)

    return asked(before) != asked(after)


def _parts(variable: Variable, before: PlacementRequest, after: PlacementRequest) -> int:
    """Return the number of parts of a variable in the other job."""
    now = len(variable.devices)
    if now > 1 and before.parts(variable) == 1:
        if before.servers != after.servers:
            raise ValueError(
                f"the script cuts {variable.name} by itself: into how many parts for another number of "
                "parameter servers is not known"
            )
        return now
    is_left_whole = now == 1 and before.parts(variable) > 1
    return 1 if is_left_whole else after.parts(variable)


def _placed(
    here: Sequence[Variable], parts: Mapping[str, int], before: PlacementRequest, after: PlacementRequest
) -> Plan:
    pieces = [
        Shard(variable=each, layout=RowLayout(rows=each.rows, shards=parts[each.name]), index=index, server=0)
        for each in here
        for index in range(parts[each.name])
    ]
    if after.is_by_size:
        chosen = _by_size(pieces, after)
    else:
        chosen = _in_turn(pieces, _skipped(here, before), after.servers)
    return Plan(
        servers=after.servers,
        shards=tuple(
            dataclasses.replace(piece, server=server) for piece, server in zip(pieces, chosen, strict=True)
        ),
    )


def _by_size(pieces: Sequence[Shard], after: PlacementRequest) -> list[int]:
    """Return the planned server of each piece, or else the one with the fewest bytes so far (no slots)."""
    loads, chosen = [0] * after.servers, []
    for piece in pieces:
        server = after.planned.get(piece.tensorflow_name)
        if server is None or server >= after.servers:
            server = min(range(after.servers), key=loads.__getitem__)
        loads[server] += piece.rows * piece.variable.row_bytes
        chosen.append(server)
    return chosen


def _in_turn(pieces: Sequence[Shard], skipped: Mapping[str, int], servers: int) -> list[int]:
    """Return the servers in turn; the server of the first piece does not matter, as servers are alike."""
    place, chosen = 0, []
    for piece in pieces:
        place += skipped.get(piece.variable.name, 0) if piece.index == 0 else 0
        chosen.append(place % servers)
        place += 1
    return chosen


def _skipped(here: Sequence[Variable], before: PlacementRequest) -> dict[str, int]:
    """Return how many places in the order are skipped before each variable.

    If a cure chose the servers, or there is only one server, the order of the script cannot be seen. It is
    then assumed to be TensorFlow's, without skipped places.
    """
    if before.is_by_size or before.servers == 1:
        return {}
    skipped_by_name: dict[str, int] = {}
    last: int | None = None
    for variable in here:
        for index, device in enumerate(variable.devices):
            server = variable_devices.server(device)
            skipped = 0 if last is None or server is None else (server - last - 1) % before.servers
            if skipped and index:
                raise ValueError(_OWN_WAY)
            skipped_by_name[variable.name] = skipped_by_name.get(variable.name, 0) + skipped
            last = server if server is not None else last
    if sum(skipped_by_name.values()) > _MOST_SKIPPED:
        raise ValueError(_OWN_WAY)
    return skipped_by_name


_OWN_WAY = "where variables would be is not known: the script does not give its own to servers in turn"


def _repeats_stay(before: PlacementRequest, after: PlacementRequest) -> bool:
    now, then = (cures.UNIQUE_IDS.is_asked(each.training) for each in (before, after))
    if now and not then:
        raise ValueError("how often ids repeat in a batch is not seen while they are made unique")
    return now == then


def _with_unique_ids(plan: Plan) -> Plan:
    shards = []
    for shard in plan.shards:
        made = dataclasses.replace(shard, variable=with_unique_ids(shard.variable))
        if made.step_bytes is None and shard.step_bytes is not None:
            raise ValueError(
                f"how many distinct rows of a batch are in which part of {made.variable.name} was not counted"
            )
        shards.append(made)
    return dataclasses.replace(plan, shards=tuple(shards))
