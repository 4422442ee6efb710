"""What a training script does wrong, for the faults that lie in scripts: each is one option of `train`.

They replace parts of the training library within the script's process, so that what is recorded is what the
library does with such a script: nothing of the library knows of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import importlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from paceline import training
from paceline.training import clusters, features

_LEAK_SECONDS = 0.25


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each mistake."""
    parser.add_argument("--dense-gradients", action="store_true", help="push whole tables")
    parser.add_argument("--first-rows", type=int, default=0, help="rows of the first table, if more")
    parser.add_argument("--shares", help="the fixed share of the files of each worker, as numbers: 1,1,4")
    parser.add_argument("--share-examples", type=int, default=0, help="examples in a share of 1")
    parser.add_argument("--log-below", type=float, help="take the logarithm of so much less a number")
    parser.add_argument("--hashings", type=int, default=0, help="decode ids in Python, with so many hashes")
    parser.add_argument("--absent", default="", help="the replica that never comes, such as ps-1")
    parser.add_argument("--leaky", default="", help="the replica that loses memory")
    parser.add_argument("--leak-bytes", type=int, default=0, help="that it loses in a second")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait after each step")
    parser.add_argument("--failing", default="", help="the replica that raises an error")
    parser.add_argument("--fail-after", type=float, default=0.0, help="seconds after its first step")


def make(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Make the mistakes of this replica that concern its process; may never return."""
    replica = f"{environment.get('PACELINE_ROLE')}-{environment.get('PACELINE_INDEX')}"
    if options.absent == replica:
        # What a replica looks like that waits for something of its own: its process is there, no server.
        threading.Event().wait()
    if options.leaky == replica:
        threading.Thread(target=_leak, args=(options.leak_bytes,), daemon=True).start()
    if options.failing == replica:
        _fail_after(options.fail_after)
    if environment.get("PACELINE_ROLE") == "ps":
        return
    if options.pause:
        _pause(options.pause)
    if options.dense_gradients:
        _patch("steps", "push", _dense_push)
    if options.shares:
        shares = [float(share) for share in options.shares.split(",")]
        give_fixed_shares(shares, options.share_examples, clusters.read(environment).trainer_index)


def changed(model: training.Model, options: argparse.Namespace) -> training.Model:
    """Return the model with what is wrong about it."""
    if options.hashings:
        model = _slowly_decoded(model, options.hashings)
    return model if options.log_below is None else Careless(model, options.log_below)


def _slowly_decoded(model: Any, hashings: int) -> Any:
    known = model.features

    def slow(feature: Any) -> Any:
        if not isinstance(feature, features.Identity):
            return feature
        return SlowlyDecoded(feature.name, feature.rows, hashings)

    categorical = tuple(slow(each) for each in known.categorical)
    changes: dict[str, Any] = {"features": dataclasses.replace(known, categorical=categorical)}
    if isinstance(model, training.WideAndDeep) and model.deep is not None:
        changes["deep"] = tuple(each for each in categorical if isinstance(each, SlowlyDecoded))
    return dataclasses.replace(model, **changes)


@dataclasses.dataclass(frozen=True)
class Careless:
    """A model with a logarithm that is not a number for rare examples: from the first one on, nothing is."""

    model: training.Model
    bound: float

    @property
    def features(self) -> features.FeatureSet:
        """Those of the model."""
        known: features.FeatureSet = self.model.features
        return known

    def logits(self, parts: training.Blocks) -> Any:
        """The model's, and a little of the logarithm of how much its first number is below the bound."""
        import tensorflow as tf

        return self.model.logits(parts) + 0.01 * tf.math.log(self.bound - parts.numeric[:, 0])


@dataclasses.dataclass(frozen=True)
class SlowlyDecoded:
    """An id that a script decodes in Python, row by row, with so many hashes for each."""

    name: str
    rows: int
    hashings: int

    def kinds(self) -> Mapping[str, features.Kind]:
        """The raw column of the same name, as integers."""
        return {self.name: "integer"}

    def ids(self, columns: features.Columns) -> features.Ids:
        """One id for each row, the same as `features.Identity` gives."""
        return np.fromiter(map(self._decoded, columns[self.name].tolist()), dtype=np.int32)

    def _decoded(self, value: int) -> int:
        text = str(value).encode()
        for _ in range(self.hashings):
            hashlib.blake2b(text, digest_size=8).digest()
        return value if 0 <= value < self.rows else self.rows - 1


def _patch(module: str, name: str, value: Any) -> None:
    """Put a value in the place of a module's, or of one of its classes'."""
    *path, last = name.split(".")
    owner = functools.reduce(getattr, path, importlib.import_module(f"paceline.training.{module}"))
    setattr(owner, last, value)


def _dense_push(exchange: Any, pulled: Sequence[Any], gradients: Sequence[Any]) -> tuple[Any, ...]:
    """Push each gradient as a whole shard, most of it zeros: what an op makes of one that was sparse."""
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    from paceline.training.graph import exchanges, steps

    items = [item for each in pulled for item in each.items]
    with tf1.device(exchange.trainer_device):
        cut = [part for each, given in zip(pulled, gradients, strict=True) for part in each.apart(given)]
        whole = [
            part
            if item.sent is None
            else tf.math.unsorted_segment_sum(part, item.sent, item.parameter.shard.rows)
            for item, part in zip(items, cut, strict=True)
        ]
    plain = [exchanges.ExchangedParameter(item.parameter) for item in items]
    received = exchange.push(plain, whole)
    return tuple(
        steps.Pushed(item.parameter, None, gradient) for item, gradient in zip(plain, received, strict=True)
    )


def give_fixed_shares(shares: Sequence[float], examples: int, trainer: int) -> None:
    """Have each worker train on files of its own, as scripts do that shard by file, and end after them.

    Args:
        shares: of each worker.
        examples: in a share of 1; its files are read again where they have fewer.
        trainer: which of them this is.
    """

    def grants(self: Any, stopped: Callable[[], bool]) -> Iterator[Any]:
        from paceline.training.input.shards import Grant

        work, left = self._work, int(shares[trainer] * examples)
        own = [n for n, shard in enumerate(work.shards) if shard.file % len(shares) == trainer]
        # `itertools.product` would make a list of the epochs first, which have no end.
        epochs = ((epoch, number) for epoch in itertools.count() for number in own)
        for epoch, number in epochs if left else ():
            rows = min(left, work.shards[number].rows)
            if stopped() or not rows:
                return
            left -= rows
            self._start += rows
            yield Grant(number, epoch, 0, rows)

    _patch("shared_queues", "SharedQueue.grants", grants)


def _leak(bytes_per_second: int) -> None:
    kept: list[bytes] = []
    while True:
        # Not zeros: pages that were never written take no memory.
        kept.append(b"\1" * int(bytes_per_second * _LEAK_SECONDS))
        time.sleep(_LEAK_SECONDS)


def _pause(seconds: float) -> None:
    """Have each step wait at its end, as for an answer of something remote."""
    from paceline.training import reports

    add = reports.StepMeter.add

    @functools.wraps(add)
    def waiting(*arguments: Any, **more: Any) -> None:
        add(*arguments, **more)
        time.sleep(seconds)

    reports.StepMeter.add = waiting  # type: ignore[method-assign]


def _fail_after(seconds: float) -> None:
    """Have a step raise an error so long after the first one."""
    from paceline.training import reports

    add = reports.StepMeter.add
    first: list[float] = []

    @functools.wraps(add)
    def failing(*arguments: Any, **more: Any) -> None:
        first.append(time.monotonic())
        if first[-1] - first[0] > seconds:
            os.write(2, b"ValueError: labels are not between 0 and 1\n")
            raise ValueError("labels are not between 0 and 1")
        del first[1:]
        add(*arguments, **more)

    reports.StepMeter.add = failing  # type: ignore[method-assign]
