"""Looks at parameters: of callables in place of sessions, so that values go when a test says so."""

import threading

import pytest
from support import kills

pytestmark = pytest.mark.slow  # it loads TensorFlow, for its errors


class Server:
    """Says whether variables have values, and waits for a look."""

    def __init__(self):
        self.answer = True
        self.looked = threading.Semaphore(0)

    def __call__(self):
        self.looked.release()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def await_look(self):
        assert self.looked.acquire(timeout=300)


def await_loss(watch):
    kills.until(lambda: watch.has_lost, seconds=300)


def watch_on(server):
    from paceline.training import parameter_watchdog

    return parameter_watchdog.ParameterWatchdog(server, look_seconds=0.01)


def test_nothing_is_lost_while_all_variables_have_values():
    server = Server()
    with watch_on(server) as watch:
        server.await_look()
        server.await_look()
    assert not watch.has_lost
    watch.check()


def test_variables_without_values_are_lost():
    import tensorflow as tf

    server = Server()
    with watch_on(server) as watch:
        server.await_look()
        server.answer = False
        await_loss(watch)
    assert watch.has_lost
    with pytest.raises(tf.errors.FailedPreconditionError):
        watch.check()


def test_a_server_that_cannot_be_reached_has_lost_them():
    import tensorflow as tf

    server = Server()
    server.answer = tf.errors.UnavailableError(None, None, "connection refused")
    with watch_on(server) as watch:
        await_loss(watch)
    with pytest.raises(tf.errors.UnavailableError, match="refused"):
        watch.check()


def test_the_end_of_the_context_is_not_kept_waiting():
    from paceline.training import parameter_watchdog

    with parameter_watchdog.ParameterWatchdog(Server(), look_seconds=3600.0) as watch:
        pass
    assert not watch.has_lost
