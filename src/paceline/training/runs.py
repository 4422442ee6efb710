"""The one call that a training script makes; it acts as whichever replica this process is.

TensorFlow takes seconds to import. A parameter server never imports it (`servers`); the other replicas count
the rows of their input files during the import.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping
from concurrent import futures
from typing import TYPE_CHECKING

from paceline.training import clusters, errors, evaluations, lazy_tensorflow, reports, servers, settings
from paceline.training.input import locations, sources

if TYPE_CHECKING:
    from paceline.training import blocks

_log = logging.getLogger(__name__)


def run(
    model: blocks.TrainableModel,
    *,
    train: sources.Source | None = None,
    evaluation: sources.Source | None = None,
    environment: Mapping[str, str] | None = None,
) -> evaluations.Evaluation | None:
    """Do this replica's part of the job and return when it is over.

    A parameter server serves until it is terminated. A trainer trains to the job's last step; the chief then
    saves, evaluates and, if the settings say so, exports. An evaluator evaluates checkpoints. Cluster,
    settings, checkpoint folder and report file come from the environment (see `clusters`, `settings`);
    `inputs` in the settings replaces the given files.

    Args:
        model: the model to train.
        train: where the training examples are.
        evaluation: where the evaluation examples are; without them nothing is evaluated.
        environment: replaces the process's environment.

    Returns:
        The chief's or the evaluator's last evaluation; None from any other replica.

    Raises:
        TrainingError: something is wrong that the user can correct.
    """
    environment = os.environ if environment is None else environment
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    cluster = clusters.read(environment)
    chosen = settings.read(environment)
    if cluster.role == "ps":
        _log.info("ps %d serves at %s", cluster.index, cluster.addresses["ps"][cluster.index])
        servers.serve(cluster)
        return None
    train = _source(chosen.inputs.train, chosen, train)
    if train is None:
        raise errors.InputError("no training data: set training.inputs.train in the job file")
    evaluation = _source(chosen.inputs.evaluation, chosen, evaluation)
    kinds = model.features.kinds()
    with futures.ThreadPoolExecutor(1, "counting") as pool:
        counted = pool.submit(sources.rows, train, kinds)
        # The evaluation data are checked before training begins, though they are used after its end.
        judged = (
            pool.submit(sources.rows, evaluation, kinds)
            if evaluation is not None and (cluster.is_chief or cluster.role == "evaluator")
            else None
        )
        lazy_tensorflow.imported()
    if judged is not None and counted.exception() is None:
        judged.result()
    return _train(model, cluster, chosen, environment, train, evaluation, rows=counted.result())


def _train(
    model: blocks.TrainableModel,
    cluster: clusters.ClusterTask,
    chosen: settings.Settings,
    environment: Mapping[str, str],
    train: sources.Source,
    evaluation: sources.Source | None,
    *,
    rows: Mapping[str, int],
) -> evaluations.Evaluation | None:
    """Do the part of a trainer or an evaluator; `rows` has the number of rows of each training file."""
    from paceline.training import evaluators, exports, trainers  # their import uses TensorFlow

    checkpoint_dir = environment.get("PACELINE_CHECKPOINT_DIR") or None
    reporting = reports.ReportWriter.from_environment(environment)
    if cluster.role == "evaluator":
        return evaluators.serve(
            model,
            cluster,
            chosen,
            examples=sum(rows.values()),
            evaluation=evaluation,
            checkpoint_dir=checkpoint_dir,
            reporting=reporting,
        )
    if chosen.export_dir is not None:  # check before training whether its result can be exported
        if checkpoint_dir is None:
            raise errors.SettingsError(
                "training.export_dir needs a checkpoint folder (PACELINE_CHECKPOINT_DIR)"
            )
        exports.check(chosen.export_dir)
    result = trainers.Trainer(
        model,
        cluster,
        chosen,
        train=train,
        rows=rows,
        evaluation=evaluation,
        checkpoint_dir=checkpoint_dir,
        reporting=reporting,
        run_dir=environment.get("PACELINE_RUN_DIR") or None,
    ).run()
    if cluster.is_chief and chosen.export_dir and checkpoint_dir:
        exports.write(model, checkpoint_dir, chosen.export_dir, chosen)
    return result


def _source(
    urls: tuple[str, ...], chosen: settings.Settings, given: sources.Source | None
) -> sources.Source | None:
    """Return the files that the job file names, decoded as the script says, or else the script's own."""
    cache = chosen.inputs.cache
    kept = locations.Cache(cache.folder, cache.max_bytes) if cache.folder else None
    if not urls:
        return given and dataclasses.replace(given, cache=kept or given.cache)
    own = given or sources.Source(urls)
    return dataclasses.replace(
        own, urls=urls, format=chosen.inputs.format or own.format, cache=kept or own.cache
    )
