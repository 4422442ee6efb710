"""Bounded staleness over real servers in this process."""

import dataclasses
import random
import threading
import time
from concurrent import futures

import numpy as np
import pytest

from paceline.model.variables import consistencies
from paceline.training import features, settings

pytestmark = pytest.mark.slow

COLUMN = features.Identity("f", 10)
FEATURES = features.FeatureSet((features.Numeric("x"),), (COLUMN,), features.Label("l"))
CHOSEN = settings.Settings(embedding_dimension=2, hidden_units=(4,))
BATCH = features.Examples(
    np.ones((4, 1), np.float32), np.arange(4, dtype=np.int32)[:, None], np.ones(4, np.float32)
)


def bounded(staleness):
    return dataclasses.replace(CHOSEN, consistency=consistencies.Consistency("bounded-staleness", staleness))


def trainers(servers, folder, staleness, count):
    from paceline import training

    return servers.trainers(training.WideAndDeep(FEATURES), bounded(staleness), folder, count)


def pace_of(trainer, stopping=lambda: False, lost_seconds=30.0):
    """The trainer's pace, with a time of its own after which others are taken for lost."""
    from paceline.training.graph import clocks

    graph = trainer.graph
    fetched = [graph.counted, graph.loss, graph.clocks.ticked, *graph.updates]
    step = trainer.session.make_callable(fetched, feed_list=list(graph.inputs))
    return clocks.Bounded(
        trainer.session,
        graph.clocks,
        trainer.cluster.trainer_index,
        trainer.chosen.consistency.staleness,
        trainer.chosen.steps_per_exchange,
        lambda batch: step(*batch),
        stopping,
        lost_seconds,
    )


def clocks_of(trainer):
    return trainer.session.run(trainer.graph.clocks.read)


@pytest.mark.parametrize("staleness", [0, 3])
def test_no_trainer_is_ever_more_steps_ahead(servers, tmp_path, staleness):
    made = trainers(servers, tmp_path, staleness, 3)
    paces = [pace_of(trainer) for trainer in made]
    lock, finished, ahead = threading.Lock(), [0] * 3, []

    def train(index):
        chance = random.Random(index)
        for _ in range(25):
            paces[index].wait()
            with lock:
                ahead.append(finished[index] - min(finished))
            time.sleep(chance.random() * 0.01 * (index + 1))
            with lock:  # before the clock goes on, so what others may see is never more than this
                finished[index] += 1
            paces[index].step(BATCH)

    with futures.ThreadPoolExecutor(3) as pool:
        for each in [pool.submit(train, index) for index in range(3)]:
            each.result()
    assert max(ahead) <= staleness
    assert clocks_of(made[0]).tolist() == [25, 25, 25]


def test_steps_in_flight_count_as_ahead(servers, tmp_path):
    one, two = trainers(servers, tmp_path, 2, 2)
    other, pace = pace_of(two), pace_of(one)
    for _ in range(3):
        pace.wait()  # started, none of them finished
    with futures.ThreadPoolExecutor(1) as pool:
        fourth = pool.submit(pace.wait)
        for _ in range(3):
            pace.step(BATCH)
        assert not fourth.done()
        other.wait()
        other.step(BATCH)
        fourth.result()


def test_steps_that_share_an_exchange_begin_at_once(servers, tmp_path):
    from paceline import training

    chosen = dataclasses.replace(bounded(3), steps_per_exchange=2)
    one, two = servers.trainers(training.WideAndDeep(FEATURES), chosen, tmp_path, 2)
    other, pace = pace_of(two), pace_of(one)
    for _ in range(2):  # the fourth step is three ahead
        pace.wait()
        pace.step(BATCH)
    assert clocks_of(one).tolist() == [4, 0]
    with futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(pace.wait)
        assert not held.done()
        other.wait()
        other.step(BATCH)
        held.result()
    assert clocks_of(one).tolist() == [4, 2]


def test_a_trainer_that_ends_holds_no_other_trainer(servers, tmp_path):
    one, two = trainers(servers, tmp_path, 0, 2)
    fast, slow = pace_of(one), pace_of(two)
    fast.wait()
    fast.step(BATCH)
    with futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(fast.wait)
        assert not held.done()
        slow.rest()
        held.result()
    assert fast.step(BATCH).waited_seconds > 0


def test_a_trainer_that_is_lost_is_waited_for_no_longer_and_comes_back_at_the_slowest_clock(
    servers, tmp_path
):
    made = trainers(servers, tmp_path, 1, 3)
    one, two, lost = (pace_of(each, lost_seconds=0.3) for each in made)
    for _ in range(5):  # two steps, then the lost one holds them up
        for pace in (one, two):
            pace.wait()
            pace.step(BATCH)
    from paceline.training.graph import clocks

    assert clocks_of(made[0]).tolist() == [5, 5, clocks.AWAY]
    lost.step(BATCH)  # it was only slow
    assert clocks_of(made[0]).tolist() == [5, 5, 5]
    one.wait()
    one.step(BATCH)
    pace_of(made[2])  # it is restarted
    assert clocks_of(made[0]).tolist() == [6, 5, 5]


def test_a_trainer_that_is_held_stops_when_it_is_told_to(servers, tmp_path):
    one, two = trainers(servers, tmp_path, 0, 2)
    stop = threading.Event()
    pace_of(two)
    pace = pace_of(one, stop.is_set)
    pace.wait()
    pace.step(BATCH)
    with futures.ThreadPoolExecutor(1) as pool:
        held = pool.submit(pace.wait)
        assert not held.done()
        stop.set()
        held.result()


def test_nothing_but_steps_is_asked_for_while_no_trainer_is_held(servers, tmp_path):
    one, two = trainers(servers, tmp_path, 5, 2)
    calls = []

    class Counted:
        """The session of a trainer, its calls noted."""

        def make_callable(self, fetches, feed_list=None):
            made = one.session.make_callable(fetches, feed_list=feed_list)

            def call(*values):
                calls.append(fetches)
                return made(*values)

            return call

    pace_of(two)
    pace = pace_of(dataclasses.replace(one, session=Counted()))
    calls.clear()
    for _ in range(5):
        pace.wait()
        pace.step(BATCH)
    assert len(calls) == 5
    assert clocks_of(one).tolist() == [5, 0]
