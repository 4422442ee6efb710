"""The diagnosis summaries of runs: how each run did when it was last diagnosed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from paceline.model.explanations import diagnosis_summaries, findings
from paceline.stores import encodings, rows, tables

COLUMNS = tuple(column for column in tables.diagnosis_summaries.c if column.name != "run_id")


class DiagnosisSummaries(rows.StorePart):
    """The diagnosis summaries of a store's runs."""

    def save_diagnosis(self, name: str, summary: diagnosis_summaries.DiagnosisSummary) -> None:
        """Store the summary of a run and replace its previous one.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            save(connection, key, summary)

    def diagnosis(self, name: str) -> diagnosis_summaries.DiagnosisSummary | None:
        """Return the summary of a run; None if it was never diagnosed.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read.
        """
        with self._database.reading() as connection:
            key = rows.run_id(connection, name)
            query = sa.select(*COLUMNS).where(tables.diagnosis_summaries.c.run_id == key)
            row = connection.execute(query).one_or_none()
        return None if row is None else read(tuple(row), name)

    def diagnoses(self, prefix: str) -> dict[str, diagnosis_summaries.DiagnosisSummary]:
        """Return the summaries of the runs whose names start with ``prefix``, by run name.

        Raises:
            StoreError: the store cannot be read.
        """
        query = (
            sa.select(tables.runs.c.name, *COLUMNS)
            .join_from(tables.runs, tables.diagnosis_summaries)
            .where(tables.runs.c.name.startswith(prefix, autoescape=True))
        )
        with self._database.reading() as connection:
            found = {row.name: read(tuple(row)[1:], row.name) for row in connection.execute(query)}
        return {name: each for name, each in found.items() if each is not None}


def save(connection: sa.Connection, run: int, summary: diagnosis_summaries.DiagnosisSummary) -> None:
    """Store the summary of a run and replace its previous one, within the caller's transaction."""
    values = {column.name: rows.storable(getattr(summary, column.name)) for column in COLUMNS}
    values |= {"trend": json.dumps(summary.trend), "codes": " ".join(summary.codes)}
    connection.execute(
        sa.delete(tables.diagnosis_summaries).where(tables.diagnosis_summaries.c.run_id == run)
    )
    connection.execute(sa.insert(tables.diagnosis_summaries).values(run_id=run, **values))


def read(row: Sequence[Any], name: str) -> diagnosis_summaries.DiagnosisSummary | None:
    """Return the summary of run ``name`` from the values of ``COLUMNS``; None if the run has none."""
    values: dict[str, Any] = {column.name: each for column, each in zip(COLUMNS, row, strict=True)}
    if values["at"] is None:
        return None
    values |= {"trend": tuple(json.loads(values["trend"])), "codes": tuple(values["codes"].split())}
    if values["severity"] is not None:
        what = f"the summary of job {name!r}"
        values["severity"] = encodings.member(findings.Severity, values["severity"], what=what)
    return diagnosis_summaries.DiagnosisSummary(**values)
