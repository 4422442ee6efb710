"""Variable placement: which parameter server holds which shard of which variable."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from paceline.model.imbalances import max_over_mean
from paceline.model.variables.row_layouts import RowLayout, RowOrder
from paceline.model.variables.variables import Shard, Variable


class CutStrategy(enum.StrEnum):
    """How the number of shards of a variable is chosen."""

    NONE = "none"
    FIXED = "fixed"  # tables into a fixed number
    MIN_SIZE = "min-size"  # every variable, as long as no shard gets too small


class PlacementRule(enum.StrEnum):
    """How a server is chosen for a shard."""

    ROUND_ROBIN = "round-robin"  # one after the other, as they are created: TensorFlow's default
    GREEDY = "greedy"  # as they are created, each to the server with the fewest bytes
    BALANCED = "balanced"  # by assumed traffic, the busiest first, each to the least busy server
    TRAFFIC = "traffic"  # the same by measured traffic


#: The rule for a job file that does not choose one.
DEFAULT_RULE: Final = PlacementRule.BALANCED
#: Minimal shard sizes that are tried in turn until the servers' traffic is even; the first gives the fewest
#: shards.
MIN_SHARD_BYTES = tuple(65_536 >> halvings for halvings in range(7))
#: Traffic of servers counts as even up to this max/mean.
EVEN = 1.05


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RowPartitioning:
    """How variables are cut along their rows; the defaults are those of a job file.

    ``shards`` of None: one for each parameter server. ``min_shard_bytes`` of None: the largest tried size
    that makes the servers' traffic even.
    """

    strategy: CutStrategy = CutStrategy.MIN_SIZE
    shards: int | None = None
    min_shard_bytes: int | None = None
    order: RowOrder = RowOrder.HASHED

    def layout(self, variable: Variable, servers: int) -> RowLayout:
        """Return the layout of a variable over a number of servers. Only the rows of tables are reordered."""
        most, wanted = min(self.shards or servers, variable.rows), 1
        if self.strategy is CutStrategy.FIXED and variable.sparse:
            wanted = most
        elif self.strategy is CutStrategy.MIN_SIZE:
            whole_bytes = variable.rows * variable.row_bytes
            least_bytes = self.min_shard_bytes or MIN_SHARD_BYTES[0]
            wanted = max(1, min(most, math.ceil(whole_bytes / least_bytes)))
        ordered = self.strategy is CutStrategy.NONE or not variable.sparse
        order = RowOrder.CONTIGUOUS if ordered else self.order
        return RowLayout(rows=variable.rows, shards=wanted, order=order)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All shards, in the order in which their variables are created."""

    servers: int
    shards: tuple[Shard, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Return the variables, each whole, in the order of their creation."""
        return tuple({shard.variable.name: shard.variable for shard in self.shards}.values())

    def of(self, variable: str) -> tuple[Shard, ...]:
        """Return the shards of a variable by their index."""
        return tuple(shard for shard in self.shards if shard.variable.name == variable)

    def on(self, server: int) -> tuple[Shard, ...]:
        """Return the shards on a parameter server."""
        return tuple(shard for shard in self.shards if shard.server == server)

    def memory_bytes(self) -> tuple[int, ...]:
        """Return the bytes on each server, slots included."""
        return tuple(sum(shard.memory_bytes for shard in self.on(server)) for server in range(self.servers))

    def step_bytes(self) -> tuple[float, ...] | None:
        """Return the expected bytes that a step of one worker moves at each server; None: not known."""
        totals = [0.0] * self.servers
        for shard in self.shards:
            if shard.step_bytes is None:
                return None
            totals[shard.server] += shard.step_bytes
        return tuple(totals)

    def step_rows(self) -> tuple[float, ...]:
        """Return the rows of tables that a step of one worker looks up at each server."""
        return tuple(sum(shard.step_rows for shard in self.on(server)) for server in range(self.servers))

    def memory_imbalance(self) -> float | None:
        """Return max/mean of the servers' bytes."""
        return max_over_mean(self.memory_bytes())

    def traffic_imbalance(self) -> float | None:
        """Return max/mean of the servers' expected traffic; None when it is not known."""
        traffic = self.step_bytes()
        return None if traffic is None else max_over_mean(traffic)


def plan(variables: Sequence[Variable], *, servers: int, cut: RowPartitioning, rule: PlacementRule) -> Plan:
    """Cut the variables and choose a parameter server for each shard.

    If the cut has no minimal shard size, the largest tried size that makes the servers' traffic even is
    taken; the traffic is the measured one if the rule goes by it, else the assumed one.

    Raises:
        ValueError: there is no server, or the rule goes by traffic and the traffic of a shard is not known.
    """
    if servers < 1:
        raise ValueError("a plan needs at least one parameter server")
    if cut.strategy is not CutStrategy.MIN_SIZE or cut.min_shard_bytes is not None:
        return _plan(variables, servers, cut, rule)
    tried = []
    for size in MIN_SHARD_BYTES:
        made = _plan(variables, servers, dataclasses.replace(cut, min_shard_bytes=size), rule)
        uneven = _imbalance(made, _step_bytes if rule is PlacementRule.TRAFFIC else _assumed_step_bytes)
        if uneven <= EVEN:
            return made
        tried.append((uneven, made))
    return min(tried, key=lambda one: one[0])[1]


def _plan(variables: Sequence[Variable], servers: int, cut: RowPartitioning, rule: PlacementRule) -> Plan:
    pieces = [
        Shard(variable=variable, layout=layout, index=index, server=0)
        for variable in variables
        for layout in (cut.layout(variable, servers),)
        for index in range(layout.shards)
    ]
    place = {
        PlacementRule.ROUND_ROBIN: _round_robin,
        PlacementRule.GREEDY: _greedy,
        PlacementRule.BALANCED: _balanced,
        PlacementRule.TRAFFIC: _by_traffic,
    }[rule]
    chosen = place(pieces, servers)
    return Plan(
        servers=servers,
        shards=tuple(
            dataclasses.replace(piece, server=server) for piece, server in zip(pieces, chosen, strict=True)
        ),
    )


def _imbalance(made: Plan, load: Callable[[Shard], float]) -> float:
    loads = [0.0] * made.servers
    for shard in made.shards:
        loads[shard.server] += load(shard)
    return max_over_mean(loads) or 1.0


def _round_robin(pieces: Sequence[Shard], servers: int) -> list[int]:
    """Return servers in turn, as tf.compat.v1.train.replica_device_setter does.

    Source: tensorflow/python/training/device_setter.py.
    """
    return [number % servers for number in range(len(pieces))]


def _greedy(pieces: Sequence[Shard], servers: int) -> list[int]:
    """Return servers as GreedyLoadBalancingStrategy with byte_size_load_fn does.

    Source: tensorflow/python/training/device_setter.py.
    """
    return _least_loaded(pieces, range(len(pieces)), servers, lambda shard: (float(shard.memory_bytes),), {})


def _balanced(pieces: Sequence[Shard], servers: int) -> list[int]:
    return _busiest_first(pieces, servers, _assumed_step_bytes)


def _by_traffic(pieces: Sequence[Shard], servers: int) -> list[int]:
    unknown = sorted({piece.variable.name for piece in pieces if piece.step_bytes is None})
    if unknown:
        raise ValueError(f"the traffic of {', '.join(unknown)} is not measured")
    return _busiest_first(pieces, servers, _step_bytes)


def _assumed_step_bytes(shard: Shard) -> float:
    return shard.assumed_step_bytes


def _step_bytes(shard: Shard) -> float:
    return shard.step_bytes or 0.0


def _busiest_first(pieces: Sequence[Shard], servers: int, traffic: Callable[[Shard], float]) -> list[int]:
    """Place shards one after the other, the busiest first; bytes break ties of traffic.

    The shards of a table that is spread over all servers go to the servers of their index: the table's
    traffic is even in any case, and tables that are cut alike share the ids that are sent to a server. The
    other shards are placed by longest processing time first (Graham 1969).
    """

    def load(shard: Shard) -> tuple[float, ...]:
        return traffic(shard), float(shard.memory_bytes)

    spread = {number: piece.index for number, piece in enumerate(pieces) if piece.is_spread(servers)}
    others = [number for number in range(len(pieces)) if number not in spread]
    others.sort(key=lambda number: load(pieces[number]), reverse=True)
    return _least_loaded(pieces, [*spread, *others], servers, load, spread)


def _least_loaded(
    pieces: Sequence[Shard],
    order: Sequence[int],
    servers: int,
    load: Callable[[Shard], tuple[float, ...]],
    fixed: Mapping[int, int],
) -> list[int]:
    """Return the server of each piece: its fixed server, or else the one with the least load so far.

    Pieces are placed in the given order.
    """
    loads = [tuple(0.0 for _ in load(pieces[0])) for _ in range(servers)] if pieces else []
    chosen = [0] * len(pieces)
    for number in order:
        server = fixed.get(number, min(range(servers), key=lambda each: loads[each]))
        chosen[number] = server
        loads[server] = tuple(a + b for a, b in zip(loads[server], load(pieces[number]), strict=True))
    return chosen
