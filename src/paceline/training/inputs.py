"""Batches for a trainer: its shard, shuffled, decoded ahead by a background thread.

Chunks of columns are encoded to arrays, collected to a pool, permuted and sliced, so a batch costs no
Python per row. The stream has no end: a trainer repeats its shard until the job's global step reaches its
total, which is how the part of a lost trainer is made up. Batches are always full; a remainder joins the
next pass.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from types import TracebackType

import numpy as np

from paceline.training import errors, features, shards, sources

_POOL_ROWS = 131_072
_AHEAD = 16
_POLL_SECONDS = 0.2


def once(
    source: sources.Source,
    encoder: features.FeatureSet,
    shard: shards.Shard = shards.WHOLE,
    seed: int | None = None,
) -> Iterator[features.Examples]:
    """One pass over a shard in chunks; the order of the files is shuffled when a seed is given.

    Raises:
        InputError: a file is missing or malformed.
    """
    files = source.files()
    mine = list(shard.files(files))
    if seed is not None:
        np.random.default_rng(seed).shuffle(mine)
    kinds = encoder.kinds()
    for file in mine:
        first = 0
        for columns in sources.chunks(source, file, kinds):
            examples = encoder.encode(columns)
            count = len(examples.labels)
            rows = shard.rows(files, first, count)
            first += count
            yield examples if rows is None else examples.take(rows)


def shuffled(
    source: sources.Source, encoder: features.FeatureSet, shard: shards.Shard, batch_size: int, seed: int
) -> Iterator[features.Examples]:
    """Full batches without end, in an order that depends on the seed alone.

    Raises:
        InputError: a file is missing or malformed, or the shard is empty.
    """
    random = np.random.default_rng([seed, shard.index])
    rest: features.Examples | None = None
    while True:
        seen = 0
        for pool in _pools(once(source, encoder, shard, int(random.integers(2**31)))):
            seen += len(pool.labels)
            pool = pool.take(random.permutation(len(pool.labels)))
            pool = pool if rest is None else _joined([rest, pool])
            whole = len(pool.labels) // batch_size * batch_size
            for start in range(0, whole, batch_size):
                yield pool.take(slice(start, start + batch_size))
            rest = pool.take(slice(whole, None))
        if seen == 0:
            raise errors.InputError(
                f"{', '.join(source.urls)}: trainer {shard.index} of {shard.count} gets no example; "
                "use fewer trainers"
            )


def _pools(chunks: Iterator[features.Examples]) -> Iterator[features.Examples]:
    parts: list[features.Examples] = []
    rows = 0
    for chunk in chunks:
        parts.append(chunk)
        rows += len(chunk.labels)
        if rows >= _POOL_ROWS:
            yield _joined(parts)
            parts, rows = [], 0
    if parts:
        yield _joined(parts)


def _joined(parts: list[features.Examples]) -> features.Examples:
    return features.Examples(*(np.concatenate(each) for each in zip(*parts, strict=True)))


class Prefetched:
    """Runs an iterator of batches in a thread, some batches ahead; a context manager.

    `wait_seconds` is the total time that the caller has been kept waiting for input.
    """

    def __init__(self, batches: Iterator[features.Examples], ahead: int = _AHEAD) -> None:
        self.wait_seconds = 0.0
        self._batches = batches
        self._queue: queue.Queue[features.Examples] = queue.Queue(maxsize=ahead)
        self._stopped = threading.Event()
        self._executor = futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="inputs")
        self._filling: futures.Future[None] | None = None

    def __enter__(self) -> Prefetched:
        """Starts to read."""
        self._filling = self._executor.submit(self._fill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the thread and waits for its end."""
        self._stopped.set()
        self._executor.shutdown()

    def next(self) -> features.Examples:
        """The next batch.

        Raises:
            InputError: what went wrong in the thread.
            EOFError: the iterator has ended.
        """
        start = time.perf_counter()
        while True:
            try:
                batch = self._queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                self._check()
                continue
            self.wait_seconds += time.perf_counter() - start
            return batch

    def _check(self) -> None:
        """Passes on why the thread has ended, if it has and its last batch is taken."""
        if self._filling is not None and self._filling.done() and self._queue.empty():
            self._filling.result()
            raise EOFError("there are no more batches")

    def _fill(self) -> None:
        for batch in self._batches:
            while not self._put(batch):
                if self._stopped.is_set():
                    return

    def _put(self, batch: features.Examples) -> bool:
        try:
            self._queue.put(batch, timeout=_POLL_SECONDS)
        except queue.Full:
            return False
        return not self._stopped.is_set()
