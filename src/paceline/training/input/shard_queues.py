"""The queue of shards as a value: who has which, how far it is, and what a trainer is given next.

A trainer's examples are one long sequence: what it was granted, one grant after the other. It says only how
many of that sequence it has finished, its position; from where a grant begins in the sequence follows what is
done of each shard. So a shard costs one exchange and a step none.
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
    """For each shard: the `epoch` it is in; how many of its examples were `done` in that epoch when its
    `owner` got it or when it became free; where in the owner's sequence the rest begins (`start`); and how
    many of its examples may have been trained `twice`, over all epochs.
    """

    epoch: Integers
    done: Integers
    owner: Integers
    start: Integers
    twice: Integers

    def array(self) -> Integers:
        """All of it, (5, shards)."""
        return np.stack([self.epoch, self.done, self.owner, self.start, self.twice])


def initial(work: shards.Work) -> State:
    """Nothing is done."""
    zeros = np.zeros(len(work.shards), dtype=np.int64)
    return State(zeros, zeros, zeros + FREE, zeros, zeros)


def of(array: Integers) -> State:
    """The state of an array as `State.array` makes it."""
    return State(*np.asarray(array, dtype=np.int64))


@dataclass(frozen=True)
class ShardPosition:
    """How far a trainer is in its sequence: `finished` for certain, and up to `begun` perhaps."""

    finished: int
    begun: int


def settled(work: shards.Work, state: State, positions: Mapping[int, ShardPosition]) -> State:
    """Moves shards that are finished on to their next epoch."""
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
    """Takes from these trainers what they hold and have not finished, as far as they have not.

    What they had begun counts as trained twice, or all the rest if they may be alive.
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
    """Those that hold something: there may be places for many more trainers than there are."""
    owners = set(state.owner.tolist())
    return [(trainer, position) for trainer, position in positions.items() if trainer in owners]


def taken(
    work: shards.Work, state: State, trainer: int, start: int, last: int | None
) -> tuple[State, shards.Grant | None]:
    """Gives a trainer its next shard, if one is free, from `start` of its sequence on.

    It is the one after its `last`, so that files are read on; else the first of a file that is not begun,
    or the middle of the longest stretch that is left, which is another's way. An epoch begins when the one
    before the last is finished.
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
    """First and end of each run of free shards of one file."""
    places = np.flatnonzero(free)
    breaks = (np.diff(places) != 1) | (np.diff(work.file_of[places]) != 0)
    for run in np.split(places, np.flatnonzero(breaks) + 1):
        yield int(run[0]), int(run[-1]) + 1


def is_finished(work: shards.Work, state: State) -> bool:
    """Whether nothing is left of any epoch."""
    return not work.due(state.epoch).any()


def trained(work: shards.Work, state: State) -> int:
    """How many examples of all epochs are done, each counted once."""
    return int(work.before(state.epoch).sum() + state.done.sum())
