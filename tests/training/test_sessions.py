"""How a trainer waits for the parameters."""

import itertools
import types
from concurrent import futures

import pytest

from paceline.training import clusters, deadlines, servers, sessions

pytestmark = pytest.mark.slow  # What sessions are made of is made of TensorFlow's when it is imported.

UNREACHABLE = "127.0.0.1:1"


def test_a_trainer_that_is_stopped_waits_for_no_parameter_server(monkeypatch):
    monkeypatch.setattr(servers, "start", lambda cluster: None)
    addresses = {"ps": (UNREACHABLE,), "chief": (UNREACHABLE,)}
    cluster = clusters.ClusterTask(addresses=addresses, role="chief", index=0)
    waiting = sessions.Sessions(graph=None, cluster=cluster, saved=None, last_step=10)
    looks = itertools.count()
    assert waiting.open(lambda: next(looks) > 5) is None
    assert next(looks) > 6


def lonely(monkeypatch):
    """Sessions of a trainer whose server is never asked."""
    monkeypatch.setattr(servers, "start", lambda cluster: None)
    cluster = clusters.ClusterTask(addresses={"ps": (UNREACHABLE,)}, role="worker", index=0)
    return sessions.Sessions(graph=None, cluster=cluster, saved=None, last_step=10)


def test_a_loss_is_told_by_its_cause(monkeypatch, caplog):
    from tensorflow import errors

    numbered = "From /job:ps/replica:0/task:1:\nThe same RunGraph (Worker) request was received twice. graph"
    for error, told in (
        (errors.DeadlineExceededError(None, None, "Operation timed out."), "not answered for 30 s"),
        (errors.AbortedError(None, None, numbered), "took a call for an earlier one"),
        (
            errors.AbortedError(None, None, "Graph handle is not found"),
            "lost a parameter server (AbortedError)",
        ),
        (errors.UnavailableError(None, None, "Socket closed"), "lost a parameter server (UnavailableError)"),
    ):
        caplog.clear()
        lonely(monkeypatch).lost(error, steps=0)
        assert told in caplog.text
        assert isinstance(error, sessions.STATE_LOST)


def test_a_deadline_that_is_missed_again_is_told_as_long_as_it_was(monkeypatch, caplog):
    missed = sessions.NOT_ANSWERED(None, None, "no answer")
    opened = lonely(monkeypatch)
    for steps, seconds in ((0, 30), (0, 60), (100, 120), (0, 30)):
        caplog.clear()
        opened.lost(missed, steps)
        assert f"not answered for {seconds} s" in caplog.text


def test_a_call_that_is_never_answered_ends_at_its_deadline(cluster, monkeypatch):
    """An empty queue that is never filled stands for an answer that TensorFlow lost."""
    import tensorflow.compat.v1 as tf1

    known, target = cluster
    with tf1.Graph().as_default() as graph:
        with tf1.device("/job:ps/task:1"):
            queue = tf1.FIFOQueue(1, [tf1.int32], shapes=[()])
            never, put = queue.dequeue(), queue.enqueue(7)
        ready = tf1.constant(True)
    monkeypatch.setattr(deadlines, "FIRST_SECONDS", 0.5)
    monkeypatch.setattr(servers, "start", lambda cluster: types.SimpleNamespace(target=target))
    graph = types.SimpleNamespace(graph=graph, ready=ready)
    opened = sessions.Sessions(graph=graph, cluster=known, saved=None, last_step=10)
    session = opened.open(lambda: False)
    with pytest.raises(sessions.NOT_ANSWERED):
        session.run(never)
    assert issubclass(sessions.NOT_ANSWERED, sessions.STATE_LOST)
    assert session.run(ready, options=deadlines.UNHURRIED)  # others were answered all the time
    session.run(put, options=deadlines.UNHURRIED)
    assert session.run(never, options=deadlines.UNHURRIED) == 7
    sessions.close(session)


def test_calls_that_fail_for_one_that_is_overdue_end_as_it_does(cluster, monkeypatch):
    import tensorflow.compat.v1 as tf1

    known, target = cluster
    with tf1.Graph().as_default() as graph, tf1.device("/job:ps/task:1"):
        never = tf1.FIFOQueue(1, [tf1.int32], shapes=[()]).dequeue()
        ready = tf1.constant(True)
    monkeypatch.setattr(deadlines, "FIRST_SECONDS", 0.5)
    monkeypatch.setattr(servers, "start", lambda cluster: types.SimpleNamespace(target=target))
    graph = types.SimpleNamespace(graph=graph, ready=ready)
    session = sessions.Sessions(graph=graph, cluster=known, saved=None, last_step=10).open(lambda: False)
    with futures.ThreadPoolExecutor(2) as pool:
        overdue = pool.submit(session.run, never)
        unhurried = pool.submit(session.run, never, options=deadlines.UNHURRIED)
        assert isinstance(overdue.exception(), sessions.NOT_ANSWERED)
        assert isinstance(unhurried.exception(), sessions.NOT_ANSWERED)
    sessions.close(session)
