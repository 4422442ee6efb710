import os
import signal
import subprocess
import sys

import pytest

from paceline.training import errors

pytestmark = pytest.mark.slow


@pytest.fixture
def counter():
    """A graph of one variable."""
    import tensorflow.compat.v1 as tf1

    graph = tf1.Graph()
    with graph.as_default():
        value = tf1.get_variable("value", shape=[1000], initializer=tf1.zeros_initializer())
        saver = tf1.train.Saver(max_to_keep=2, save_relative_paths=True)
        initialise = tf1.global_variables_initializer()
    with tf1.Session(graph=graph) as session:
        session.run(initialise)
        yield session, value, saver


def folder(path, saver, every_seconds=60.0):
    from paceline.training import checkpoints

    made = checkpoints.Checkpoints(str(path), saver, every_seconds)
    made.prepare()
    return made


def files(path):
    return sorted(each.name for each in path.glob("*.index"))


def test_save_and_restore(tmp_path, counter):
    from paceline.training import checkpoints

    session, value, saver = counter
    saved = folder(tmp_path / "new", saver)
    assert saved.restore(session) is None
    value.load([1.0] * 1000, session)
    saved.save(session, 5)
    value.load([2.0] * 1000, session)
    restored = saved.restore(session)
    assert checkpoints.step_of(restored) == 5
    assert session.run(value.read_value())[0] == 1.0


def test_the_newest_are_kept_over_a_restart_and_a_move(tmp_path, counter):
    session, _, saver = counter
    saved = folder(tmp_path / "a", saver)
    for step in (1, 2, 3):
        saved.save(session, step)
    assert files(tmp_path / "a") == ["model.ckpt-2.index", "model.ckpt-3.index"]
    (tmp_path / "a").rename(tmp_path / "b")
    again = folder(tmp_path / "b", saver)
    assert again.latest().endswith("model.ckpt-3")
    again.save(session, 4)
    assert files(tmp_path / "b") == ["model.ckpt-3.index", "model.ckpt-4.index"]


def test_what_a_killed_chief_left_is_removed(tmp_path, counter):
    session, _, saver = counter
    folder(tmp_path, saver).save(session, 1)
    rest = tmp_path / "model.ckpt-2.data-00000-of-00001.tempstate123"
    rest.write_bytes(b"half")
    assert folder(tmp_path, saver).latest().endswith("model.ckpt-1")
    assert not rest.exists()


def test_saving_is_timed(tmp_path, counter):
    session, _, saver = counter
    patient = folder(tmp_path, saver, every_seconds=1000)
    patient.save_if_due(session, 1)
    assert patient.latest() is None
    eager = folder(tmp_path, saver, every_seconds=0)
    eager.save_if_due(session, 2)
    assert eager.latest().endswith("-2")


def test_without_a_folder_nothing_is_saved(counter):
    from paceline.training import checkpoints

    session, _, saver = counter
    saved = checkpoints.Checkpoints(None, saver, 0)
    saved.prepare()
    saved.save(session, 1)
    assert saved.latest() is None
    assert saved.restore(session) is None


def test_a_checkpoint_of_another_model_is_refused(tmp_path, counter):
    import tensorflow.compat.v1 as tf1

    session, _, saver = counter
    folder(tmp_path, saver).save(session, 1)
    for name, size in (("value", 7), ("other", 1000)):
        with tf1.Graph().as_default() as graph:
            tf1.get_variable(name, shape=[size])
            other = folder(tmp_path, tf1.train.Saver())
            with (
                tf1.Session(graph=graph) as another,
                pytest.raises(errors.CheckpointError, match="does not fit this model"),
            ):
                other.restore(another)


SAVE_FOR_EVER = """
import sys
import tensorflow.compat.v1 as tf1
from paceline.training import checkpoints
with tf1.Graph().as_default() as graph:
    value = tf1.get_variable("value", shape=[2_000_000], initializer=tf1.zeros_initializer())
    saver = tf1.train.Saver(max_to_keep=2)
    with tf1.Session(graph=graph) as session:
        session.run(value.initializer)
        saved = checkpoints.Checkpoints(sys.argv[1], saver, 0)
        saved.prepare()
        for step in range(1_000_000):
            value.load([float(step)] * 2_000_000, session) if step % 10 == 0 else None
            saved.save(session, step)
            print(step, flush=True)
"""


def test_a_chief_killed_while_it_saves_leaves_a_whole_checkpoint(tmp_path):
    import tensorflow as tf

    from paceline.training import checkpoints

    for kill_after in (1, 3):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOR_EVER, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": "src"},
        )
        try:
            for _ in range(kill_after):
                assert process.stdout.readline()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        newest = checkpoints.Checkpoints(str(tmp_path), None, 0).latest()
        values = tf.train.load_checkpoint(newest).get_tensor("value")
        assert (values == values[0]).all()
