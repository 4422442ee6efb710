"""The audit log of changes made through a server.

Entries are never changed. They outlive their jobs: only their age or their number removes them.
"""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from paceline.model.jobs import audits
from paceline.stores import rows, tables


class Audits(rows.StorePart):
    """The audit log of a store."""

    def append_audit(self, audit: audits.Audit) -> None:
        """Store an audit entry.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            connection.execute(sa.insert(tables.audits).values(dataclasses.asdict(audit)))

    def forget_audits(self, *, before: float, most: int) -> int:
        """Remove the entries from before a time (Unix seconds), and the oldest entries above a number.

        Args:
            before: entries from before this time are removed.
            most: how many entries are kept at most.

        Returns:
            How many entries were removed.

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
        """Return audit entries, the latest first, each with its number.

        Args:
            scope: only entries of this scope: the prefix of a namespace's run names in the store.
            job: only entries of this job; None: entries of all jobs.
            limit: maximum number of entries.
            before_id: only entries with a lower number. To get the next page, pass the lowest number seen.

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
