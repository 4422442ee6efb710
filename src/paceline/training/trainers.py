"""The life of a trainer: train to the job's last step, through losses of parameter servers and of other
trainers.

A step that fails because a parameter server is gone closes the session; the next one opens when the chief
has given the variables values again. A trainer that was itself killed and restarted goes through the very
same door.
"""

from __future__ import annotations

import collections
import logging
import math
import signal
import sys
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import Any

from paceline.training import (
    blocks,
    checkpoints,
    clusters,
    evaluations,
    features,
    graphs,
    inputs,
    reports,
    sessions,
    settings,
    shards,
    sources,
    traffics,
)

_log = logging.getLogger(__name__)
_FRUITLESS_TRIES = 10


def total_steps(chosen: settings.Settings, examples: int) -> int:
    """The global step at which training ends: `epochs` passes over all examples, or `max_steps` if that is
    less.
    """
    whole = max(1, math.ceil(chosen.epochs * examples / chosen.batch_size))
    return whole if chosen.max_steps is None else min(whole, chosen.max_steps)


class Trainer:
    """One trainer of a job."""

    def __init__(
        self,
        model: blocks.Model,
        cluster: clusters.Cluster,
        chosen: settings.Settings,
        *,
        train: sources.Source,
        evaluation: sources.Source | None,
        checkpoint_dir: str | None,
        reporting: reports.Reports,
        run_dir: str | None,
    ) -> None:
        self._features = model.features
        self._cluster = cluster
        self._chosen = chosen
        self._train = train
        self._evaluation = evaluation
        self._reports = reporting
        self._total = total_steps(chosen, sources.count(train))
        self._meter = reports.StepMeter(reporting, self._total)
        self._graph = graphs.build(model, cluster, chosen)
        self._saved = checkpoints.Checkpoints(
            checkpoint_dir, self._graph.contents, chosen.checkpoint.every_seconds
        )
        self._run_dir = run_dir
        self._traffic: traffics.Traffic | None = None
        if cluster.is_chief:
            self._saved.prepare()
            distinct = chosen.fused_tables
            self._traffic = traffics.Traffic(self._graph.tables, self._features, distinct=distinct)
        self._sessions = sessions.Sessions(self._graph, cluster, self._saved, self._total)
        self._stopping = False
        self._steps = 0

    def run(self) -> evaluations.Evaluation | None:
        """Trains to the end; the chief then saves, evaluates and returns what it found."""
        shard = shards.Shard(self._cluster.trainer_index, len(self._cluster.trainers))
        seed = self._chosen.seed + 1_000_003 * (self._cluster.attempt - 1)  # a restart draws another order
        examples = self._chosen.batch_size * self._chosen.steps_per_exchange
        stream = inputs.shuffled(self._train, self._features, shard, examples, seed)
        with self._stoppable(), inputs.Prefetched(stream) as batches:
            fruitless = 0
            while True:
                before = self._steps
                session = self._sessions.open()
                if session is None:
                    _log.info("training is over: the newest checkpoint has the last step")
                    return None
                try:
                    return self._with(session, batches)
                except sessions.STATE_LOST as error:
                    fruitless = 0 if self._steps > before else fruitless + 1
                    if fruitless > _FRUITLESS_TRIES and not isinstance(error, sessions.CONNECTION_LOST):
                        raise
                    _log.warning("lost a parameter server (%s), waiting for it", type(error).__name__)
                finally:
                    sessions.close(session)
                    self._saved.settle()

    def _with(self, session: Any, batches: inputs.Prefetched) -> evaluations.Evaluation | None:
        step = self._loop(session, batches)
        if not self._cluster.is_chief:
            return None
        self._saved.save(session, step)
        if self._stopping:
            _log.info("stopped at step %d of %d on SIGTERM", step, self._total)
            sys.exit(128 + signal.SIGTERM)
        return self._evaluate(session, step)

    def _loop(self, session: Any, batches: inputs.Prefetched) -> int:
        """Trains until the total (or a stop) and returns the global step."""
        graph, meter, total, chief = self._graph, self._meter, self._total, self._cluster.is_chief
        update = session.make_callable(
            [graph.counted, graph.loss, *graph.updates], feed_list=list(graph.inputs)
        )
        step = int(session.run(graph.step))
        _log.info(
            "trainer %d of %d is at step %d of %d",
            self._cluster.trainer_index + 1,
            len(self._cluster.trainers),
            step,
            total,
        )
        meter.restart(batches.wait_seconds)
        under_way: collections.deque[tuple[futures.Future[Any], int]] = collections.deque()
        with futures.ThreadPoolExecutor(self._chosen.steps_in_flight, "steps") as pool:
            while step < total and not self._stopping:
                batch = batches.next()
                self._count_traffic(batch)
                under_way.append((pool.submit(lambda given: update(*given), batch), len(batch.labels)))
                if len(under_way) == self._chosen.steps_in_flight:
                    step = self._finish(*under_way.popleft(), batches)
                    if chief:
                        self._saved.save_if_due(session, step)
            for started in under_way:
                step = self._finish(*started, batches)
        meter.flush(batches.wait_seconds)
        return step

    def _count_traffic(self, batch: features.Examples) -> None:
        """Counts what a batch moves; when enough are counted, leaves it for a plan of the next run."""
        if self._traffic is None or self._run_dir is None:
            return
        self._traffic.add(batch.ids)
        if self._traffic.is_complete:
            try:
                traffics.write(self._traffic.measured(self._graph.variables), self._run_dir)
            except OSError as error:
                _log.warning("the traffic of variables cannot be written: %s", error)
            self._traffic = None

    def _finish(self, started: futures.Future[Any], examples: int, batches: inputs.Prefetched) -> int:
        """Waits for the steps of an exchange and counts them; returns the global step after them."""
        step, loss, *_ = started.result()
        steps = self._chosen.steps_per_exchange
        self._steps += steps
        self._meter.add(int(step), steps, examples, float(loss), batches.wait_seconds)
        return int(step)

    def _evaluate(self, session: Any, step: int) -> evaluations.Evaluation | None:
        if self._evaluation is None:
            return None
        return evaluate(
            session, self._graph, inputs.once(self._evaluation, self._features), step, self._reports
        )

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """While training, SIGTERM lets the chief finish its step and save; others just end."""
        if not self._cluster.is_chief:
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            self._stopping = True
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

        before = signal.signal(signal.SIGTERM, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


def evaluate(
    session: Any, graph: graphs.Graph, chunks: Any, step: int, reporting: reports.Reports
) -> evaluations.Evaluation:
    """Evaluates the session's parameters, logs and reports the result."""
    predict = session.make_callable(graph.probabilities, feed_list=list(graph.inputs[:2]))
    result = evaluations.evaluate(lambda batch: predict(*batch[:2]), chunks, step)
    _log.info(
        "step %d: AUC %s, log loss %.4f, accuracy %.4f over %d examples",
        step,
        "undefined" if result.auc is None else f"{result.auc:.4f}",
        result.log_loss,
        result.accuracy,
        result.examples,
    )
    reporting.append({"type": "evaluation", **asdict(result)})
    return result
