"""Batches for a trainer: shard after shard, decoded and shuffled ahead by background threads.

Chunks of columns are encoded to arrays, collected to pools, permuted and sliced, so a batch costs no Python
per row. The order of a shard's examples depends only on the seed, the epoch and the shard. So a trainer that
continues the shard of a lost trainer knows which of its examples are left. Batches are full: the rest of a
shard joins the next one, and only the last batch may be smaller.
"""

from __future__ import annotations

import collections
import itertools
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from contextlib import closing
from types import TracebackType
from typing import Generic, TypeVar

import numpy as np

from paceline.training import errors, features
from paceline.training.input import shards, sources
from paceline.training.input.input_costs import Cost, CpuCounter, IdleMeter

_POOL_ROWS = 131_072
_AHEAD = 16
_POLL_SECONDS = 0.2

Item = TypeVar("Item")
Examples = features.Examples


def once(source: sources.Source, encoder: features.FeatureSet) -> Iterator[Examples]:
    """Yield all examples once in chunks, in their own order.

    Raises:
        InputError: a file is missing or malformed.
    """
    kinds = encoder.kinds()
    for file in source.files():
        for chunk in sources.chunks(source, file, kinds):
            yield chunk.encoded(encoder)


def shuffled(
    source: sources.Source, encoder: features.FeatureSet, index: int, count: int, batch_size: int, seed: int
) -> Generator[Examples, None, None]:
    """Yield full batches without end for reader `index` of `count`, each with shards of its own.

    Raises:
        InputError: a file is missing or malformed, or there are fewer shards than readers.
    """
    work = shards.cut(sources.rows(source, encoder.kinds()), 1.0, seed)
    if index >= len(work.shards):
        raise errors.InputError(
            f"{', '.join(map(errors.shown, source.urls))}: "
            f"reader {index} of {count} gets no example; use fewer"
        )
    return batches(pools(source, encoder, work, shards.repeated(work, index, count)), batch_size)


def pools(
    source: sources.Source,
    encoder: features.FeatureSet,
    work: shards.Work,
    grants: Iterable[shards.Grant | None],
    threads: int = 1,
    cpu: CpuCounter | None = None,
) -> Generator[Examples | None, None, None]:
    """Yield the granted examples in the order of training; a None among the grants is passed on.

    The threads that decode, and the thread that takes the examples, add their CPU time to `cpu`.

    Raises:
        InputError: a file is missing or malformed.
    """
    with futures.ThreadPoolExecutor(threads, "decoding") as executor:
        files = _Files(source, encoder, work.files, executor, cpu or CpuCounter())
        for grant in grants:
            if grant is None:
                yield None
                continue
            place = 0
            for number, pool in enumerate(_joined_to(_POOL_ROWS, files.read(work.shards[grant.shard]))):
                random = np.random.default_rng([work.seed, grant.epoch, grant.shard, number])
                size = len(pool.labels)
                wanted = slice(max(0, grant.skip - place), max(0, grant.rows - place))
                order = random.permutation(size)[wanted]
                place += size
                if len(order):
                    yield pool.take(order)


def batches(
    examples: Iterator[Examples | None], batch_size: int, parts: int = 1
) -> Generator[Examples, None, None]:
    """Yield full batches of a sequence of examples.

    At the end of the sequence, and at a None in it, the rest is a smaller batch. Each batch can be split into
    `parts` of the same size; for this the smaller batch may repeat a few examples.
    """
    rest: Examples | None = None
    for pool in itertools.chain(examples, [None]):
        if pool is None:
            if rest is not None and len(rest.labels):
                size = -(-len(rest.labels) // parts) * parts
                yield rest.take(np.arange(size) % len(rest.labels))
            rest = None
            continue
        pool = pool if rest is None else _joined([rest, pool])
        whole = len(pool.labels) // batch_size * batch_size
        for start in range(0, whole, batch_size):
            yield pool.take(slice(start, start + batch_size))
        rest = pool.take(slice(whole, None))


class _Files:
    """Reads shards; a shard that follows the last one read continues in the open file."""

    def __init__(
        self,
        source: sources.Source,
        encoder: features.FeatureSet,
        files: tuple[str, ...],
        executor: futures.Executor,
        cpu: CpuCounter,
    ) -> None:
        self._cpu = cpu
        self._source = source
        self._encoder = encoder
        self._files = files
        self._executor = executor
        self._file = -1
        self._row = 0
        self._left: Examples | None = None
        self._chunks: Iterator[Examples] = iter(())

    def read(self, shard: shards.ExampleShard) -> Iterator[Examples]:
        """Yield the rows of a shard in chunks, in their own order.

        Raises:
            InputError: the file has become shorter since it was cut into shards, or is malformed.
        """
        if (shard.file, shard.first) != (self._file, self._row):
            self._open(shard)
        rows_left = shard.rows
        while rows_left:
            chunk = self._left if self._left is not None else next(self._chunks, None)
            self._cpu.tell()
            if chunk is None:
                raise errors.InputError.of(
                    self._files[shard.file],
                    f"it has only {self._row:,} rows, fewer than when training began; "
                    "files must not change while a job reads them",
                )
            taken = min(rows_left, len(chunk.labels))
            self._left = chunk.take(slice(taken, None)) if taken < len(chunk.labels) else None
            self._row += taken
            rows_left -= taken
            yield chunk.take(slice(0, taken))

    def _open(self, shard: shards.ExampleShard) -> None:
        self._file, self._row, self._left = shard.file, shard.first, None
        chunks = sources.chunks(
            self._source, self._files[shard.file], self._encoder.kinds(), first=shard.first
        )
        self._chunks = _mapped(self._executor, self._encode, chunks)

    def _encode(self, chunk: sources.RowChunk) -> Examples:
        encoded = chunk.encoded(self._encoder)
        self._cpu.tell()
        return encoded


def _mapped(
    executor: futures.Executor,
    function: Callable[[sources.RowChunk], Examples],
    items: Iterator[sources.RowChunk],
) -> Iterator[Examples]:
    """Yield a function's result for each item, in order; a few run at once while the next items are read."""
    under_way: collections.deque[futures.Future[Examples]] = collections.deque()
    for item in items:
        under_way.append(executor.submit(function, item))
        if len(under_way) > 2:
            yield under_way.popleft().result()
    for each in under_way:
        yield each.result()


def _joined_to(rows: int, chunks: Iterator[Examples]) -> Iterator[Examples]:
    """Yield the same rows in pieces of exactly `rows` rows; the last piece has the rest."""
    parts: list[Examples] = []
    have = 0
    for chunk in chunks:
        while have + len(chunk.labels) >= rows:
            yield _joined([*parts, chunk.take(slice(0, rows - have))])
            chunk = chunk.take(slice(rows - have, None))
            parts, have = [], 0
        parts.append(chunk)
        have += len(chunk.labels)
    if have:
        yield _joined(parts)


def _joined(parts: list[Examples]) -> Examples:
    return Examples(*(np.concatenate(each) for each in zip(*parts, strict=True)))


class Prefetched(Generic[Item]):
    """Runs a generator in a thread, some items ahead; a context manager.

    `wait_seconds` is the total time that the caller has waited for items that then came, without the `pauses`
    of the threads that make them. The thread adds its CPU time to `cpu`; `cost` has both. Several of these
    may share `stopped` if one reads from the other.
    """

    def __init__(
        self,
        items: Generator[Item, None, None],
        ahead: int = _AHEAD,
        stopped: threading.Event | None = None,
        cpu: CpuCounter | None = None,
        pauses: IdleMeter | None = None,
    ) -> None:
        self.wait_seconds = 0.0
        self._pauses = pauses or IdleMeter()
        self._cpu = cpu or CpuCounter()
        self._items = items
        self._queue: queue.Queue[Item] = queue.Queue(maxsize=ahead)
        self._stopped = stopped or threading.Event()
        self._executor = futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="inputs")
        self._filling: futures.Future[None] | None = None

    def __enter__(self) -> Prefetched[Item]:
        """Start to read."""
        self._filling = self._executor.submit(self._fill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread and wait for its end."""
        self._stopped.set()
        self._executor.shutdown()

    @property
    def cost(self) -> Cost:
        """The cost of the input so far."""
        return Cost(wait=self.wait_seconds, cpu=self._cpu.seconds)

    @property
    def is_empty(self) -> bool:
        """Whether the caller of `next` would have to wait now."""
        return self._queue.empty()

    def next(self) -> Item:
        """Return the next item.

        Raises:
            EOFError: the generator has ended, or was stopped.
            InputError: an input file is wrong; any other error of the thread is raised, too.
        """
        start, paused = time.perf_counter(), self._pauses.seconds
        while True:
            try:
                item = self._queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                self._check()
                continue
            paused = self._pauses.seconds - paused
            self.wait_seconds += max(0.0, time.perf_counter() - start - paused)
            return item

    def _check(self) -> None:
        """Raise the error that ended the thread, or EOFError, once its last item is taken."""
        if self._filling is not None and self._filling.done() and self._queue.empty():
            self._filling.result()
            raise EOFError("there are no more items")

    def _fill(self) -> None:
        with closing(self._items):
            for item in self._items:
                self._cpu.tell()
                while not self._put(item):
                    if self._stopped.is_set():
                        return

    def _put(self, item: Item) -> bool:
        try:
            self._queue.put(item, timeout=_POLL_SECONDS)
        except queue.Full:
            return False
        return not self._stopped.is_set()


def ahead(
    items: Generator[Item, None, None], count: int, stopped: threading.Event
) -> Generator[Item, None, None]:
    """Yield the same items; a thread makes up to `count` of them ahead."""
    with Prefetched(items, count, stopped) as made:
        while True:
            try:
                item = made.next()
            except EOFError:
                return
            yield item
