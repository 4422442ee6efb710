"""The trend of a model from run to run, and the runs that were worse than those before them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline import specs
from paceline.errors import NotFound
from paceline.model.jobs.run_names import cluster_job
from paceline.model.jobs.runs import KUBERNETES
from paceline.model.studies.trained_models import ModelRun, TrainedModel
from paceline.services.studying import past_runs
from paceline.stores import Store
from paceline.tuning import memories as judging
from paceline.tuning.memories import PastRun, Regression

#: The number of a model's newest runs that are read.
MOST_RUNS = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrend:
    """A model over its runs.

    Attributes:
        runs: the newest runs, the oldest of them first.
        regressions: what was worse than in earlier runs, the newest first.
    """

    model: str
    runs: tuple[ModelRun, ...]
    regressions: tuple[Regression, ...]


def models(store: Store, *, engine: str, scope: str, limit: int) -> Sequence[TrainedModel]:
    """Return the models that were trained last.

    Args:
        store: where runs are kept.
        engine: the engine of the runs.
        scope: the prefix of the names of the runs that may be seen.
        limit: the most models to return.

    Raises:
        StoreError: the store cannot be read.
    """
    return store.models(engine=engine, prefix=scope, limit=limit)


def trend(store: Store, model: str, *, engine: str, scope: str) -> ModelTrend:
    """Return the trend of a model from run to run (arguments as in ``models``).

    Raises:
        NotFound: no run trains it.
        StoreError: the store cannot be read.
    """
    model_runs = store.runs_of_model(model, engine=engine, prefix=scope, limit=MOST_RUNS)
    if not model_runs:
        raise NotFound(f"no job trains a model {model!r}", "paceline list -o wide says what jobs train")
    if engine == KUBERNETES:  # There the name of a run consists of the namespace, the job's name and uids.
        model_runs = [dataclasses.replace(run, name=cluster_job(run.name)[1]) for run in model_runs]
    past = [
        PastRun(
            name=run.name,
            spec=run.spec,
            settings=past_runs.settings(run.source or specs.dump_job(run.spec)),
            submitted_at=run.submitted_at,
            examples_per_second=run.diagnosis.examples_per_second,
            used_cores=run.diagnosis.used_cores,
            auc=run.diagnosis.auc,
        )
        for run in model_runs
        if run.diagnosis is not None and run.diagnosis.examples_per_second
    ]
    return ModelTrend(model=model, runs=tuple(model_runs), regressions=judging.regressions(past))
