"""Thinning out the measurements of finished runs: those of a minute become one, or all are removed.

A transaction covers only some blocks of one replica, so no process waits long for another. If the process is
killed, its finished transactions stay, and the next call does the rest: combined measurements stay unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from paceline.errors import Conflict
from paceline.model.jobs.runs import Detail
from paceline.model.jobs.statuses import JobPhase
from paceline.stores import blocks, combinations, packings, rows, tables

EVERY_SECONDS = 60.0
#: How many pieces or blocks one transaction combines; a block has about 600 measurements.
_TOGETHER = 40


class Thinnings(rows.StorePart):
    """Reducing the detail of a store's runs."""

    def thin(self, name: str, detail: Detail) -> None:
        """Reduce the stored measurements of a run that has ended.

        For ``MINUTES``, the latest measurements of each replica stay unchanged, because they are not packed.

        Raises:
            Conflict: the run has not ended.
            NotFound: there is no such run.
            StoreError: the store cannot be read or written.
        """
        if detail is Detail.FULL:
            return
        for owner in self._owners(name):
            for kind, packing in packings.PACKINGS.items():
                if detail is Detail.SUMMARY:
                    for table in (packing.blocks, packing.pieces, packing.rows):
                        self._remove(name, table, owner)
                    continue
                for table in (packing.blocks, packing.pieces):
                    for numbers in self._chunks(table, owner):
                        self._combine(name, kind, table, owner, numbers)

    def set_detail(self, name: str, detail: Detail, note: str) -> None:
        """Record how much detail is kept of a run that has ended, and add a note about it to the run.

        Raises:
            Conflict, NotFound, StoreError: as ``thin``.
        """
        columns = tables.runs.c
        with self._database.writing() as connection:
            key = _ended(connection, name)
            notes = json.loads(connection.scalar(sa.select(columns.notes).where(columns.id == key)) or "[]")
            values = {"detail": detail.value, "notes": json.dumps([*notes, note])}
            connection.execute(sa.update(tables.runs).where(columns.id == key).values(values))

    def size_bytes(self) -> int:
        """Return the size of the database, including free space in it.

        Raises:
            StoreError: the store cannot be read.
        """
        with self._database.reading() as connection:
            if connection.dialect.name == "postgresql":
                found = connection.scalar(sa.text("SELECT pg_database_size(current_database())"))
            else:
                pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
                found = int(pages or 0) * int(connection.exec_driver_sql("PRAGMA page_size").scalar() or 0)
        return int(found or 0)

    def detail_counts(self, *, engine: str, prefix: str = "") -> dict[str, int]:
        """Return the number of finished runs for each level of detail.

        Args:
            engine: only runs of this engine.
            prefix: only runs whose names start with this text.

        Raises:
            StoreError: the store cannot be read.
        """
        columns = tables.runs.c
        query = (
            sa.select(columns.detail, sa.func.count())
            .where(columns.engine == engine, columns.finished_at.is_not(None))
            .where(columns.name.startswith(prefix, autoescape=True))
            .group_by(columns.detail)
        )
        with self._database.reading() as connection:
            found = {detail: int(count) for detail, count in connection.execute(query)}
        return {detail.value: found.get(detail.value, 0) for detail in Detail}

    def _owners(self, name: str) -> list[packings.Owner]:
        replicas = tables.replicas.c
        with self._database.reading() as connection:
            key = rows.run_id(connection, name)
            mine = sa.select(replicas.id).where(replicas.run_id == key).subquery()
            found = sa.union(
                *(
                    sa.select(table.c.replica_id, table.c.attempt).where(
                        table.c.replica_id.in_(sa.select(mine))
                    )
                    for packing in packings.PACKINGS.values()
                    for table in (packing.rows, packing.pieces, packing.blocks)
                )
            )
            return sorted(packings.Owner(*each) for each in connection.execute(found))

    def _chunks(self, table: sa.Table, owner: packings.Owner) -> Iterator[Sequence[int]]:
        """Yield groups of row numbers in the order of time; each group is combined in one transaction."""
        query = sa.select(table.c.id).where(*_of(table, owner)).order_by(table.c.first_at, table.c.id)
        with self._database.reading() as connection:
            found = list(connection.scalars(query))
        for start in range(0, len(found), _TOGETHER):
            yield found[start : start + _TOGETHER]

    def _combine(
        self, name: str, kind: type, table: sa.Table, owner: packings.Owner, numbers: Sequence[int]
    ) -> None:
        """Combine the measurements of some rows; a damaged row stays, so that its reader gets an error."""
        query = sa.select(table.c.id, table.c.data).where(table.c.id.in_(numbers))
        with self._database.reading() as connection:
            packed_rows = connection.execute(query.order_by(table.c.first_at, table.c.id)).all()
        readable_numbers, whole = [], []
        for number, data in packed_rows:
            try:
                whole.append(blocks.unpack(data))
            except blocks.Damaged:
                continue
            readable_numbers.append(number)
        if not whole:
            return
        columns = packings.joined(whole)
        fewer = combinations.combined(columns, EVERY_SECONDS)
        if len(fewer["at"]) == len(columns["at"]):
            return
        with self._database.writing() as connection:
            _ended(connection, name)
            removed = connection.execute(sa.delete(table).where(table.c.id.in_(readable_numbers))).rowcount
            if removed != len(readable_numbers):
                raise Conflict(f"another process thins {name} out, too")
            packings.insert(connection, packings.PACKINGS[kind].blocks, owner, fewer)

    def _remove(self, name: str, table: sa.Table, owner: packings.Owner) -> None:
        with self._database.writing() as connection:
            _ended(connection, name)
            connection.execute(sa.delete(table).where(*_of(table, owner)))


def _of(table: sa.Table, owner: packings.Owner) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.replica_id == owner.replica, table.c.attempt == owner.attempt


def _ended(connection: sa.Connection, name: str) -> int:
    """Return the number of a run's row, which stays locked until the transaction ends.

    Raises:
        Conflict: the run has not ended.
        NotFound: there is no such run.
    """
    key = rows.run_id(connection, name, lock=True)
    phase = connection.scalar(sa.select(tables.runs.c.phase).where(tables.runs.c.id == key))
    if phase is None or not JobPhase(phase).is_final:
        raise Conflict(f"{name} goes on: {phase}")
    return key
