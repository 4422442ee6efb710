"""The events of runs, and the requests of users to the supervisors."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa

from paceline.model import roles
from paceline.model.jobs import runs
from paceline.stores import rows, tables


class Journals(rows.StorePart):
    """The events and the requests of a store's runs."""

    def append_events(self, name: str, events: Iterable[runs.JobEvent]) -> None:
        """Store events of a run.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written; none of the events was stored.
        """
        kept = list(events)
        with self._database.writing() as connection:
            insert_events(connection, rows.run_id(connection, name, lock=True), kept)

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, runs.JobEvent]]:
        """Return the events of a run in the order in which they were stored, each with its number.

        Args:
            name: the run's name.
            since_id: only events with a higher number. A follower passes the highest number that it has seen.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read.
        """
        columns = tables.events.c
        with self._database.reading() as connection:
            key = rows.run_id(connection, name)
            query = sa.select(tables.events).where(columns.run_id == key, columns.id > since_id)
            return [
                (
                    row.id,
                    runs.JobEvent(
                        at=row.at,
                        kind=row.kind,
                        message=row.message,
                        replica=None if row.replica is None else roles.ReplicaId.parse(row.replica),
                        attempt=row.attempt,
                    ),
                )
                for row in connection.execute(query.order_by(columns.id))
            ]

    def add_request(self, name: str, kind: str, *, at: float) -> None:
        """Store a request to a run's supervisor; ``at`` is in Unix seconds.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            connection.execute(sa.insert(tables.requests).values(run_id=key, kind=kind, at=at))

    def requests(self, name: str) -> list[runs.RunRequest]:
        """Return the requests that the run's supervisor has not answered yet, oldest first.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read.
        """
        with self._database.reading() as connection:
            return _requests(connection, rows.run_id(connection, name))


def insert_events(connection: sa.Connection, run: int, events: list[runs.JobEvent]) -> None:
    """Insert events of a run whose row is locked."""
    if events:
        values = [
            {
                "run_id": run,
                "at": event.at,
                "kind": event.kind,
                "message": event.message,
                "replica": None if event.replica is None else str(event.replica),
                "attempt": event.attempt,
            }
            for event in events
        ]
        connection.execute(sa.insert(tables.events), values)


def delete_requests(connection: sa.Connection, run: int, numbers: Collection[int]) -> None:
    """Delete requests of a run whose row is locked."""
    columns = tables.requests.c
    connection.execute(sa.delete(tables.requests).where(columns.run_id == run, columns.id.in_(numbers)))


def _requests(connection: sa.Connection, run: int) -> list[runs.RunRequest]:
    columns = tables.requests.c
    query = sa.select(columns.id, columns.kind, columns.at).where(columns.run_id == run).order_by(columns.id)
    return [runs.RunRequest(id=key, kind=kind, at=at) for key, kind, at in connection.execute(query)]
