"""Lists of the models that the runs of a store train, and of the runs of one model, for trends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from paceline.model.jobs import job_specs, statuses
from paceline.model.studies import trained_models
from paceline.stores import diagnosis_summaries, encodings, rows, tables

#: How many of the newest runs, of all models together, a list of models reads the results of.
_LOOKED_AT = 5000


class ModelLists(rows.StorePart):
    """The models of a store."""

    def models(self, *, engine: str, prefix: str = "", limit: int) -> list[trained_models.TrainedModel]:
        """Return the most recently trained models, each with the results of its newest runs.

        Args:
            engine: only runs of this engine.
            prefix: only runs whose names start with this text.
            limit: maximum number of models.

        Raises:
            StoreError: the store cannot be read.
        """
        run, summary = tables.runs.c, tables.diagnosis_summaries.c
        conditions = tuple(_conditions(engine, prefix))
        count = sa.func.count()
        last = sa.func.max(run.submitted_at)
        query = sa.select(run.model, count, last).where(run.model != "", *conditions).group_by(run.model)
        newest = (
            sa.select(run.model, summary.examples_per_second, summary.used_cores, summary.auc)
            .join_from(tables.runs, tables.diagnosis_summaries)
            .where(*conditions)
            .order_by(run.submitted_at.desc(), run.id.desc())
            .limit(_LOOKED_AT)
        )
        with self._database.reading() as connection:
            found = connection.execute(query.order_by(last.desc(), run.model).limit(limit)).all()
            told: dict[str, list[trained_models.Told]] = {}
            for model, *numbers in connection.execute(newest):
                told.setdefault(model, []).append(trained_models.Told(*numbers))
        return [
            trained_models.TrainedModel(name=model, runs=number, last_at=at, told=tuple(told.get(model, ())))
            for model, number, at in found
        ]

    def runs_of_model(
        self, model: str, *, engine: str, prefix: str = "", limit: int
    ) -> list[trained_models.ModelRun]:
        """Return the newest runs that train a model, the oldest first.

        Args:
            model: name of the model.
            engine: only runs of this engine.
            prefix: only runs whose names start with this text.
            limit: maximum number of runs.

        Raises:
            StoreError: the store cannot be read, or a newer program wrote a run.
        """
        own = tables.runs.c
        query = (
            sa.select(
                own.name, own.submitted_at, own.phase, own.source, own.spec, *diagnosis_summaries.COLUMNS
            )
            .join_from(tables.runs, tables.diagnosis_summaries, isouter=True)
            .where(own.model == model, *_conditions(engine, prefix))
            .order_by(own.submitted_at.desc(), own.id.desc())
            .limit(limit)
        )
        with self._database.reading() as connection:
            found = connection.execute(query).all()
        return [_trained(tuple(row)) for row in reversed(found)]


def _conditions(engine: str, prefix: str) -> Iterator[sa.ColumnElement[bool]]:
    yield tables.runs.c.engine == engine
    if prefix:
        yield tables.runs.c.name.startswith(prefix, autoescape=True)


def _trained(row: tuple[Any, ...]) -> trained_models.ModelRun:
    name, at, phase, source, spec, *summary = row
    what = f"job {name!r}"
    return trained_models.ModelRun(
        name=name,
        submitted_at=at,
        phase=encodings.member(statuses.JobPhase, phase, what=what),
        source=source.decode("utf-8", "surrogatepass"),
        spec=encodings.decode(job_specs.JobSpec, spec, what=what),
        diagnosis=diagnosis_summaries.read(summary, name),
    )
