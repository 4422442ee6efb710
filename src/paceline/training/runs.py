"""The one call that a training script makes: be whichever replica this process is."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping

from paceline.training import (
    blocks,
    clusters,
    errors,
    evaluations,
    evaluators,
    exports,
    locations,
    reports,
    servers,
    settings,
    sources,
    trainers,
)

_log = logging.getLogger(__name__)


def run(
    model: blocks.Model,
    *,
    train: sources.Source | None = None,
    evaluation: sources.Source | None = None,
    environment: Mapping[str, str] | None = None,
) -> evaluations.Evaluation | None:
    """Does this replica's part of the job and returns when that is over.

    A parameter server serves until it is terminated. A trainer trains to the job's last step; the chief
    then saves, evaluates and, where the settings say so, exports. An evaluator judges checkpoints. Cluster,
    settings, checkpoint folder and report file come from the environment (see `clusters`, `settings`);
    `inputs` in the settings replaces the given files.

    Args:
        model: what to train.
        train: where the training examples are.
        evaluation: where the evaluation examples are; without them nothing is evaluated.
        environment: stands in for the process's environment.

    Returns:
        The chief's or the evaluator's last evaluation; None from any other replica.

    Raises:
        TrainingError: something that the user can mend.
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
    checkpoint_dir = environment.get("PACELINE_CHECKPOINT_DIR") or None
    reporting = reports.Reports.from_environment(environment)
    if cluster.role == "evaluator":
        return evaluators.serve(
            model,
            cluster,
            chosen,
            train=train,
            evaluation=evaluation,
            checkpoint_dir=checkpoint_dir,
            reporting=reporting,
        )
    _check_export(chosen.export_dir, checkpoint_dir)
    result = trainers.Trainer(
        model,
        cluster,
        chosen,
        train=train,
        evaluation=evaluation,
        checkpoint_dir=checkpoint_dir,
        reporting=reporting,
        run_dir=environment.get("PACELINE_RUN_DIR") or None,
    ).run()
    if cluster.is_chief and chosen.export_dir and checkpoint_dir:
        exports.write(model, checkpoint_dir, chosen.export_dir, chosen)
    return result


def _check_export(export_dir: str | None, checkpoint_dir: str | None) -> None:
    """Finds out before training whether its result can be exported."""
    if export_dir is None:
        return
    if checkpoint_dir is None:
        raise errors.SettingsError("training.export_dir needs a checkpoint folder (PACELINE_CHECKPOINT_DIR)")
    exports.check(export_dir)


def _source(
    urls: tuple[str, ...], chosen: settings.Settings, given: sources.Source | None
) -> sources.Source | None:
    """The files that the job file names, decoded as the script says; else the script's own."""
    cache = chosen.inputs.cache
    kept = locations.Cache(cache.folder, cache.max_bytes) if cache.folder else None
    if not urls:
        return given and dataclasses.replace(given, cache=kept or given.cache)
    own = given or sources.Source(urls)
    return dataclasses.replace(
        own, urls=urls, format=chosen.inputs.format or own.format, cache=kept or own.cache
    )
