"""Bounded staleness: no trainer starts a step when it is too many steps ahead of the slowest trainer.

Source: Ho et al. 2013, "More effective distributed ML via a stale synchronous parallel parameter server". A
trainer's clock counts the steps that it has finished; the first parameter server keeps all clocks. A step
advances its trainer's clock and returns all clocks, so a trainer that need not wait makes no extra call. The
clock advances when the first server has applied its part of the step; the parts on other servers may still be
under way for a moment.

A trainer is away before it begins, after it ends, while it waits for input, and when it is taken for lost.
Its clock then is `AWAY`, which is later than all others, so no trainer waits for it. A trainer is taken for
lost when it holds others up and has finished no step for `LOST_SECONDS`. A trainer that begins or comes back
starts at the slowest clock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.training.graph import step_policies
from paceline.training.lazy_tensorflow import tf, tf1

_log = logging.getLogger(__name__)
AWAY = 2**62
LOST_SECONDS = 30.0


@dataclass(frozen=True)
class Clocks:
    """Tensors of all clocks on the first parameter server: int64, (trainers,).

    `read` returns the clocks. `ticked` returns them after the step has advanced its trainer's clock. `put`
    sets the clock with the number `index` () to `clock` (); `renewed` sets all clocks to `AWAY`.
    """

    read: Any
    ticked: Any
    put: Any
    index: Any
    clock: Any
    renewed: Any


def create(trainers: int, trainer: int, device: str, updates: Sequence[Any], steps: int) -> Clocks:
    """Add the clocks to the graph of a trainer; its own clock advances by `steps` after the updates."""
    with tf1.device(device):
        clocks = tf1.get_variable(
            "clocks",
            initializer=tf.constant(AWAY, tf.int64, [trainers]),
            trainable=False,
            use_resource=True,
        )
        with tf1.control_dependencies(updates):
            counted = tf1.scatter_add(clocks, trainer, tf.constant(steps, tf.int64))
        with tf1.control_dependencies([counted]):
            ticked = clocks.read_value()
        index, clock = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.int64, [])
        return Clocks(
            read=clocks.read_value(),
            ticked=ticked,
            put=tf1.scatter_update(clocks, index, clock).op,
            index=index,
            clock=clock,
            renewed=clocks.initializer,
        )


class Bounded:
    """Takes the steps of one trainer, and lets it get only so many steps ahead of the slowest."""

    def __init__(
        self,
        session: Any,
        clocks: Clocks,
        trainer: int,
        staleness: int,
        steps: int,
        step: Callable[[Any], Sequence[Any]],
        stopping: Callable[[], bool],
        lost_seconds: float = LOST_SECONDS,
    ) -> None:
        """Join the other trainers.

        `step` takes the batches of `steps` steps and returns the global step, the loss and all clocks after
        them.
        """
        self._waited_seconds = 0.0
        self._session = session
        self._read = session.make_callable(clocks.read)
        self._put = session.make_callable(clocks.put, feed_list=[clocks.index, clocks.clock])
        self._trainer = trainer
        self._staleness = staleness
        self._steps = steps
        self._step = step
        self._stopping = stopping
        self._lost_seconds = lost_seconds
        self._join()

    def rest(self) -> None:
        """Be away until the next step: a trainer that waits for input computes nothing on old parameters."""
        self._put(self._trainer, AWAY)
        self._clocks[self._trainer] = AWAY

    def wait(self) -> None:
        """Wait until the next steps may start or the trainer has to stop."""
        if self._clocks[self._trainer] >= AWAY:
            self._join()
        if not self._holding().size:
            self._started += self._steps
            return
        began = watched = time.monotonic()
        pauses = step_policies.PollPauses("slower trainers")
        while self._holding().size and not self._stopping():
            before = self._clocks
            pauses.next()
            self._see(self._read())
            holding = self._holding()
            if (self._clocks[holding] != before[holding]).any():
                watched = time.monotonic()
            elif time.monotonic() - watched > self._lost_seconds:
                for lost in holding:
                    _log.warning(
                        "trainer %d has finished no step for %.0f s: "
                        "the other trainers do not wait for it until its next step",
                        lost + 1,
                        self._lost_seconds,
                    )
                    self._put(lost, AWAY)
        self._waited_seconds = time.monotonic() - began
        self._started += self._steps

    def step(self, batch: Any) -> step_policies.Finished:
        """Take a step."""
        waited, self._waited_seconds = self._waited_seconds, 0.0
        step, loss, clocks, *_ = self._step(batch)
        self._see(clocks)
        return step_policies.Finished(int(step), float(loss), waited)

    def _holding(self) -> npt.NDArray[np.int64]:
        """Return the trainers that the next steps have to wait for."""
        others = self._clocks.copy()
        others[self._trainer] = AWAY
        last = self._started + self._steps - 1
        found: npt.NDArray[np.int64] = np.flatnonzero(others < last - self._staleness)
        return found

    def _see(self, clocks: npt.NDArray[np.int64]) -> None:
        self._clocks = clocks
        if clocks[self._trainer] >= AWAY:  # others took this trainer for lost, or the clocks were reset
            self._join()

    def _join(self) -> None:
        """Start at the slowest clock of the other trainers."""
        clocks = self._read()
        slowest = np.delete(clocks, self._trainer).min(initial=AWAY)
        own = int(slowest) if slowest < AWAY else 0
        self._put(self._trainer, own)
        clocks[self._trainer] = own
        self._clocks, self._started = clocks, own
