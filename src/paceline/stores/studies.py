"""Studies of many runs and their progress: a study is one value, saved as a whole after each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import sqlalchemy as sa

from paceline import errors
from paceline.stores import encodings, rows, tables

if TYPE_CHECKING:
    from paceline.model.studies.experiments import Experiment
    from paceline.model.studies.tunings import Tuning

_OTHER = "give it another name"


class Studies(rows.StorePart):
    """The studies of a store."""

    def save_study(self, study: Tuning | Experiment, *, at: float) -> None:
        """Store the current state of a study and replace its previous state.

        Raises:
            Conflict: the name belongs to a study of another kind.
            StoreError: the store cannot be written; the previous state is unchanged.
        """
        kind = next(kind for kind, of in _classes().items() if isinstance(study, of))
        columns = tables.studies.c
        data = {"changed_at": at, "data": encodings.encode(study)}
        with self._database.writing() as connection:
            known = connection.scalar(sa.select(columns.kind).where(columns.name == study.name))
            if known is None:
                connection.execute(sa.insert(tables.studies).values(name=study.name, kind=kind, **data))
            elif known != kind:
                raise errors.Conflict(f"{study.name!r} is the name of another kind of study: {known}", _OTHER)
            else:
                connection.execute(sa.update(tables.studies).where(columns.name == study.name).values(data))

    def tuning(self, name: str) -> Tuning:
        """Return a tuning.

        Raises:
            NotFound: there is no tuning of that name.
            StoreError: the store cannot be read.
        """
        return cast("Tuning", self._load("tuning", name, "paceline tune FILE --trials 6"))

    def experiment(self, name: str) -> Experiment:
        """Return an experiment.

        Raises:
            NotFound: there is no experiment of that name.
            StoreError: the store cannot be read.
        """
        return cast("Experiment", self._load("experiment", name, "paceline experiment run FILE"))

    def study(self, name: str) -> Tuning | Experiment:
        """Return a study of either kind.

        Raises:
            NotFound: there is no study of that name.
            StoreError: the store cannot be read.
        """
        columns = tables.studies.c
        with self._database.reading() as connection:
            query = sa.select(columns.kind, columns.data).where(columns.name == name)
            found = connection.execute(query).one_or_none()
        if found is None:
            raise errors.NotFound(f"there is no study {name!r} in the store", "paceline experiment run FILE")
        return _decoded(found.kind, found.data, name)

    def studies(self, *, limit: int) -> list[tuple[float, Tuning | Experiment]]:
        """Return the studies, each with the time of its last change; the latest change comes first.

        Args:
            limit: maximum number of studies.

        Raises:
            StoreError: the store cannot be read.
        """
        columns = tables.studies.c
        query = sa.select(tables.studies).order_by(columns.changed_at.desc(), columns.name).limit(limit)
        with self._database.reading() as connection:
            found = connection.execute(query).all()
        return [(each.changed_at, _decoded(each.kind, each.data, each.name)) for each in found]

    def _load(self, kind: str, name: str, hint: str) -> Tuning | Experiment:
        with self._database.reading() as connection:
            query = sa.select(tables.studies.c.data).where(
                tables.studies.c.name == name, tables.studies.c.kind == kind
            )
            data = connection.scalar(query)
        if data is None:
            raise errors.NotFound(f"there is no {kind} {name!r} in the store", hint)
        return _decoded(kind, data, name)


def _decoded(kind: str, data: str, name: str) -> Tuning | Experiment:
    return encodings.decode(_classes()[kind], data, what=f"the {kind} {name!r}")


def _classes() -> Mapping[str, type[Tuning] | type[Experiment]]:
    """Return the class of each kind of study, by the name of the kind."""
    # Every command opens a store, but few read studies. Importing these always would cost 2 % of each
    # command.
    from paceline.model.studies.experiments import Experiment
    from paceline.model.studies.tunings import Tuning

    return {"tuning": Tuning, "experiment": Experiment}
