"""The evaluator: evaluates each new checkpoint beside training, from its own copy of the parameters.

It ends by itself after the checkpoint of the job's last step. SIGTERM means that training is over: the
evaluator then looks once more, evaluates the newest checkpoint unless that is done, and ends with success.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from types import FrameType

from paceline.training import blocks, clusters, errors, evaluations, reports, settings, trainers
from paceline.training.checkpoints import checkpoints
from paceline.training.graph import graphs
from paceline.training.input import inputs, sources
from paceline.training.lazy_tensorflow import tf1

_log = logging.getLogger(__name__)
_POLL_SECONDS = 1.0
#: How often to look for copies elsewhere, for an evaluator that does not share the folder with the chief.
_FETCH_SECONDS = 5.0


def serve(
    model: blocks.TrainableModel,
    cluster: clusters.ClusterTask,
    chosen: settings.Settings,
    *,
    examples: int,
    evaluation: sources.Source | None,
    checkpoint_dir: str | None,
    reporting: reports.ReportWriter,
) -> evaluations.Evaluation | None:
    """Evaluate checkpoints until the last one or SIGTERM; return the last result, if there is one.

    `examples` is the number of training examples, which determines the step at which the job ends.

    Raises:
        TrainingError: there are no evaluation data or no checkpoint folder, or checkpoints are switched off.
    """
    if evaluation is None or checkpoint_dir is None:
        missing = "evaluation data" if evaluation is None else "checkpoint folder (PACELINE_CHECKPOINT_DIR)"
        raise errors.TrainingError(f"the evaluator has no {missing}")
    if not chosen.checkpoint.keep:
        raise errors.SettingsError("training.checkpoint.keep is 0, so the evaluator has no checkpoints")
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    before = signal.signal(signal.SIGTERM, stop)
    try:
        total = trainers.total_steps(chosen, examples, len(cluster.trainers))
        graph = graphs.build(model, cluster, chosen)
        saved = checkpoints.Checkpoints(
            checkpoint_dir, graph.contents, chosen.checkpoint.every_seconds, chosen.checkpoint.mirror
        )
        result, seen, fetched_at = None, None, -math.inf
        while True:
            last_look = stopping.is_set()
            if last_look or time.monotonic() - fetched_at >= _FETCH_SECONDS:
                _fetch(saved)
                fetched_at = time.monotonic()
            newest = saved.latest()
            if newest is not None and newest != seen:
                result = _evaluate(graph, saved, newest, model, evaluation, reporting) or result
                seen = newest
            if last_look or (seen is not None and checkpoints.step_of(seen) >= total):
                return result
            stopping.wait(_POLL_SECONDS)
    finally:
        signal.signal(signal.SIGTERM, before)


def _fetch(saved: checkpoints.Checkpoints) -> None:
    try:
        saved.fetch()
    except (errors.CheckpointError, OSError) as error:
        _log.warning("no checkpoint is fetched for now: %s", error)


def _evaluate(
    graph: graphs.Graph,
    saved: checkpoints.Checkpoints,
    checkpoint: str,
    model: blocks.TrainableModel,
    evaluation: sources.Source,
    reporting: reports.ReportWriter,
) -> evaluations.Evaluation | None:
    """Evaluate one checkpoint; None if it is damaged, or the chief removed it meanwhile."""
    with tf1.Session(graph=graph.graph) as session:
        try:
            saved.restore(session, checkpoint)
        except errors.DamagedError as error:
            if saved.latest() == checkpoint:
                _log.warning("%s; it is not evaluated", error)
            else:
                _log.info("%s was replaced while it was read", checkpoint)
            return None
        step = int(session.run(graph.step))
        return trainers.evaluate(session, graph, inputs.once(evaluation, model.features), step, reporting)
