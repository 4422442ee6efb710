"""How a trainer waits for the parameters."""

import itertools
import types

import pytest

from paceline.training import clusters, deadlines, servers, sessions

UNREACHABLE = "127.0.0.1:1"


def test_a_trainer_that_is_stopped_waits_for_no_parameter_server(monkeypatch):
    monkeypatch.setattr(servers, "start", lambda cluster: None)
    monkeypatch.setattr(sessions, "_POLL_SECONDS", 0.01)
    addresses = {"ps": (UNREACHABLE,), "chief": (UNREACHABLE,)}
    cluster = clusters.Cluster(addresses=addresses, role="chief", index=0)
    waiting = sessions.Sessions(graph=None, cluster=cluster, saved=None, last_step=10)
    looks = itertools.count()
    assert waiting.open(lambda: next(looks) > 5, 60.0) is None
    assert next(looks) > 6


def test_a_loss_is_told_by_its_cause():
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
        assert told in sessions.loss(error, 30.0)
        assert isinstance(error, sessions.STATE_LOST)


@pytest.mark.slow
def test_a_call_that_is_never_answered_ends_at_its_deadline(cluster, monkeypatch):
    """An empty queue that nobody fills stands for an answer that TensorFlow lost."""
    import tensorflow.compat.v1 as tf1

    known, target = cluster
    with tf1.Graph().as_default() as graph:
        with tf1.device("/job:ps/task:1"):
            queue = tf1.FIFOQueue(1, [tf1.int32], shapes=[()])
            never, put = queue.dequeue(), queue.enqueue(7)
        ready = tf1.constant(True)
    monkeypatch.setattr(servers, "start", lambda cluster: types.SimpleNamespace(target=target))
    graph = types.SimpleNamespace(graph=graph, ready=ready)
    opened = sessions.Sessions(graph=graph, cluster=known, saved=None, last_step=10)
    session = opened.open(lambda: False, 0.5)
    with pytest.raises(sessions.NOT_ANSWERED):
        session.run(never)
    assert issubclass(sessions.NOT_ANSWERED, sessions.STATE_LOST)
    assert session.run(ready)  # others were answered all the time
    session.run(put)
    assert session.run(never, options=deadlines.UNHURRIED) == 7
    sessions.close(session)
