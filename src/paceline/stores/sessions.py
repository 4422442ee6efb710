"""The sessions of browsers at servers: what each began with, sealed by a key that is not in the store."""

from __future__ import annotations

import sqlalchemy as sa

from paceline.stores import rows, tables


class BrowserSessions(rows.StorePart):
    """Sessions that have begun and not ended."""

    def begin_session(
        self, name: str, *, who: str, sealed: bytes, at: float, ends_at: float, most: int
    ) -> None:
        """Keep a session; those that have ended go, and of its caller those before the newest.

        Args:
            name: what it is found by.
            who: the name of its caller.
            sealed: what it began with.
            at: now.
            ends_at: when it ends.
            most: how many of a caller are kept.

        Raises:
            StoreError: the store cannot be written.
        """
        columns = tables.sessions.c
        values = {"name": name, "who": who, "sealed": sealed, "began_at": at, "ends_at": ends_at}
        of_caller = sa.select(columns.name).where(columns.who == who).order_by(columns.began_at.desc())
        with self._database.writing() as connection:
            connection.execute(sa.insert(tables.sessions).values(values))
            connection.execute(sa.delete(tables.sessions).where(columns.ends_at <= at))
            old = connection.scalars(of_caller.offset(most)).all()
            if old:
                connection.execute(sa.delete(tables.sessions).where(columns.name.in_(old)))

    def session(self, name: str, *, at: float) -> bytes | None:
        """Return what a session began with; None: there is none, or it has ended.

        Raises:
            StoreError: the store cannot be read.
        """
        columns = tables.sessions.c
        query = sa.select(columns.sealed).where(columns.name == name, columns.ends_at > at)
        with self._database.reading() as connection:
            found = connection.scalar(query)
        return None if found is None else bytes(found)

    def end_session(self, name: str) -> None:
        """End a session, if there is one.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            connection.execute(sa.delete(tables.sessions).where(tables.sessions.c.name == name))
