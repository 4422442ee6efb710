"""The conclusions of runs: the findings of the diagnosis made after a run has ended."""

from __future__ import annotations

import sqlalchemy as sa

from paceline.model.explanations import causes, conclusions, diagnosis_summaries
from paceline.model.jobs import statuses
from paceline.stores import diagnosis_summaries as summary_rows
from paceline.stores import encodings, rows, tables

_FINAL = tuple(phase.value for phase in statuses.JobPhase if phase.is_final)


class Conclusions(rows.StorePart):
    """The conclusions of a store's runs."""

    def conclude(
        self, name: str, conclusion: conclusions.Conclusion, summary: diagnosis_summaries.DiagnosisSummary
    ) -> bool:
        """Store the conclusion and the diagnosis summary of an ended run, unless it has a conclusion.

        Returns:
            Whether they were stored: False if the run is running again or has a conclusion already.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written.
        """
        known = tables.conclusions
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            phase = connection.scalar(sa.select(tables.runs.c.phase).where(tables.runs.c.id == key))
            done = connection.scalar(sa.select(known.c.run_id).where(known.c.run_id == key))
            if phase not in _FINAL or done is not None:
                return False
            insert(connection, key, conclusion)
            summary_rows.save(connection, key, summary)
        return True

    def conclusion(self, name: str) -> conclusions.Conclusion | None:
        """Return the conclusion of a run; None if the run has not ended or has no conclusion yet.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read, or a newer program wrote the conclusion.
        """
        known = tables.conclusions.c
        with self._database.reading() as connection:
            key = rows.run_id(connection, name)
            row = connection.execute(sa.select(tables.conclusions).where(known.run_id == key)).one_or_none()
        if row is None:
            return None
        what = f"what was found in job {name!r}"
        found = encodings.decode(causes.Explanation, row.explanation, what=what)
        return conclusions.Conclusion(at=row.at, version=row.version, explanation=found)

    def unconcluded(
        self, *, ended_before: float, engine: str | None = None, limit: int | None = None
    ) -> list[str]:
        """Return the names of runs that have ended and have no conclusion, the latest end first.

        Args:
            ended_before: only runs that ended at or before this time (Unix seconds).
            engine: only runs of this engine; None: runs of all engines.
            limit: maximum number of runs; None: no maximum.

        Raises:
            StoreError: the store cannot be read.
        """
        runs = tables.runs.c
        query = (
            sa.select(runs.name)
            .join_from(tables.runs, tables.conclusions, isouter=True)
            .where(
                runs.phase.in_(_FINAL),
                runs.finished_at <= ended_before,
                tables.conclusions.c.run_id.is_(None),
            )
            .order_by(runs.finished_at.desc(), runs.id.desc())
            .limit(limit)
        )
        if engine is not None:
            query = query.where(runs.engine == engine)
        with self._database.reading() as connection:
            return list(connection.scalars(query))


def insert(connection: sa.Connection, run: int, conclusion: conclusions.Conclusion) -> None:
    """Insert the conclusion of a run, within the caller's transaction."""
    encoded = encodings.encode(conclusion.explanation)
    values = {"at": conclusion.at, "version": conclusion.version, "explanation": encoded}
    connection.execute(sa.insert(tables.conclusions).values(run_id=run, **values))
