"""How long an answer is waited for."""

import threading

import pytest

from paceline.training import deadlines
from paceline.training.lazy_tensorflow import tf, tf1

pytestmark = pytest.mark.slow  # The module makes a session's class of TensorFlow's when it is imported.


def test_who_finished_hardly_any_step_is_given_twice_the_time():
    assert deadlines.following(deadlines.FIRST_SECONDS, steps=0) == 2 * deadlines.FIRST_SECONDS
    assert deadlines.following(4 * deadlines.FIRST_SECONDS, steps=10) == 8 * deadlines.FIRST_SECONDS


def test_who_was_fast_before_is_given_the_first_deadline_again():
    assert deadlines.following(8 * deadlines.FIRST_SECONDS, steps=11) == deadlines.FIRST_SECONDS


def test_there_is_a_longest_deadline():
    assert deadlines.following(deadlines.LONGEST_SECONDS, steps=0) == deadlines.LONGEST_SECONDS


def test_a_closed_session_leaves_no_thread_behind():
    """The thread might be the last that knows the session, and delete it while Python ends, which aborts."""
    before = set(threading.enumerate())
    with tf1.Graph().as_default() as graph:
        one = tf1.constant(1)
    session = deadlines.DeadlineSession("", graph=graph, config=None, ports=(), seconds=30.0)
    assert session.run(one) == 1
    begun = set(threading.enumerate()) - before
    assert "deadlines" in {each.name for each in begun}
    session.close()
    assert not begun & set(threading.enumerate())


def test_a_failure_whose_reason_is_no_text_is_one_of_a_server(monkeypatch):
    def fails(*arguments):
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    graph = tf1.Graph()
    with graph.as_default():
        one = tf1.constant(1)
    session = deadlines.DeadlineSession("", graph=graph, config=None, ports=(), seconds=30.0)
    monkeypatch.setattr(tf1.Session, "run", fails)
    with pytest.raises(tf.errors.UnavailableError, match="no text"):
        session.run(one)
    session.close()
