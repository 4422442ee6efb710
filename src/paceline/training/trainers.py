"""The life of a trainer: it trains to the job's last step, through losses of parameter servers and trainers.

A step that fails because a parameter server is gone closes the session; the next session opens when the chief
has given the variables values again. A trainer that was itself killed and restarted takes the same path.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import math
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent import futures
from types import FrameType
from typing import Any, NoReturn

from paceline.training import (
    blocks,
    clusters,
    deadlines,
    errors,
    evaluations,
    features,
    parameter_watchdog,
    processors,
    reports,
    sessions,
    settings,
)
from paceline.training.checkpoints import checkpoints
from paceline.training.graph import consistencies, graphs, step_policies
from paceline.training.input import input_costs, inputs, shards, shared_queues, sources
from paceline.training.tracing import traces, traffics

_log = logging.getLogger(__name__)
_FRUITLESS_TRIES = 10
_POOLS_AHEAD = 1
_WITHOUT_END = 1e6


def total_steps(chosen: settings.Settings, examples: int, trainers: int) -> int:
    """Return the global step at which training ends: `epochs` passes, or `max_steps` if that is less.

    The passes may take a few more steps: for examples that are trained twice after a loss, and for each
    trainer's last batch.

    Raises:
        SettingsError: the consistency does not fit a job with this many trainers.
    """
    conflict = chosen.consistency.conflict_with(
        steps_in_flight=chosen.steps_in_flight,
        steps_per_exchange=chosen.steps_per_exchange,
        trainers=trainers,
    )
    if conflict is not None:
        raise errors.SettingsError(f"training.consistency: {conflict}")
    batch_size = chosen.batch_size * chosen.consistency.gradients(trainers)
    whole = max(1, math.ceil(math.ceil(chosen.epochs * examples) / batch_size))
    return whole if chosen.max_steps is None else min(whole, chosen.max_steps)


class Trainer:
    """One trainer of a job."""

    def __init__(
        self,
        model: blocks.TrainableModel,
        cluster: clusters.ClusterTask,
        chosen: settings.Settings,
        *,
        train: sources.Source,
        rows: Mapping[str, int],
        evaluation: sources.Source | None,
        checkpoint_dir: str | None,
        reporting: reports.ReportWriter,
        run_dir: str | None,
    ) -> None:
        self._features = model.features
        self._cluster = cluster
        self._chosen = chosen
        self._train = train
        self._evaluation = evaluation
        self._reports = reporting
        self._work = shards.cut(rows, chosen.epochs, chosen.seed)
        self._wanted_examples = self._work.total
        self._total = total_steps(chosen, self._work.examples, len(cluster.trainers))
        self._last_step = chosen.max_steps
        if chosen.consistency.mode == "synchronous":
            # No trainer can take a step alone, so all end at the same step, and data must not run out before.
            self._last_step = self._total
            self._work = dataclasses.replace(self._work, epochs=_WITHOUT_END)
        if chosen.compute_precision == "bfloat16" and processors.has_bfloat16() is False:
            _log.warning("compute_precision: bfloat16 is slower than float32 on this CPU, which lacks it")
        self._meter = reports.StepMeter(reporting, self._total)
        self._graph = graphs.build(model, cluster, chosen, self._work)
        self._saved = checkpoints.Checkpoints(
            checkpoint_dir if chosen.checkpoint.keep else None,
            self._graph.contents,
            chosen.checkpoint.every_seconds,
            chosen.checkpoint.mirror if cluster.is_chief else None,
        )
        self._run_dir = run_dir
        self._tracer = traces.Tracer(
            cluster, chosen.trace, run_dir, traces.names(self._graph.contents.parameters)
        )
        self._traffic: traffics.TrafficCounter | None = None
        if cluster.is_chief:
            self._saved.prepare(is_first=cluster.attempt == 1, restore_from=chosen.checkpoint.restore_from)
            distinct = chosen.fused_tables
            self._traffic = traffics.TrafficCounter(self._graph.tables, self._features, distinct=distinct)
        self._sessions = sessions.Sessions(self._graph, cluster, self._saved, self._total)
        self._threads = chosen.inputs.threads or cluster.threads or 1
        sources.use_threads(self._threads)
        self._stopping = False
        self._steps = 0

    def run(self) -> evaluations.Evaluation | None:
        """Train to the end; the chief then saves, evaluates and returns the evaluation."""
        with self._stoppable() if self._cluster.is_chief else contextlib.nullcontext():
            fruitless = 0
            while True:
                before = self._steps
                session = self._sessions.open(lambda: self._stopping)
                if session is None:
                    if self._stopping:
                        self._end_unsaved()
                    _log.info("training is over: the newest checkpoint has the last step")
                    return None
                try:
                    return self._with(session)
                except sessions.STATE_LOST as error:
                    if self._stopping:
                        self._end_unsaved()
                    fruitless = 0 if self._steps > before else fruitless + 1
                    if fruitless > _FRUITLESS_TRIES and not isinstance(error, sessions.CONNECTION_LOST):
                        raise
                    self._sessions.lost(error, self._steps - before)
                finally:
                    sessions.close(session)
                    self._saved.settle()

    def _end_unsaved(self) -> NoReturn:
        """End on SIGTERM when the parameters are lost, so that only an earlier checkpoint has them."""
        _log.warning(
            "stopped on SIGTERM without a parameter server; the last checkpoint is %s", self._saved.latest()
        )
        sys.exit(128 + signal.SIGTERM)

    def _with(self, session: Any) -> evaluations.Evaluation | None:
        assert self._graph.queue is not None, "a graph that was built with the work has its queue"
        queue = shared_queues.SharedQueue(
            self._graph.queue,
            session,
            self._cluster.trainer_index,
            announce=self._cluster.is_chief,
        )
        closed = threading.Event()
        watch = parameter_watchdog.ParameterWatchdog(session.make_callable(self._graph.ready))

        def stopping() -> bool:
            return self._stopping or watch.has_lost

        cpu = input_costs.CpuCounter()
        made = self._batches(queue, stopping, closed, cpu)
        with (
            contextlib.nullcontext() if self._cluster.is_chief else self._stoppable(),
            watch if self._cluster.is_chief and not self._cluster.is_local else contextlib.nullcontext(),
            inputs.Prefetched(made, stopped=closed, cpu=cpu, pauses=queue.pauses) as batches,
        ):
            step = self._loop(session, queue, batches, stopping)
        watch.check()
        with contextlib.suppress(*sessions.STATE_LOST):
            queue.leave()
        if not self._cluster.is_chief:
            if self._stopping:
                _log.info("stopped on SIGTERM; others take over what is left of its examples")
                sys.exit(128 + signal.SIGTERM)
            return None
        self._saved.save(session, step)
        progress = dataclasses.replace(queue.progress(), total_examples=self._wanted_examples)
        _log.info(
            "trained %s of %s examples, %s of them perhaps twice",
            f"{progress.examples:,}",
            f"{progress.total_examples:,}",
            f"{progress.twice:,}",
        )
        if self._stopping:
            _log.info("stopped at step %d of %d on SIGTERM", step, self._total)
            sys.exit(128 + signal.SIGTERM)
        return self._evaluate(session, step, progress)

    def _batches(
        self,
        queue: shared_queues.SharedQueue,
        stopping: Callable[[], bool],
        closed: threading.Event,
        cpu: input_costs.CpuCounter,
    ) -> Generator[features.Examples, None, None]:
        """Yield the batches granted to this trainer until all is trained.

        A thread makes one pool of examples ahead.
        """
        grants = queue.grants(lambda: stopping() or closed.is_set())
        pools = inputs.pools(self._train, self._features, self._work, grants, self._threads, cpu)
        steps = self._chosen.steps_per_exchange
        ahead = inputs.ahead(pools, _POOLS_AHEAD, closed)
        return inputs.batches(ahead, self._chosen.batch_size * steps, steps)

    def _loop(
        self,
        session: Any,
        queue: shared_queues.SharedQueue,
        batches: inputs.Prefetched[features.Examples],
        stopping: Callable[[], bool],
    ) -> int:
        """Train until no examples are left, the last step or a stop; return the global step."""
        graph, meter, chief = self._graph, self._meter, self._cluster.is_chief

        def make_step(fetches: Sequence[Any], feeds: Sequence[Any]) -> Callable[..., Any]:
            return self._tracer.callable(session, fetches, feeds, lambda: batches.wait_seconds)

        step = int(session.run(graph.step))
        _log.info(
            "trainer %d of %d is at step %d of %d",
            self._cluster.trainer_index + 1,
            len(self._cluster.trainers),
            step,
            self._total,
        )
        meter.restart(batches.cost)
        under_way: collections.deque[tuple[futures.Future[step_policies.Finished], int]] = collections.deque()
        with (
            consistencies.pace(session, graph, self._cluster, self._chosen, make_step, stopping) as pace,
            futures.ThreadPoolExecutor(self._chosen.steps_in_flight, "steps") as pool,
        ):
            while step < (self._last_step or math.inf) and not stopping():
                if batches.is_empty:
                    pace.rest()
                try:
                    batch = batches.next()
                except EOFError:
                    break
                self._count_traffic(batch)
                pace.wait()
                under_way.append((pool.submit(pace.step, batch), len(batch.labels)))
                # No step stays under way while the trainer waits for input: the queue may wait for that step.
                while under_way and (len(under_way) == self._chosen.steps_in_flight or batches.is_empty):
                    step = self._finish(*under_way.popleft(), queue, batches)
                    if chief:
                        self._saved.save_if_due(session, step)
            for started in under_way:
                step = self._finish(*started, queue, batches)
        meter.flush(batches.cost)
        return step

    def _count_traffic(self, batch: features.Examples) -> None:
        """Count what a batch moves; after enough batches, write the traffic for a plan of the next run."""
        if self._traffic is None or self._run_dir is None:
            return
        self._traffic.add(batch.ids)
        if self._traffic.is_complete:
            try:
                traffics.write(self._traffic.measured(self._graph.variables), self._run_dir)
            except OSError as error:
                _log.warning("the traffic of variables cannot be written: %s", error)
            self._traffic = None

    def _finish(
        self,
        started: futures.Future[step_policies.Finished],
        examples: int,
        queue: shared_queues.SharedQueue,
        batches: inputs.Prefetched[features.Examples],
    ) -> int:
        """Wait for the steps of an exchange and count them; return the global step after them."""
        finished = started.result()
        queue.confirm()
        steps = self._chosen.steps_per_exchange
        self._steps += steps
        self._meter.add(
            finished.step,
            steps,
            examples,
            finished.loss,
            batches.cost,
            waited_seconds=finished.waited_seconds,
            dropped=finished.dropped,
        )
        return finished.step

    def _evaluate(
        self, session: Any, step: int, progress: shared_queues.EpochProgress
    ) -> evaluations.Evaluation | None:
        if self._evaluation is None:
            return None
        chunks = inputs.once(self._evaluation, self._features)
        return evaluate(
            session, self._graph, chunks, step, self._reports, progress=dataclasses.asdict(progress)
        )

    @contextlib.contextmanager
    def _stoppable(self) -> Iterator[None]:
        """On SIGTERM, let the trainer finish its step.

        The chief then saves; any other trainer gives back the shards that it holds. A second SIGTERM ends the
        process.
        """

        def stop(number: int, frame: FrameType | None) -> None:
            self._stopping = True
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

        before = signal.signal(signal.SIGTERM, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


def evaluate(
    session: Any, graph: graphs.Graph, chunks: Any, step: int, reporting: reports.ReportWriter, **more: object
) -> evaluations.Evaluation:
    """Evaluate the session's parameters, log the result, and report it together with `more`."""
    predict = session.make_callable(
        graph.probabilities, feed_list=list(graph.inputs[:2]), accept_options=True
    )
    result = evaluations.evaluate(
        lambda batch: predict(*batch[:2], options=deadlines.UNHURRIED), chunks, step
    )
    _log.info(
        "step %d: AUC %s, log loss %.4f, accuracy %.4f over %d examples",
        step,
        "undefined" if result.auc is None else f"{result.auc:.4f}",
        result.log_loss,
        result.accuracy,
        result.examples,
    )
    reporting.append({"type": "evaluation", **dataclasses.asdict(result), **more})
    return result
