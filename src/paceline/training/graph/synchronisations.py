"""The synchronous steps of one trainer, and the chief's part in the steps of all trainers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent import futures
from types import TracebackType
from typing import Any

from paceline.training import clusters
from paceline.training.graph import graphs, rounds, step_policies


class Synchronous:
    """Takes synchronous steps; a context manager, in which the chief also applies all trainers' gradients."""

    def __init__(
        self,
        session: Any,
        graph: graphs.Graph,
        made: rounds.SynchronousRounds,
        cluster: clusters.ClusterTask,
        make_step: step_policies.MakeStep,
        stopping: Callable[[], bool],
    ) -> None:
        self._compute = make_step([graph.loss, *graph.updates], [*graph.inputs, *made.keys])
        self._servers = len(made.keys)
        self._note = session.make_callable(made.arrived, feed_list=[made.key])
        self._look = session.make_callable(made.state)
        self._trainer = cluster.trainer_index
        self._stopping = stopping
        self._chief: _Chief | None = None
        if cluster.is_chief:
            session.run(made.renewed)
            self._chief = _Chief(session, made)
        self._step, self._epoch, _ = map(int, self._look())

    def __enter__(self) -> Synchronous:
        """Start the chief's part."""
        if self._chief is not None:
            self._chief.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the chief's part."""
        if self._chief is not None:
            self._chief.stop()

    def rest(self) -> None:
        """Do nothing: the other trainers need this trainer's gradients, or those of a backup worker."""

    def wait(self) -> None:
        """Return at once: a step waits at its end."""

    def step(self, batch: Any) -> step_policies.Finished:
        """Compute gradients and wait until the step is applied, with these gradients or without them."""
        key = rounds.GradientKey(self._step, self._trainer, self._epoch)
        loss, *_ = self._compute(*batch, *[key.number] * self._servers)
        step, epoch, used = map(int, self._note(key.number))
        began = time.monotonic()
        pauses = step_policies.PollPauses(f"gradients of other trainers for the step after {step}")
        while step == key.step and epoch == key.epoch and not self._stopping():
            if self._chief is not None:
                self._chief.check()
            pauses.next()
            step, epoch, used = map(int, self._look())
        self._step, self._epoch = step, epoch
        return step_policies.Finished(step, float(loss), time.monotonic() - began, dropped=used != key.number)


class _Chief:
    """Applies a step, in a thread, whenever enough of its gradients have arrived."""

    def __init__(self, session: Any, made: rounds.SynchronousRounds) -> None:
        self._state = session.make_callable(made.state)
        self._noted = session.make_callable(made.noted)
        self._apply = session.make_callable(made.applied, feed_list=list(made.chosen))
        self._fed = len(made.chosen)
        self._gradients = made.gradients
        self._stopped = threading.Event()
        self._executor = futures.ThreadPoolExecutor(1, "chief")
        self._running: futures.Future[None] | None = None

    def start(self) -> None:
        self._running = self._executor.submit(self._run)

    def check(self) -> None:
        """Raise the error that ended the thread, if there is one."""
        if self._running is not None and self._running.done():
            self._running.result()

    def stop(self) -> None:
        self._stopped.set()
        self._executor.shutdown()

    def _run(self) -> None:
        step, epoch, _ = map(int, self._state())
        pauses = step_policies.PollPauses()
        while not self._stopped.is_set():
            keys = [rounds.GradientKey.of(int(number)) for number in self._noted()]
            fresh = [key.number for key in keys if (key.step, key.epoch) == (step, epoch)]
            if len(fresh) < self._gradients:
                pauses.next()
                continue
            step = int(self._apply(*[fresh[: self._gradients]] * self._fed))
            pauses = step_policies.PollPauses()
