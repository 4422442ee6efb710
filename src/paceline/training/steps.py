"""A training step as operations: ids out, values pulled, the model computed, gradients pushed and applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from paceline.model.row_layouts import RowLayout
from paceline.training import declarations, exchanges, lookups, parameters


@dataclass(frozen=True)
class Pulled:
    """A variable, or the rows of one that a batch needs, put together on the trainer from its shards.

    `value` has a row for each row number of `located`, or is the whole weight where that is None; `distinct`
    says that no row number comes twice.
    """

    name: str
    items: tuple[exchanges.Item, ...]
    located: lookups.Located | None
    distinct: bool
    value: Any

    def apart(self, gradient: Any) -> list[Any]:
        """The gradient of `value` by shard."""
        gradient = tf.convert_to_tensor(gradient)  # sums what a gather left apart: IndexedSlices
        if self.located is not None:
            return self.located.apart(gradient)
        if len(self.items) == 1:
            return [gradient]
        parts: list[Any] = tf.split(gradient, [item.parameter.shard.rows for item in self.items], axis=0)
        return parts


def pull(
    exchange: exchanges.Exchange,
    created: Mapping[str, Sequence[parameters.Parameter]],
    found: Sequence[lookups.Ids],
) -> dict[str, Pulled]:
    """Pulls all weights, and of each table the rows with the ids found; by the name of the variable.

    `created` has the shards of each variable.
    """
    located = _located(exchange, created, found)
    sent = _sent(exchange, created, located)
    items = {name: _items(shards, located.get(name), sent) for name, shards in created.items()}
    values = iter(exchange.pull([item for group in items.values() for item in group]))
    distinct = {name: ids.position is not None for ids in found for name in ids.table.embeddings}
    with tf1.device(exchange.trainer_device):
        return {
            name: Pulled(
                name,
                group,
                located.get(name),
                distinct.get(name, True),
                _together(located.get(name), [next(values) for _ in group]),
            )
            for name, group in items.items()
        }


def push(
    exchange: exchanges.Exchange,
    pulled: Sequence[Pulled],
    gradients: Sequence[Any],
    rates: Mapping[declarations.Part, Any],
    parts: Mapping[str, declarations.Part],
) -> list[Any]:
    """Pushes the gradients of pulled values; returns the operations that apply them."""
    items = [item for each in pulled for item in each.items]
    with tf1.device(exchange.trainer_device):
        cut = [
            part for each, gradient in zip(pulled, gradients, strict=True) for part in each.apart(gradient)
        ]
    distinct = {each.name: each.distinct for each in pulled}
    updates = []
    for item, gradient in zip(items, exchange.push(items, cut), strict=True):
        name = item.parameter.shard.variable.name
        with tf1.device(exchange.server_device(item.parameter.shard.server)):
            ids = item.received
            if not distinct[name]:
                ids, gradient = _summed(ids, gradient)
            updates.append(item.parameter.update(gradient, rates[parts[name]], ids))
    return updates


def _summed(ids: Any, gradients: Any) -> tuple[Any, Any]:
    """Each id once, with the sum of its gradients."""
    distinct, position = tf.unique(ids)
    return distinct, tf.math.unsorted_segment_sum(gradients, position, tf.size(distinct))


def _located(
    exchange: exchanges.Exchange,
    created: Mapping[str, Sequence[parameters.Parameter]],
    found: Sequence[lookups.Ids],
) -> dict[str, lookups.Located]:
    """Where the ids lie, by the name of the variable; variables cut alike share it."""
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
    located: Mapping[str, lookups.Located],
) -> dict[tuple[int, int], Any]:
    """Sends all local ids, each once to each server; returns them by tensor and server."""
    wanted: dict[int, dict[int, Any]] = {}
    for name, where in located.items():
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
) -> tuple[exchanges.Item, ...]:
    if where is None:
        return tuple(exchanges.Item(parameter) for parameter in shards)
    local = [where.local[parameter.shard.index] for parameter in shards]
    return tuple(
        exchanges.Item(parameter, ids, sent[id(ids), parameter.shard.server])
        for parameter, ids in zip(shards, local, strict=True)
    )


def _together(where: lookups.Located | None, values: Sequence[Any]) -> Any:
    if where is not None:
        return where.together(values)
    return values[0] if len(values) == 1 else tf.concat(values, axis=0)
