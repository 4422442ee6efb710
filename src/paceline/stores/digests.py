"""The digests of runs: how each run did when it was last diagnosed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from paceline.model.explanations import findings, job_summaries
from paceline.stores import encodings, rows, tables

COLUMNS = tuple(column for column in tables.digests.c if column.name != "run_id")


class Digests(rows.StorePart):
    """The digests of a store's runs."""

    def save_digest(self, name: str, digest: job_summaries.Digest) -> None:
        """Store the digest of a run and replace its previous one.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            save(connection, key, digest)

    def digest(self, name: str) -> job_summaries.Digest | None:
        """Return the digest of a run; None if it was never diagnosed.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read.
        """
        with self._database.reading() as connection:
            key = rows.run_id(connection, name)
            query = sa.select(*COLUMNS).where(tables.digests.c.run_id == key)
            row = connection.execute(query).one_or_none()
        return None if row is None else read(tuple(row), name)

    def digests(self, prefix: str) -> dict[str, job_summaries.Digest]:
        """Return the digests of the runs whose names start with ``prefix``, by run name.

        Raises:
            StoreError: the store cannot be read.
        """
        query = (
            sa.select(tables.runs.c.name, *COLUMNS)
            .join_from(tables.runs, tables.digests)
            .where(tables.runs.c.name.startswith(prefix, autoescape=True))
        )
        with self._database.reading() as connection:
            found = {row.name: read(tuple(row)[1:], row.name) for row in connection.execute(query)}
        return {name: each for name, each in found.items() if each is not None}


def save(connection: sa.Connection, run: int, digest: job_summaries.Digest) -> None:
    """Store the digest of a run and replace its previous one, within the caller's transaction."""
    values = {column.name: rows.storable(getattr(digest, column.name)) for column in COLUMNS}
    values |= {"trend": json.dumps(digest.trend), "codes": " ".join(digest.codes)}
    connection.execute(sa.delete(tables.digests).where(tables.digests.c.run_id == run))
    connection.execute(sa.insert(tables.digests).values(run_id=run, **values))


def read(row: Sequence[Any], name: str) -> job_summaries.Digest | None:
    """Return the digest of run ``name`` from the values of ``COLUMNS``; None if the run has none."""
    values: dict[str, Any] = {column.name: each for column, each in zip(COLUMNS, row, strict=True)}
    if values["at"] is None:
        return None
    values |= {"trend": tuple(json.loads(values["trend"])), "codes": tuple(values["codes"].split())}
    if values["severity"] is not None:
        what = f"the digest of job {name!r}"
        values["severity"] = encodings.member(findings.Severity, values["severity"], what=what)
    return job_summaries.Digest(**values)
