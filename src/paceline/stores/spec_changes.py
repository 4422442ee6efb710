"""Changes of specs: the job files with which runs continue, or have continued, after a change."""

from __future__ import annotations

import sqlalchemy as sa

from paceline import errors
from paceline.model.jobs import runs
from paceline.stores import rows, tables


class SpecChanges(rows.StorePart):
    """The changes of a store's runs."""

    def request_change(self, name: str, source: str, *, at: float) -> None:
        """Ask a run to stop and to continue with another job file; both requests are stored, or neither.

        Args:
            name: the run's name.
            source: the new job file.
            at: current time (Unix seconds).

        Raises:
            Conflict: a change of the run is already waiting.
            NotFound: there is no such run.
            StoreError: the store cannot be written.
        """
        columns = tables.spec_changes.c
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            waiting = sa.select(columns.id).where(columns.run_id == key, columns.done_at.is_(None))
            if connection.scalar(waiting) is not None:
                raise errors.Conflict(
                    f"{name} is being changed already", f"when it runs again: paceline wait {name}"
                )
            before = connection.scalar(sa.select(tables.runs.c.source).where(tables.runs.c.id == key))
            _insert(connection, key, source, before or b"", at)
            connection.execute(sa.insert(tables.requests).values(run_id=key, kind=runs.STOP, at=at))

    def note_change(self, name: str, source: str, *, before: str, at: float) -> None:
        """Note the new job file of a run that another component, such as the operator, restarts.

        Args:
            name: the run's name.
            source: the new job file.
            before: the previous job file.
            at: when the change was requested (Unix seconds).

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            _insert(connection, key, source, before.encode("utf-8", "surrogatepass"), at)

    def settle_change(self, name: str, *, at: float) -> None:
        """Note that a run has continued with the new job file at ``at``; raises as ``note_change`` does."""
        with self._database.writing() as connection:
            settle(connection, rows.run_id(connection, name, lock=True), at)

    def spec_changes(self, name: str) -> list[runs.SpecChange]:
        """Return the changes of a run, the oldest first.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read.
        """
        with self._database.reading() as connection:
            key = rows.run_id(connection, name)
            query = sa.select(tables.spec_changes).where(tables.spec_changes.c.run_id == key)
            return [
                runs.SpecChange(
                    id=row.id,
                    asked_at=row.asked_at,
                    source=row.source.decode("utf-8", "surrogatepass"),
                    before=row.before.decode("utf-8", "surrogatepass"),
                    done_at=row.done_at,
                )
                for row in connection.execute(query.order_by(tables.spec_changes.c.id))
            ]

    def waiting_change(self, name: str) -> runs.SpecChange | None:
        """Return the change that takes effect when the run has ended, or None; raises as `spec_changes`."""
        return next((each for each in self.spec_changes(name) if each.done_at is None), None)

    def drop_change(self, name: str) -> None:
        """Remove the waiting change of a run, because the run cannot continue with it.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            drop(connection, rows.run_id(connection, name, lock=True))


def _insert(
    connection: sa.Connection,
    run: int,
    source: str,
    before: bytes,
    at: float,
    *,
    done_at: float | None = None,
) -> None:
    made = {"source": source.encode("utf-8", "surrogatepass"), "before": before, "done_at": done_at}
    connection.execute(sa.insert(tables.spec_changes).values(run_id=run, asked_at=at, **made))


def note_done(connection: sa.Connection, run: int, source: str, at: float) -> None:
    """Note that a run got another job file without stopping; its locked row still has the previous file."""
    before = connection.scalar(sa.select(tables.runs.c.source).where(tables.runs.c.id == run))
    _insert(connection, run, source, before or b"", at, done_at=at)


def settle(connection: sa.Connection, run: int, at: float) -> None:
    """Note that a run continues with the requested job file; the run's row is locked."""
    columns = tables.spec_changes.c
    connection.execute(
        sa.update(tables.spec_changes)
        .where(columns.run_id == run, columns.done_at.is_(None))
        .values(done_at=at)
    )


def drop(connection: sa.Connection, run: int) -> None:
    """Remove the waiting change of a run whose row is locked."""
    columns = tables.spec_changes.c
    connection.execute(sa.delete(tables.spec_changes).where(columns.run_id == run, columns.done_at.is_(None)))
