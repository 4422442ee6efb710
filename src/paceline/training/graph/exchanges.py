"""What goes between a trainer and the parameter servers in a step: ids, pulled values, pushed gradients.

Each tensor that crosses costs a call on both sides, whatever its size. Packed, a step takes three tensors for
each server: the ids of all its rows, all values that are pulled from it, all gradients that are pushed to it.
Separate, it takes these for each variable, as in TensorFlow's documentation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.training import parameters, settings
from paceline.training.lazy_tensorflow import tf, tf1

LOCAL = settings.Transfers(packed=False)
"""Within one process nothing is sent, so nothing is worth packing."""


@dataclass(frozen=True)
class ExchangedParameter:
    """A parameter in a message, with the local ids of its rows as the trainer and as its server have them."""

    parameter: parameters.Parameter
    sent: Any = None
    received: Any = None

    def value(self) -> Any:
        """What is pulled; on the server."""
        if self.received is None:
            return self.parameter.variable.read_value()
        return tf.gather(self.parameter.variable, self.received)

    def size(self, ids: Any) -> Any:
        """How many values there are, from the ids of the side that asks: a number, or a tensor where it
        varies.
        """
        width = self.parameter.shard.variable.row_bytes // self.parameter.shard.variable.element_bytes
        return self.parameter.shard.rows * width if ids is None else tf.size(ids) * width

    def shaped(self, values: Any) -> Any:
        """Gives flat values the shape of the rows."""
        shape = self.parameter.shard.variable.shape
        if self.received is None:
            return tf.reshape(values, (self.parameter.shard.rows, *shape[1:]) if shape else ())
        return tf.reshape(values, (-1, *shape[1:]))


class Exchange:
    """The exchanges of one trainer."""

    def __init__(
        self, server_device: parameters.Device, trainer_device: str, transfers: settings.Transfers
    ) -> None:
        self.server_device = server_device
        self.trainer_device = trainer_device
        self._packed = transfers.packed
        self._wire = tf.as_dtype(transfers.precision)

    def send_ids(self, server: int, ids: Sequence[Any]) -> list[Any]:
        """Sends local ids (int32 vectors) to a server; returns them as it has them."""
        if not self._packed or len(ids) < 2:
            with tf1.device(self.server_device(server)):
                return [tf.identity(each) for each in ids]
        with tf1.device(self.trainer_device):
            message = tf.concat([tf.stack([tf.size(each) for each in ids]), *ids], axis=0)
        with tf1.device(self.server_device(server)):
            message = tf.identity(message)
            return list(tf.split(message[len(ids) :], message[: len(ids)], num=len(ids)))

    def pull(self, items: Sequence[ExchangedParameter]) -> list[Any]:
        """Pulls the items' values to the trainer, in their order."""
        return self._by_message(
            items, lambda server, places: self._pull(server, [items[place] for place in places])
        )

    def push(self, items: Sequence[ExchangedParameter], gradients: Sequence[Any]) -> list[Any]:
        """Pushes gradients to where the items are; returns them there, in their order."""
        return self._by_message(
            items,
            lambda server, places: self._push(
                server, [items[place] for place in places], [gradients[place] for place in places]
            ),
        )

    def _by_message(
        self, items: Sequence[ExchangedParameter], carry: Callable[[int, list[int]], list[Any]]
    ) -> list[Any]:
        """Carries the items of each server, all or one by one; `carry` is given their places in `items`."""
        results: dict[int, Any] = {}

        def server_of(place: int) -> int:
            return items[place].parameter.shard.server

        for server, found in itertools.groupby(sorted(range(len(items)), key=server_of), key=server_of):
            places = list(found)
            for message in [places] if self._packed else [[place] for place in places]:
                results |= zip(message, carry(server, message), strict=True)
        return [results[place] for place in range(len(items))]

    def _pull(self, server: int, items: Sequence[ExchangedParameter]) -> list[Any]:
        with tf1.device(self.server_device(server)):
            message = self._joined([item.value() for item in items])
        with tf1.device(self.trainer_device):
            return self._parted(message, items, [item.size(item.sent) for item in items])

    def _push(self, server: int, items: Sequence[ExchangedParameter], gradients: Sequence[Any]) -> list[Any]:
        with tf1.device(self.trainer_device):
            message = self._joined(gradients)
        with tf1.device(self.server_device(server)):
            return self._parted(message, items, [item.size(item.received) for item in items])

    def _joined(self, values: Sequence[Any]) -> Any:
        if len(values) == 1:
            return tf.cast(values[0], self._wire)
        return tf.cast(tf.concat([tf.reshape(value, [-1]) for value in values], axis=0), self._wire)

    def _parted(self, message: Any, items: Sequence[ExchangedParameter], sizes: Sequence[Any]) -> list[Any]:
        values = tf.cast(tf.identity(message), tf.float32)
        if len(items) == 1:
            return [items[0].shaped(values)]
        return [
            item.shaped(part)
            for item, part in zip(items, tf.split(values, sizes, num=len(items)), strict=True)
        ]
