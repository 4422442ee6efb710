"""How the examples are cut into shards, and how many of each are due in an epoch.

A shard is a range of rows of one file, small enough that many trainers finish an epoch together and that
little is lost with one of them. The cut depends on the files alone, so every trainer finds the same cut, also
after a restart and in a job of another size.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

_SHARDS = 64  # the minimum if there are enough rows: small data keep at most 64 trainers evenly busy
_MOST_SHARDS = 4_096  # each takes 40 bytes of the queue, which is always read whole
_MOST_ROWS = 65_536
_FEWEST_ROWS = 256


@dataclass(frozen=True)
class ExampleShard:
    """Rows `first` to `first + rows` of a file, which is given by its place in the sorted list of files."""

    file: int
    first: int
    rows: int


@dataclass(frozen=True)
class Work:
    """All examples to train on: each shard once in an epoch, for `epochs` epochs.

    The last epoch may be partial: then only a part of some shards, or none of them, is due in it.
    """

    files: tuple[str, ...]
    shards: tuple[ExampleShard, ...]
    epochs: float
    seed: int = 0

    @property
    def examples(self) -> int:
        """The examples of one epoch."""
        return int(self.sizes.sum())

    @property
    def total(self) -> int:
        """The examples of all epochs, rounded up."""
        return math.ceil(self.epochs * self.examples)

    @cached_property
    def sizes(self) -> Integers:
        """The rows of each shard, (shards,)."""
        return np.array([shard.rows for shard in self.shards], dtype=np.int64)

    @cached_property
    def file_of(self) -> Integers:
        """The file of each shard, (shards,)."""
        return np.array([shard.file for shard in self.shards], dtype=np.int64)

    @cached_property
    def identity(self) -> int:
        """A number that two cuts share only if they are alike and have the examples in the same order."""
        text = repr((self.files, self.shards, self.seed)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")

    def order(self, epoch: int) -> Integers:
        """Return the place of each file among the files of an epoch."""
        return _permutation(self.seed, epoch, len(self.files))

    def due(self, epochs: Integers) -> Integers:
        """Return how many examples of each shard are due in its current epoch: 0 after the last epoch."""
        whole = math.floor(self.epochs)
        return np.where(epochs < whole, self.sizes, np.where(epochs == whole, self._rest, 0))

    def before(self, epochs: Integers) -> Integers:
        """Return how many examples of each shard are due in all epochs before its current epoch."""
        whole = math.floor(self.epochs)
        return self.sizes * np.minimum(epochs, whole) + np.where(epochs > whole, self._rest, 0)

    @cached_property
    def _rest(self) -> Integers:
        """What is due of each shard in a partial last epoch, from the files that are first in its order."""
        due = self.total - math.floor(self.epochs) * self.examples
        sequence = np.lexsort(
            (np.arange(len(self.shards)), self.order(math.floor(self.epochs))[self.file_of])
        )
        before = np.cumsum(self.sizes[sequence]) - self.sizes[sequence]
        rest = np.zeros_like(self.sizes)
        rest[sequence] = np.clip(due - before, 0, self.sizes[sequence])
        return rest


@dataclass(frozen=True)
class Grant:
    """Examples `skip` to `rows` of a shard, in the order that the shard has in this epoch."""

    shard: int
    epoch: int
    skip: int
    rows: int


def cut(rows: Mapping[str, int], epochs: float, seed: int = 0) -> Work:
    """Cut files into shards of nearly equal size; `rows` has the number of rows of each file."""
    total = sum(rows.values())
    size = max(
        min(_MOST_ROWS, max(_FEWEST_ROWS, math.ceil(total / _SHARDS))), math.ceil(total / _MOST_SHARDS)
    )
    files = tuple(sorted(rows))
    return Work(
        files=files,
        shards=tuple(
            ExampleShard(number, first, end - first)
            for number, file in enumerate(files)
            for first, end in itertools.pairwise(_bounds(rows[file], size))
        ),
        epochs=epochs,
        seed=seed,
    )


def _bounds(rows: int, size: int) -> list[int]:
    parts = math.ceil(rows / size)
    return [rows * part // parts for part in range(parts + 1)] if parts else []


def repeated(work: Work, index: int, count: int) -> Iterator[Grant]:
    """Yield the shards of reader `index` of `count`, every n-th one, epoch after epoch, without a queue."""
    for epoch in itertools.count():
        for shard in range(index, len(work.shards), count):
            yield Grant(shard, epoch, 0, work.shards[shard].rows)


@lru_cache(maxsize=16)
def _permutation(seed: int, epoch: int, files: int) -> Integers:
    return np.random.default_rng([seed, epoch]).permutation(files).astype(np.int64)
