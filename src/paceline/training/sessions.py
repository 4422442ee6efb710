"""Sessions of a trainer: opened when the parameters are ready, and reopened when a parameter server is lost.

TensorFlow's own recovery restores a checkpoint whenever a chief starts. Here the chief first checks whether
all variables are alive. A chief that was restarted beside live parameter servers continues from their values.
Only if a server lost its variables does the chief set all of them back to the newest checkpoint (or the
initial values). The other trainers wait until then. Device filters keep trainers from waiting for each other.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Any

from paceline.training import clusters, deadlines, errors, servers
from paceline.training.checkpoints import checkpoints
from paceline.training.graph import graphs, step_policies
from paceline.training.lazy_tensorflow import tf, tf1

_log = logging.getLogger(__name__)

NOT_ANSWERED = tf.errors.DeadlineExceededError
"""A parameter server did not answer in time (`deadlines`)."""

CONNECTION_LOST = (tf.errors.AbortedError, tf.errors.UnavailableError, NOT_ANSWERED)
"""A parameter server ended, was restarted or does not answer."""

STATE_LOST = (
    *CONNECTION_LOST,
    tf.errors.FailedPreconditionError,
    tf.errors.CancelledError,
    tf.errors.NotFoundError,
)
"""These, and what a step sees that met a restarted server half-way: variables without values, cancelled
transfers.
"""

_TWICE = "request was received twice"
_PROBE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 0.25  # each try opens a session, which costs the servers some milliseconds


class Sessions:
    """Opens the sessions of one trainer.

    Starts the trainer's server at once, unless the trainer is a single process.
    """

    def __init__(
        self,
        graph: graphs.Graph,
        cluster: clusters.ClusterTask,
        saved: checkpoints.Checkpoints,
        last_step: int,
    ) -> None:
        self._graph = graph
        self._cluster = cluster
        self._saved = saved
        self._last_step = last_step
        self._deadline_seconds = deadlines.FIRST_SECONDS
        self._server = None if cluster.is_local else servers.start(cluster)

    def open(self, stopping: Callable[[], bool]) -> Any | None:
        """Wait until the parameters have values, however long it takes, and return a session.

        Returns None if this trainer is `stopping`. Also returns None if the parameters are lost and training
        is over, since no chief is left to give them values.

        Raises:
            CheckpointError: the checkpoints do not fit the model, or are all damaged.
        """
        pauses = step_policies.PollPauses("the chief to initialise the parameters", _LONGEST_PAUSE_SECONDS)
        while True:
            self._wait_for_parameter_servers(stopping)
            if stopping():
                return None
            session = self._connect()
            try:
                if self._is_ready(session):
                    return session
            except STATE_LOST as error:
                _log.warning("parameters are not reachable yet: %s", errors.reason(error))
                self._adapt(error, steps=0)
            close(session)
            if self._is_over():
                return None
            pauses.next()

    def lost(self, error: Exception, steps: int) -> None:
        """Log how the session was lost and adapt the deadline of the next one.

        `error` is one of `STATE_LOST`; `steps` is how many steps of the session had finished.
        """
        if isinstance(error, NOT_ANSWERED):
            how = f"a parameter server has not answered for {self._deadline_seconds:.0f} s"
        elif _TWICE in str(error):
            how = "TensorFlow took a call for an earlier one, whose number it had given it again"
        else:
            how = f"lost a parameter server ({type(error).__name__})"
        _log.warning("%s: connecting anew", how)
        self._adapt(error, steps)

    def _adapt(self, error: Exception, steps: int) -> None:
        if isinstance(error, NOT_ANSWERED):
            self._deadline_seconds = deadlines.following(self._deadline_seconds, steps)

    def _is_ready(self, session: Any) -> bool:
        if session.run(self._graph.ready):
            return True
        if not self._cluster.is_chief:
            return False
        restored = self._saved.restore(session)
        if restored is None:
            session.run(self._graph.initialise, options=deadlines.UNHURRIED)
        _log.info("parameters start from %s", restored or "their first values")
        return True

    def _is_over(self) -> bool:
        newest = None if self._cluster.is_chief else self._saved.latest()
        return newest is not None and checkpoints.step_of(newest) >= self._last_step

    def _connect(self) -> Any:
        if self._server is None:
            return tf1.Session(graph=self._graph.graph)
        return deadlines.DeadlineSession(
            self._server.target,
            graph=self._graph.graph,
            config=tf1.ConfigProto(device_filters=["/job:ps", self._cluster.task_device]),
            ports={int(address.rpartition(":")[2]) for address in self._cluster.addresses["ps"]},
            seconds=self._deadline_seconds,
        )

    def _wait_for_parameter_servers(self, stopping: Callable[[], bool]) -> None:
        """Wait in Python, where signals are handled; TensorFlow would wait inside a call."""
        if self._cluster.is_local:
            return
        for index, address in enumerate(self._cluster.addresses["ps"]):
            pauses = step_policies.PollPauses(f"ps {index} at {address}", _LONGEST_PAUSE_SECONDS)
            while not (stopping() or _is_listening(address)):
                pauses.next()


def close(session: Any) -> None:
    """Close a session whose servers may be gone."""
    with contextlib.suppress(*STATE_LOST):
        session.close()


def _is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_SECONDS):
            return True
    except OSError:
        return False
