"""What a trainer and the parameter servers exchange in a step: ids, pulled values, pushed gradients.

Each tensor that crosses costs a call on both sides, whatever its size. With packing, a step sends three
tensors for each server: the ids of all its rows, all values that are pulled from it, and all gradients that
are pushed to it. Without packing, it sends these for each variable, as in TensorFlow's documentation.
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
    """A parameter in a message.

    `sent` and `received` are the local ids of its rows (ids,), on the trainer and on the server. Both are
    None if the whole shard is exchanged.
    """

    parameter: parameters.Parameter
    sent: Any = None
    received: Any = None

    def value(self) -> Any:
        """Return the values to pull, on the server: (ids, ...), or the whole shard."""
        if self.received is None:
            return self.parameter.variable.read_value()
        return tf.gather(self.parameter.variable, self.received)

    def size(self, ids: Any) -> Any:
        """Return how many values are exchanged: a number, or a tensor () where the number of ids varies.

        `ids` are the local ids of the side that asks, None for the whole shard.
        """
        width = self.parameter.shard.variable.row_bytes // self.parameter.shard.variable.element_bytes
        return self.parameter.shard.rows * width if ids is None else tf.size(ids) * width

    def shaped(self, values: Any) -> Any:
        """Reshape values to rows: (ids, ...), or the shape of the whole shard."""
        shape = self.parameter.shard.variable.shape
        if self.received is None:
            return tf.reshape(values, (self.parameter.shard.rows, *shape[1:]) if shape else ())
        return tf.reshape(values, (-1, *shape[1:]))


class Exchange:
    """The exchanges of one trainer with the parameter servers."""

    def __init__(
        self, server_device: parameters.Device, trainer_device: str, transfers: settings.Transfers
    ) -> None:
        self.server_device = server_device
        self.trainer_device = trainer_device
        self._packed = transfers.packed
        self._wire = tf.as_dtype(transfers.precision)

    def send_ids(self, server: int, ids: Sequence[Any]) -> list[Any]:
        """Send local ids, int32 vectors (ids,), to a server and return them as tensors on that server."""
        if not self._packed or len(ids) < 2:
            with tf1.device(self.server_device(server)):
                return [tf.identity(each) for each in ids]
        with tf1.device(self.trainer_device):
            message = tf.concat([tf.stack([tf.size(each) for each in ids]), *ids], axis=0)
        with tf1.device(self.server_device(server)):
            message = tf.identity(message)
            return list(tf.split(message[len(ids) :], message[: len(ids)], num=len(ids)))

    def pull(self, items: Sequence[ExchangedParameter]) -> list[Any]:
        """Pull the items' values to the trainer, in their order: each (ids, ...), or a whole shard."""
        return self._by_message(
            items, lambda server, places: self._pull(server, [items[place] for place in places])
        )

    def push(self, items: Sequence[ExchangedParameter], gradients: Sequence[Any]) -> list[Any]:
        """Push gradients to the items' servers and return them there, in their order.

        Each gradient has as many values as its item; it is returned as (ids, ...), or in the shape of the
        whole shard.
        """
        return self._by_message(
            items,
            lambda server, places: self._push(
                server, [items[place] for place in places], [gradients[place] for place in places]
            ),
        )

    def _by_message(
        self, items: Sequence[ExchangedParameter], carry: Callable[[int, list[int]], list[Any]]
    ) -> list[Any]:
        """Carry each server's items, packed in one message or one by one; `carry` gets their places."""
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
