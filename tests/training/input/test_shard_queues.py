"""Trainers of every kind at a queue of shards, as a pure model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.examples import examples

from paceline.training.input import shard_queues, shards
from paceline.training.input.shard_queues import ShardPosition

BATCH = 100
UNCERTAIN = 2 * BATCH


def work(sizes, epochs=1.0):
    return shards.cut({f"file-{i}": size for i, size in enumerate(sizes)}, epochs)


class Trainer:
    """What a trainer knows: its sequence of examples, and how many it has begun and finished."""

    def __init__(self, begun=0):
        self.start = self.first = self.begun = self.finished = begun
        self.sequence = {}
        self.last = None


class Queue(RuleBasedStateMachine):
    """Steps begin, finish and are lost in any order; all is trained, and twice at most as counted."""

    @initialize(
        sizes=st.lists(st.integers(0, 2_000), min_size=1, max_size=3).filter(any),
        epochs=st.sampled_from([1.0, 0.4, 2.0, 2.5]),
        trainers=st.integers(1, 3),
    )
    def begin(self, sizes, epochs, trainers):
        self.work = work(sizes, epochs)
        self.state = shard_queues.initial(self.work)
        self.trainers = [Trainer() for _ in range(trainers)]
        self.trained = {}

    def positions(self, own=None):
        return {
            number: ShardPosition(each.finished if number == own else each.begun - UNCERTAIN, each.begun)
            for number, each in enumerate(self.trainers)
        }

    def take(self, number):
        each = self.trainers[number]
        state = shard_queues.settled(self.work, self.state, self.positions(number))
        self.state, grant = shard_queues.taken(self.work, state, number, each.start, each.last)
        if grant is not None:
            assert 0 <= grant.skip < grant.rows
            for place in range(grant.skip, grant.rows):
                each.sequence[each.start + place - grant.skip] = (grant.shard, grant.epoch, place)
            each.start += grant.rows - grant.skip
            each.last = grant.shard
        else:
            each.start += -(each.start - each.first) % BATCH
        return grant

    def begin_step(self, number):
        each = self.trainers[number]
        if each.start - each.begun >= BATCH and each.begun - each.finished < UNCERTAIN:
            each.begun += BATCH

    def finish_step(self, number):
        each = self.trainers[number]
        if each.finished < each.begun:
            for place in range(each.finished, each.finished + BATCH):
                if place in each.sequence:
                    key = each.sequence[place]
                    self.trained[key] = self.trained.get(key, 0) + 1
            each.finished += BATCH

    def lose(self, number, how_many_are_in):
        """Of the steps under way some were applied."""
        each = self.trainers[number]
        for _ in range(how_many_are_in):
            self.finish_step(number)
        own = {number: ShardPosition(each.begun - UNCERTAIN, each.begun)}
        self.state = shard_queues.released(self.work, self.state, own)
        self.trainers[number] = Trainer(each.begun)

    @rule(data=st.data(), kind=st.sampled_from(["take", "begin", "begin", "finish", "finish"]))
    def go_on(self, data, kind):
        number = data.draw(st.integers(0, len(self.trainers) - 1))
        for _ in range(data.draw(st.integers(1, 5))):
            {"take": self.take, "begin": self.begin_step, "finish": self.finish_step}[kind](number)

    @rule(data=st.data())
    def lose_one(self, data):
        self.lose(data.draw(st.integers(0, len(self.trainers) - 1)), data.draw(st.integers(0, 2)))

    @rule()
    def keep_and_restore(self):
        """What a checkpoint would hold never counts as trained what is not."""
        kept = shard_queues.released(self.work, self.state, self.positions())
        assert shard_queues.trained(self.work, kept) <= len(self.trained)

    @invariant()
    def an_epoch_waits_for_the_one_before_the_last(self):
        live = self.state.epoch[self.work.due(self.state.epoch) > 0]
        taken = self.state.epoch[self.state.owner != shard_queues.FREE]
        if len(taken):
            assert taken.max() <= live.min() + 1

    def teardown(self):
        for _ in range(10_000):
            if shard_queues.is_finished(self.work, self.state):
                break
            for number in range(len(self.trainers)):
                self.begin_step(number)
                self.finish_step(number)
                self.take(number)
        assert shard_queues.is_finished(self.work, self.state)
        assert len(self.trained) == self.work.total == shard_queues.trained(self.work, self.state)
        again = sum(self.trained.values()) - len(self.trained)
        assert again <= int(self.state.twice.sum())


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=examples(60), stateful_step_count=30)


def test_a_trainer_reads_on_and_another_begins_elsewhere():
    cut = work([2_560])
    state = shard_queues.initial(cut)
    found = {0: [], 1: []}
    last = {0: None, 1: None}
    for _ in range(5):
        for trainer in (0, 1):
            state, grant = shard_queues.taken(cut, state, trainer, 0, last[trainer])
            last[trainer] = grant.shard
            found[trainer].append(grant.shard)
    assert found == {0: [0, 1, 2, 3, 4], 1: [5, 6, 7, 8, 9]}
    assert shard_queues.taken(cut, state, 0, 0, 4)[1] is None


def test_trainers_begin_with_different_files():
    cut = work([1_000] * 4)
    state = shard_queues.initial(cut)
    files = set()
    for trainer in range(4):
        state, grant = shard_queues.taken(cut, state, trainer, 0, None)
        files.add(cut.shards[grant.shard].file)
    assert files == {0, 1, 2, 3}


def test_what_a_trainer_may_go_on_with_counts_as_twice():
    cut = work([256])
    state, _ = shard_queues.taken(cut, shard_queues.initial(cut), 0, 0, None)
    for alive, twice in ((False, 100), (True, 156)):
        after = shard_queues.released(cut, state, {0: ShardPosition(100, 200)}, alive=alive)
        assert (int(after.done[0]), int(after.twice[0]), int(after.owner[0])) == (100, twice, -1)


@given(array=st.lists(st.integers(-1, 9), min_size=10, max_size=10))
def test_a_state_survives_its_array(array):
    given_array = np.array(array).reshape(5, 2)
    assert np.array_equal(shard_queues.of(given_array).array(), given_array)


@pytest.mark.parametrize("epochs", [1, 3])
def test_one_trainer_is_given_each_example_once_an_epoch(epochs):
    cut = work([700, 300, 2_000], epochs)
    state, start, last, seen = shard_queues.initial(cut), 0, None, []
    while not shard_queues.is_finished(cut, state):
        state = shard_queues.settled(cut, state, {0: ShardPosition(start, start)})
        state, grant = shard_queues.taken(cut, state, 0, start, last)
        if grant:
            start, last = start + grant.rows, grant.shard
            seen.append((grant.epoch, grant.shard))
    assert sorted(seen) == [(e, s) for e in range(epochs) for s in range(len(cut.shards))]
    assert shard_queues.trained(cut, state) == 3_000 * epochs
