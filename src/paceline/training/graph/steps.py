"""Training steps as operations: ids out, values pulled, the model computed, gradients pushed and applied.

One exchange with the parameter servers serves one step or several, each on its own batch. The same messages
carry what all of these steps need, and their gradients, which are applied one step after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.model.variables.row_layouts import RowLayout
from paceline.training import declarations, parameters
from paceline.training.graph import exchanges, lookups
from paceline.training.lazy_tensorflow import tf, tf1


@dataclass(frozen=True)
class Pulled:
    """A variable, or the rows of it that a batch needs, joined on the trainer from its shards.

    `value` is (rows, ...) with a row for each row number of `located`, or the whole variable if `located` is
    None. `distinct` says that no row number occurs twice.
    """

    name: str
    items: tuple[exchanges.ExchangedParameter, ...]
    located: lookups.Located | None
    distinct: bool
    value: Any

    def apart(self, gradient: Any) -> list[Any]:
        """Split the gradient of `value`, which has its shape, by shard."""
        gradient = tf.convert_to_tensor(gradient)  # a gather's gradient is IndexedSlices; this sums its rows
        if self.located is not None:
            return self.located.apart(gradient)
        if len(self.items) == 1:
            return [gradient]
        parts: list[Any] = tf.split(gradient, [item.parameter.shard.rows for item in self.items], axis=0)
        return parts


def pull(
    exchange: exchanges.Exchange,
    created: Mapping[str, Sequence[parameters.Parameter]],
    batches: Sequence[Sequence[lookups.Ids]],
) -> list[dict[str, Pulled]]:
    """Pull all weights once, and for each batch the rows of the ids found in it.

    `created` has the shards of each variable. Returns what each batch needs, by the name of the variable.
    """
    located = [_located(exchange, created, found) for found in batches]
    sent = _sent(exchange, created, located)
    weights = {name: _items(shards, None, sent) for name, shards in created.items() if name not in located[0]}
    rows = [
        {name: _items(created[name], where, sent) for name, where in places.items()} for places in located
    ]
    items = [item for groups in (weights, *rows) for group in groups.values() for item in group]
    values = iter(exchange.pull(items))
    distinct = {name: ids.position is not None for ids in batches[0] for name in ids.table.embeddings}
    with tf1.device(exchange.trainer_device):
        whole = {
            name: Pulled(name, group, None, True, _together(None, [next(values) for _ in group]))
            for name, group in weights.items()
        }
        return [
            whole
            | {
                name: Pulled(
                    name,
                    group,
                    places[name],
                    distinct[name],
                    _together(places[name], [next(values) for _ in group]),
                )
                for name, group in groups.items()
            }
            for places, groups in zip(located, rows, strict=True)
        ]


@dataclass(frozen=True)
class Pushed:
    """The gradient of a parameter, on its server.

    `gradient` has the shape of the whole shard if `ids` is None. Otherwise it is (ids, ...), for the distinct
    local ids (ids,).
    """

    parameter: parameters.Parameter
    ids: Any
    gradient: Any


def push(
    exchange: exchanges.Exchange, pulled: Sequence[Pulled], gradients: Sequence[Any]
) -> tuple[Pushed, ...]:
    """Push the gradients of what the batches pulled, each in the shape of its value; return them by shard.

    They are in the order of `pulled` and of the shards of each variable.
    """
    items = [item for each in pulled for item in each.items]
    with tf1.device(exchange.trainer_device):
        cut = [
            part for each, gradient in zip(pulled, gradients, strict=True) for part in each.apart(gradient)
        ]
    distinct = {each.name: each.distinct for each in pulled}
    pushed = []
    for item, gradient in zip(items, exchange.push(items, cut), strict=True):
        ids = item.received
        if not distinct[item.parameter.shard.variable.name]:
            with tf1.device(exchange.server_device(item.parameter.shard.server)):
                ids, gradient = summed(ids, gradient)
        pushed.append(Pushed(item.parameter, ids, gradient))
    return tuple(pushed)


def apply(
    pushed: Sequence[Pushed],
    rates: Sequence[Mapping[declarations.Part, Any]],
    parts: Mapping[str, declarations.Part],
) -> list[Any]:
    """Return the operations that apply the gradients pushed to one server.

    `rates` has the rates of each batch. The gradients of one parameter are applied in the given order, one
    batch after the other.
    """
    before: dict[parameters.Parameter, list[Any]] = {}
    for each in pushed:
        done = before.setdefault(each.parameter, [])
        rate = rates[len(done)][parts[each.parameter.shard.variable.name]]
        with tf1.device(each.parameter.variable.device), tf1.control_dependencies(done[-1:]):
            done.append(each.parameter.update(each.gradient, rate, each.ids))
    return [update for done in before.values() for update in done]


def by_server(pushed: Sequence[Pushed]) -> dict[int, list[Pushed]]:
    """Return the gradients by the server that holds them, in their order."""
    found: dict[int, list[Pushed]] = {}
    for each in pushed:
        found.setdefault(each.parameter.shard.server, []).append(each)
    return found


def summed(ids: Any, gradients: Any) -> tuple[Any, Any]:
    """Return each id once (distinct,) with the sum of its gradients (distinct, ...).

    The ids are (n,) and their gradients (n, ...).
    """
    distinct, position = tf.unique(ids)
    return distinct, tf.math.unsorted_segment_sum(gradients, position, tf.size(distinct))


def _located(
    exchange: exchanges.Exchange,
    created: Mapping[str, Sequence[parameters.Parameter]],
    found: Sequence[lookups.Ids],
) -> dict[str, lookups.Located]:
    """Return the place of the ids, by the name of the variable; variables with the same layout share it."""
    known: dict[tuple[int, RowLayout], lookups.Located] = {}
    located = {}
    with tf1.device(exchange.trainer_device):
        for number, ids in enumerate(found):
            for name in ids.table.embeddings:
                key = number, created[name][0].shard.layout
                if key not in known:
                    known[key] = lookups.locate(ids.rows, key[1])
                located[name] = known[key]
    return located


def _sent(
    exchange: exchanges.Exchange,
    created: Mapping[str, Sequence[parameters.Parameter]],
    located: Sequence[Mapping[str, lookups.Located]],
) -> dict[tuple[int, int], Any]:
    """Send all local ids, each tensor once to each server; return them by tensor and server."""
    wanted: dict[int, dict[int, Any]] = {}
    for name, where in itertools.chain.from_iterable(places.items() for places in located):
        for parameter in created[name]:
            local = where.local[parameter.shard.index]
            wanted.setdefault(parameter.shard.server, {})[id(local)] = local
    return {
        (key, server): received
        for server, group in wanted.items()
        for key, received in zip(group, exchange.send_ids(server, list(group.values())), strict=True)
    }


def _items(
    shards: Sequence[parameters.Parameter], where: lookups.Located | None, sent: Mapping[tuple[int, int], Any]
) -> tuple[exchanges.ExchangedParameter, ...]:
    if where is None:
        return tuple(exchanges.ExchangedParameter(parameter) for parameter in shards)
    local = [where.local[parameter.shard.index] for parameter in shards]
    return tuple(
        exchanges.ExchangedParameter(parameter, ids, sent[id(ids), parameter.shard.server])
        for parameter, ids in zip(shards, local, strict=True)
    )


def _together(where: lookups.Located | None, values: Sequence[Any]) -> Any:
    if where is not None:
        return where.together(values)
    return values[0] if len(values) == 1 else tf.concat(values, axis=0)
