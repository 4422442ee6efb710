"""Who changed what through a server; nothing of it is ever changed or removed with a job, only with age."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from paceline.model.jobs import audits
from paceline.stores import rows, tables


class Audits(rows.StorePart):
    """What was changed through a server."""

    def append_audit(self, audit: audits.Audit) -> None:
        """Keep who changed what.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            connection.execute(sa.insert(tables.audits).values(dataclasses.asdict(audit)))

    def forget_audits(self, *, before: float, most: int) -> int:
        """Remove who changed what before a moment (Unix seconds), and the oldest beyond a number.

        Returns:
            How many were removed.

        Raises:
            StoreError: the store cannot be written.
        """
        columns = tables.audits.c
        with self._database.writing() as connection:
            newest = sa.select(columns.id).order_by(columns.id.desc())
            last = connection.execute(newest.offset(most).limit(1)).scalar()
            old = columns.at < before
            condition = old if last is None else sa.or_(old, columns.id <= last)
            return connection.execute(sa.delete(tables.audits).where(condition)).rowcount

    def audits(
        self,
        *,
        scope: str = "",
        job: str | None = None,
        limit: int = 100,
        before_id: int | None = None,
    ) -> list[tuple[int, audits.Audit]]:
        """Return who changed what, the latest first, each with its number.

        Args:
            scope: only of jobs whose runs' names begin so.
            job: only of this one; None: of all.
            limit: at most so many.
            before_id: only what has a lower number: to page on, the caller gives the lowest that it has seen.

        Raises:
            StoreError: the store cannot be read.
        """
        columns = tables.audits.c
        query = sa.select(tables.audits).where(columns.scope == scope)
        if job is not None:
            query = query.where(columns.job == job)
        if before_id is not None:
            query = query.where(columns.id < before_id)
        with self._database.reading() as connection:
            return [
                (row.id, audits.Audit(**{k: v for k, v in row._mapping.items() if k != "id"}))
                for row in connection.execute(query.order_by(columns.id.desc()).limit(limit))
            ]
