"""Packing of measurements: rows become pieces, pieces become blocks, and a query reads all three.

The latest measurements of each replica and attempt are individual rows, so the last seconds are read with one
index lookup. When there are enough rows, the transaction that added the last of them packs all but the latest
into a piece. When the pieces hold enough measurements, they become a block. A measurement is in exactly one
place at any time. Pieces and blocks differ only in size. They have separate tables, because SQLite fills its
pages best in a table from which no rows in between are removed.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from paceline import errors
from paceline.model import roles
from paceline.model.measures import samples
from paceline.stores import blocks, tables

#: When the pieces of an owner hold this many measurements, they become a block.
BLOCK_ROWS = 600


class ColumnPacking(NamedTuple):
    """Where measurements of one kind are stored.

    Attributes:
        rows: table of the measurements that are not packed.
        pieces: table of the pieces, the small blocks.
        blocks: table of the blocks.
        kept: how many of the latest measurements always stay rows. `top` reads these every second.
        most: number of rows at which packing begins.
    """

    rows: sa.Table
    pieces: sa.Table
    blocks: sa.Table
    kept: int
    most: int


PACKINGS: Mapping[type, ColumnPacking] = {
    samples.Sample: ColumnPacking(
        tables.samples, tables.sample_pieces, tables.sample_blocks, kept=15, most=60
    ),
    samples.StepReport: ColumnPacking(
        tables.step_reports, tables.step_report_pieces, tables.step_report_blocks, kept=30, most=90
    ),
}


class Owner(NamedTuple):
    """The replica (the number of its row) and the attempt that measurements belong to."""

    replica: int
    attempt: int


@dataclasses.dataclass(frozen=True, slots=True)
class MeasurementChunk:
    """Some measurements of one replica and attempt, in the order of time."""

    owner: Owner
    replica: roles.ReplicaId
    columns: blocks.Columns


def names(kind: type) -> tuple[str, ...]:
    """Return the fields of a measurement that are measured: all but its replica and attempt."""
    fields = (field.name for field in dataclasses.fields(kind))
    return tuple(name for name in fields if name not in ("replica", "attempt"))


def pack(connection: sa.Connection, kind: type, owner: Owner) -> None:
    """Pack the older rows of an owner that has too many, within the transaction that added rows."""
    packing = PACKINGS.get(kind)
    if packing is None:
        return
    table = packing.rows.c
    mine = (table.replica_id == owner.replica, table.attempt == owner.attempt)
    count = connection.scalar(sa.select(sa.func.count()).select_from(packing.rows).where(*mine)) or 0
    if count < packing.most:
        return
    # Two writers of the same replica pack one after the other. This lock does not block transactions that
    # only insert rows that refer to the replica's row.
    replicas = tables.replicas.c
    mutex = sa.select(replicas.id).where(replicas.id == owner.replica).with_for_update(key_share=True)
    connection.execute(mutex)
    fields = names(kind)
    query = sa.select(table.id, *(table[name] for name in fields)).where(*mine)
    found = connection.execute(query.order_by(table.at, table.id)).all()
    packed = found[: -packing.kept]
    if not packed:
        return
    ids, *measured = zip(*packed, strict=True)
    insert(connection, packing.pieces, owner, dict(zip(fields, measured, strict=True)))
    _remove(connection, packing.rows, ids)
    _close(connection, packing, owner)


def _close(connection: sa.Connection, packing: ColumnPacking, owner: Owner) -> None:
    """Combine the pieces of an owner into blocks if they hold enough measurements."""
    table = packing.pieces
    mine = (table.c.replica_id == owner.replica, table.c.attempt == owner.attempt)
    if (connection.scalar(sa.select(sa.func.sum(table.c.measurements)).where(*mine)) or 0) < BLOCK_ROWS:
        return
    pieces = connection.execute(sa.select(table).where(*mine).order_by(table.c.first_at, table.c.id)).all()
    whole: list[blocks.Columns] = []
    for piece in pieces:
        try:
            whole.append(blocks.unpack(piece.data))
        except blocks.Damaged:
            # The damaged piece is moved unchanged, and a reader of it gets an error.
            values = {name: value for name, value in piece._mapping.items() if name != "id"}
            connection.execute(sa.insert(packing.blocks).values(values))
    if whole:
        insert(connection, packing.blocks, owner, joined(whole))
    _remove(connection, table, [piece.id for piece in pieces])


def insert(
    connection: sa.Connection, table: sa.Table, owner: Owner, columns: Mapping[str, Sequence[Any]]
) -> None:
    """Pack measurements and insert them, split into parts of about the size of a block."""
    for each in packed(columns):
        owned = {"replica_id": owner.replica, "attempt": owner.attempt, **each}
        connection.execute(sa.insert(table).values(owned))


def packed(columns: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield packed measurements as rows without an owner, split into parts of about the size of a block."""
    rows = len(columns["at"])
    size = math.ceil(rows / max(1, rows // BLOCK_ROWS))
    for start in range(0, rows, size):
        part = {name: numbers[start : start + size] for name, numbers in columns.items()}
        first_at, last_at = blocks.bounds(part)
        yield {
            "first_at": first_at,
            "last_at": last_at,
            "measurements": len(part["at"]),
            "data": blocks.pack(part),
        }


def _remove(connection: sa.Connection, table: sa.Table, ids: Sequence[int]) -> None:
    for start in range(0, len(ids), BLOCK_ROWS):
        connection.execute(sa.delete(table).where(table.c.id.in_(ids[start : start + BLOCK_ROWS])))


def joined(chunks: Sequence[blocks.Columns]) -> dict[str, Sequence[Any]]:
    """Return the columns of several chunks, each in the order of time, merged in this order."""
    if len(chunks) == 1:
        return dict(chunks[0])
    counts = [len(columns["at"]) for columns in chunks]
    every = dict.fromkeys(itertools.chain.from_iterable(chunks))
    merged_columns: dict[str, Sequence[Any]] = {}
    for name in every:
        numbers: list[Any] = []
        for columns, count in zip(chunks, counts, strict=True):
            numbers.extend(columns.get(name) or itertools.repeat(None, count))
        merged_columns[name] = numbers
    if any(after["at"][0] < before["at"][-1] for before, after in itertools.pairwise(chunks)):
        at = merged_columns["at"]
        order = sorted(range(len(at)), key=at.__getitem__)
        merged_columns = {
            name: [numbers[place] for place in order] for name, numbers in merged_columns.items()
        }
    return merged_columns


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementQuery:
    """A selection of a run's measurements: by replica, by role, from ``since`` on, before ``until``."""

    run: int
    replica: roles.ReplicaId | None = None
    role: roles.Role | None = None
    since: float | None = None
    until: float | None = None

    def owners(self) -> Iterator[sa.ColumnElement[bool]]:
        """Yield the SQL conditions that the wanted replicas meet."""
        owners = tables.replicas.c
        yield owners.run_id == self.run
        if self.replica is not None:
            yield owners.role == self.replica.role.value
            yield owners.number == self.replica.index
        if self.role is not None:
            yield owners.role == self.role.value

    def between(
        self, first: sa.ColumnElement[float], last: sa.ColumnElement[float]
    ) -> Iterator[sa.ColumnElement[bool]]:
        """Yield the SQL conditions for rows that overlap the wanted time, given their first and last time."""
        if self.since is not None:
            yield last >= self.since
        if self.until is not None:
            yield first < self.until

    def within(self, columns: blocks.Columns) -> blocks.Columns:
        """Return the measurements within the wanted time; ``columns`` are in the order of time."""
        at = columns["at"]
        start = 0 if self.since is None else bisect.bisect_left(at, self.since)
        end = len(at) if self.until is None else bisect.bisect_left(at, self.until)
        if end - start == len(at):
            return columns
        return {name: numbers[start:end] for name, numbers in columns.items()}


def chunks(connection: sa.Connection, kind: type, wanted: MeasurementQuery) -> Iterator[MeasurementChunk]:
    """Yield the wanted measurements of pieces and blocks, sorted by owner and then by time.

    Raises:
        StoreError: a block is damaged; the message says which.
    """
    packing, owners = PACKINGS[kind], tables.replicas.c
    packed = sa.union_all(
        *(
            sa.select(
                owners.role,
                owners.number,
                table.c.replica_id,
                table.c.attempt,
                table.c.first_at,
                table.c.data,
            )
            .select_from(tables.replicas.join(table, table.c.replica_id == owners.id))
            .where(*wanted.owners(), *wanted.between(table.c.first_at, table.c.last_at))
            for table in (packing.blocks, packing.pieces)
        )
    ).subquery()
    order = (packed.c.replica_id, packed.c.attempt, packed.c.first_at)
    query = sa.select(packed).order_by(*order)
    for role, number, replica_id, attempt, first_at, data in connection.execute(query):
        replica = roles.ReplicaId(roles.Role(role), number)
        try:
            columns = wanted.within(blocks.unpack(data))
        except blocks.Damaged as error:
            raise errors.StoreError(
                f"measurements of {replica} (attempt {attempt}) from {first_at:.0f} on are damaged in the "
                f"store: {error}",
                "Restore the store from a copy, or ask for another time or another replica.",
            ) from error
        if columns["at"]:
            yield MeasurementChunk(Owner(replica_id, attempt), replica, columns)


def latest(kind: type, found: Iterable[Sequence[Any]]) -> dict[Owner, MeasurementChunk]:
    """Return the measurements of unpacked rows as chunks, by owner.

    Args:
        kind: type of the measurements.
        found: rows in the order of time: role and index of the replica, number of its row, attempt, and then
            the measured fields.
    """
    fields = names(kind)
    by_owner: dict[tuple[Any, ...], list[Sequence[Any]]] = {}
    for role, number, replica, attempt, *measured in found:
        by_owner.setdefault((role, number, Owner(replica, attempt)), []).append(measured)
    return {
        owner: MeasurementChunk(
            owner,
            roles.ReplicaId(roles.Role(role), number),
            dict(zip(fields, zip(*measured, strict=True), strict=True)),
        )
        for (role, number, owner), measured in by_owner.items()
    }


def by_owner(
    found: Iterable[MeasurementChunk], latest: Mapping[Owner, MeasurementChunk]
) -> Iterator[MeasurementChunk]:
    """Yield one chunk for each owner.

    Args:
        found: packed chunks; the chunks of an owner are adjacent.
        latest: the chunk of each owner that follows its packed chunks.
    """
    left = dict(latest)
    for owner, of in itertools.groupby(found, key=lambda chunk: chunk.owner):
        parts = list(of)
        if owner in left:
            parts.append(left.pop(owner))
        yield MeasurementChunk(owner, parts[0].replica, joined([part.columns for part in parts]))
    yield from left.values()
