"""The queue of shards as a value: which trainer has which shard, its progress, and the next grant.

A trainer's examples are one long sequence: its grants, one after the other. The trainer only reports how many
examples of that sequence it has finished, its position. From this, and from where each grant begins in the
sequence, follows what is done of each shard. So a shard costs one exchange and a step costs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from paceline.training.input import shards
from paceline.training.input.shards import Integers

Booleans = npt.NDArray[np.bool_]

FREE = -1


@dataclass(frozen=True)
class State:
    """The state of each shard, each (shards,).

    Attributes:
        epoch: the epoch that the shard is in.
        done: how many of its examples were done in that epoch when its owner got it or when it became free.
        owner: the trainer that has it, or `FREE`.
        start: where the rest of the shard begins in the owner's sequence.
        twice: how many of its examples may have been trained twice, over all epochs.
    """

    epoch: Integers
    done: Integers
    owner: Integers
    start: Integers
    twice: Integers

    def array(self) -> Integers:
        """Return the whole state as an array (5, shards)."""
        return np.stack([self.epoch, self.done, self.owner, self.start, self.twice])


def initial(work: shards.Work) -> State:
    """Return the state in which nothing is done."""
    zeros = np.zeros(len(work.shards), dtype=np.int64)
    return State(zeros, zeros, zeros + FREE, zeros, zeros)


def of(array: Integers) -> State:
    """Return the state of an array that `State.array` made."""
    return State(*np.asarray(array, dtype=np.int64))


@dataclass(frozen=True)
class ShardPosition:
    """How far a trainer is in its sequence: `finished` is certain, and it may be as far as `begun`."""

    finished: int
    begun: int


def settled(work: shards.Work, state: State, positions: Mapping[int, ShardPosition]) -> State:
    """Move finished shards on to their next epoch."""
    finished = np.zeros(len(work.shards), dtype=bool)
    for trainer, position in _holding(state, positions):
        due = work.due(state.epoch)
        finished |= (state.owner == trainer) & (position.finished - state.start >= due - state.done)
    return replace(
        state,
        epoch=state.epoch + finished,
        done=np.where(finished, 0, state.done),
        owner=np.where(finished, FREE, state.owner),
    )


def released(
    work: shards.Work, state: State, positions: Mapping[int, ShardPosition], *, alive: bool = False
) -> State:
    """Take the unfinished rest of the shards that these trainers hold from them.

    What they had begun counts as trained twice; if they may be `alive`, the whole rest does.
    """
    state = settled(work, state, positions)
    done, twice, owner = state.done.copy(), state.twice.copy(), state.owner.copy()
    due = work.due(state.epoch)
    for trainer, position in _holding(state, positions):
        held = state.owner == trainer
        finished, begun = (
            np.clip(state.done + place - state.start, state.done, due)
            for place in (position.finished, position.begun)
        )
        done[held] = finished[held]
        twice[held] += (due if alive else begun)[held] - finished[held]
        owner[held] = FREE
    return replace(state, done=done, owner=owner, twice=twice)


def _holding(state: State, positions: Mapping[int, ShardPosition]) -> list[tuple[int, ShardPosition]]:
    """Return the trainers that hold a shard: there may be many more positions than trainers."""
    owners = set(state.owner.tolist())
    return [(trainer, position) for trainer, position in positions.items() if trainer in owners]


def taken(
    work: shards.Work, state: State, trainer: int, start: int, last: int | None
) -> tuple[State, shards.Grant | None]:
    """Give a trainer its next shard, if one is free, from `start` of its sequence on.

    It is the shard after its `last`, so that files are read on. Otherwise it is the first shard of a file
    that is not begun, or a shard of the longest stretch of free shards: the middle one if another trainer
    owns the shard before the stretch, or else the first. Shards of an epoch are given only when the epoch two
    before it is finished.
    """
    due = work.due(state.epoch)
    open_epochs = state.epoch[due > 0]
    free = (state.owner == FREE) & (due > 0)
    if not free.any():
        return state, None
    epoch = int(state.epoch[free].min())
    if epoch > int(open_epochs.min()) + 1:
        return state, None
    shard = _next(work, state, free & (state.epoch == epoch), epoch, last)
    grant = shards.Grant(shard, epoch, int(state.done[shard]), int(due[shard]))
    owner, starts = state.owner.copy(), state.start.copy()
    owner[shard], starts[shard] = trainer, start
    return replace(state, owner=owner, start=starts), grant


def _next(work: shards.Work, state: State, free: Booleans, epoch: int, last: int | None) -> int:
    following = None if last is None or last + 1 == len(free) else last + 1
    if following and free[following] and work.file_of[following] == work.file_of[following - 1]:
        return following
    stretches = list(_stretches(work, free))
    order, sizes = work.order(epoch), np.bincount(work.file_of)
    files = {
        int(work.file_of[first]): first
        for first, end in stretches
        if end - first == sizes[work.file_of[first]]
    }
    if files:
        return files[min(files, key=lambda file: int(order[file]))]
    first, end = max(stretches, key=lambda each: (each[1] - each[0], -each[0]))
    is_anothers_way = first > 0 and state.owner[first - 1] != FREE
    return (first + end) // 2 if is_anothers_way else first


def _stretches(work: shards.Work, free: Booleans) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each run of free shards of one file."""
    places = np.flatnonzero(free)
    breaks = (np.diff(places) != 1) | (np.diff(work.file_of[places]) != 0)
    for run in np.split(places, np.flatnonzero(breaks) + 1):
        yield int(run[0]), int(run[-1]) + 1


def is_finished(work: shards.Work, state: State) -> bool:
    """Return whether nothing is left of any epoch."""
    return not work.due(state.epoch).any()


def trained(work: shards.Work, state: State) -> int:
    """Return how many examples of all epochs are done, each counted once per epoch."""
    return int(work.before(state.epoch).sum() + state.done.sum())
