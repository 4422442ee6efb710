"""The queue of shards on a real server: raced for by several sessions, saved and restored."""

import threading

import pytest

from paceline.training import errors
from paceline.training.input import shards

pytestmark = pytest.mark.slow

BATCH = 10
WORK = shards.cut({"a": 9_000, "b": 7_000}, 2.0)


def a_server():
    import tensorflow.compat.v1 as tf1

    return tf1.train.Server({"ps": ["localhost:0"]}, job_name="ps", task_index=0)


@pytest.fixture(scope="module")
def server():
    return a_server()


class Trainer:
    """A trainer without a model: its step only counts."""

    def __init__(self, server, index=0, count=2, work=WORK):
        import tensorflow as tf
        import tensorflow.compat.v1 as tf1

        from paceline.training.input import shared_queues

        self.work = work
        self.index = index
        graph = tf1.Graph()
        with graph.as_default():
            self.variables = shared_queues.create(work, index, count, BATCH, 1, "/job:ps/task:0")
            self.initialise = tf1.global_variables_initializer()
            self.saver = tf1.train.Saver(self.variables.saved)
            self.ready = tf.reduce_all([each.is_initialized() for each in tf1.global_variables()])
        self.session = tf1.Session(server.target, graph=graph)
        self.trained = []

    def join(self, **options):
        from paceline.training.input import shared_queues

        self.queue = shared_queues.SharedQueue(self.variables, self.session, self.index, **options)
        return self

    def train(self, most=10**9):
        """Trains batch after batch, as many as there are or `most`."""
        rows, steps = [], 0
        done = threading.Event()
        for grant in self.queue.grants(done.is_set):
            if grant is None:
                parts = [rows]
            else:
                rows += [(grant.shard, grant.epoch, place) for place in range(grant.skip, grant.rows)]
                whole = len(rows) // BATCH * BATCH
                parts, rows = [rows[i : i + BATCH] for i in range(0, whole, BATCH)], rows[whole:]
            for part in filter(None, parts):
                if steps < most:
                    self.session.run(self.variables.counted)
                    self.queue.confirm()
                    self.trained += part
                    steps += 1
                if steps == most:
                    done.set()
            rows = rows if grant is not None else []
        self.trained += rows if steps < most else []
        return self


def every(work=WORK):
    return {
        (shard, epoch, place)
        for epoch in range(2)
        for shard, each in enumerate(work.shards)
        for place in range(each.rows)
    }


def test_racing_trainers_train_every_example_once(server):
    trainers = [Trainer(server, index, 3) for index in range(3)]
    trainers[0].session.run(trainers[0].initialise)
    threads = [threading.Thread(target=each.join().train) for each in trainers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trained = [key for each in trainers for key in each.trained]
    assert len(trained) == len(set(trained))
    assert set(trained) == every()
    progress = trainers[1].queue.progress()
    assert (progress.examples, progress.total_examples, progress.twice) == (32_000, 32_000, 0)
    assert all(each.queue.pauses.seconds > 0 for each in trainers)


def test_what_a_lost_trainer_held_is_trained_by_others(server, monkeypatch, caplog):
    from paceline.training.input import shared_queues

    one, other = Trainer(server), Trainer(server, 1)
    one.session.run(one.initialise)
    one.join().train(most=30)
    one.session.run(one.variables.counted)  # begun, and lost
    rejoined = Trainer(server).join().train(most=30)
    monkeypatch.setattr(shared_queues, "_PATIENCE_SECONDS", 0.3)
    with caplog.at_level("INFO"):
        other.join(announce=True).train()
    trained = one.trained + rejoined.trained + other.trained
    assert set(trained) == every()
    assert len(trained) - len(set(trained)) <= other.queue.progress().twice <= 500
    assert other.queue.progress().examples == 32_000
    assert "others take over what they hold" in caplog.text
    assert "epoch 1: 16,000 of 16,000 examples" in caplog.text


def test_a_trainer_that_leaves_gives_back_exactly_what_is_left(server):
    one, other = Trainer(server), Trainer(server, 1)
    one.session.run(one.initialise)
    one.join().train(most=37)
    one.queue.leave()
    assert one.queue.progress().examples == 370
    other.join().train()
    assert sorted(one.trained + other.trained) == sorted(every())
    assert other.queue.progress().twice == 0


def test_a_job_goes_on_where_the_checkpoint_was(server, tmp_path):
    import tensorflow as tf

    one = Trainer(server)
    one.session.run(one.initialise)
    one.join().train(most=600)
    one.variables.keep(one.session)
    with one.session.graph.as_default():
        path = one.saver.save(one.session, str(tmp_path / "model"), write_meta_graph=False)
    before = set(one.trained)
    one.train(most=100)  # lost with the parameters
    again = Trainer(server)
    again.variables.restore(again.session, tf.train.load_checkpoint(path))
    assert again.session.run(again.ready)
    again.join().train()
    assert before | set(again.trained) == every()
    assert len(before) + len(again.trained) - 32_000 <= again.queue.progress().twice <= BATCH


@pytest.mark.parametrize("sizes", [{"a": 9_000, "b": 7_001}, {"a": 9_000, "c": 7_000}, {"a": 900}])
def test_on_other_files_the_epoch_starts_anew(tmp_path, caplog, sizes):
    import tensorflow as tf

    one = Trainer(a_server())
    one.session.run(one.initialise)
    one.join().train(most=1_700)  # into the second epoch
    one.queue.leave()
    one.variables.keep(one.session)
    with one.session.graph.as_default():
        path = one.saver.save(one.session, str(tmp_path / "model"), write_meta_graph=False)
    work = shards.cut(sizes, 2.0)
    other = Trainer(a_server(), work=work)
    other.variables.restore(other.session, tf.train.load_checkpoint(path))
    assert "not those of the checkpoint: epoch 2 starts anew" in caplog.text
    other.join().train()
    assert sorted(other.trained) == sorted(key for key in every(work) if key[1] == 1)


def test_trainers_that_see_other_files_are_refused(server):
    one = Trainer(server)
    one.session.run(one.initialise)
    work = shards.Work(("a", "c"), WORK.shards, 2.0)
    with pytest.raises(errors.InputError, match="trainer 1 sees other training files than the chief"):
        Trainer(server, 1, work=work).join()
