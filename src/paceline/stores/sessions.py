"""The sessions of browsers at servers. The data of a session are sealed by a key that is not in the store."""

from __future__ import annotations

import sqlalchemy as sa

from paceline.stores import rows, tables


class BrowserSessions(rows.StorePart):
    """The browser sessions of a store."""

    def begin_session(
        self, name: str, *, who: str, sealed: bytes, at: float, ends_at: float, most: int
    ) -> None:
        """Store a session; remove all ended sessions and the oldest surplus sessions of the caller.

        Args:
            name: identifier by which the session is looked up.
            who: name of the caller.
            sealed: the sealed data of the session.
            at: current time (Unix seconds).
            ends_at: when the session ends (Unix seconds).
            most: how many sessions of a caller are kept.

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
        """Return the sealed data of a session; None if it does not exist or has ended.

        Raises:
            StoreError: the store cannot be read.
        """
        columns = tables.sessions.c
        query = sa.select(columns.sealed).where(columns.name == name, columns.ends_at > at)
        with self._database.reading() as connection:
            found = connection.scalar(query)
        return None if found is None else bytes(found)

    def end_session(self, name: str) -> None:
        """End a session, if it exists.

        Raises:
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            connection.execute(sa.delete(tables.sessions).where(tables.sessions.c.name == name))
