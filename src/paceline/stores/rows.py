"""Finding the rows of a run and of its replicas, for the other modules of this package."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from paceline import errors
from paceline.model import roles
from paceline.stores import databases, tables

_LARGEST = 2**63 - 1


class StorePart:
    """A part of a store: some of its methods, all on one database."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database


def run_id(connection: sa.Connection, name: str, *, lock: bool = False) -> int:
    """Return the number of a run's row.

    Args:
        connection: within a transaction.
        name: the run's name.
        lock: keep other transactions that also lock from changing the run before this transaction ends.
            Events and requests get their numbers under this lock, so a follower that has seen one of them has
            seen all earlier ones.

    Raises:
        NotFound: there is no such run.
    """
    query = sa.select(tables.runs.c.id).where(tables.runs.c.name == name)
    found = connection.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise not_found(connection, name)
    return int(found)


def not_found(connection: sa.Connection, name: str) -> errors.NotFound:
    """Return the error for a run that does not exist; it suggests similar names."""
    import difflib

    names = list(connection.scalars(sa.select(tables.runs.c.name)))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else "List the jobs: paceline list"
    return errors.NotFound(f"there is no job {name!r} in the store", hint)


def replica_ids(
    connection: sa.Connection, name: str, wanted: Iterable[roles.ReplicaId]
) -> dict[roles.ReplicaId, int]:
    """Return the numbers of the rows of a run's replicas.

    Raises:
        NotFound: there is no such run, or it has no such replica.
    """
    needed = set(wanted)
    if not needed:
        return {}
    columns = tables.replicas.c
    query = sa.select(columns.role, columns.number, columns.id).where(
        columns.run_id == run_id(connection, name)
    )
    if len(needed) == 1:
        (only,) = needed
        query = query.where(columns.role == only.role, columns.number == only.index)
    found = {
        roles.ReplicaId(roles.Role(role), number): int(row) for role, number, row in connection.execute(query)
    }
    if missing := needed - found.keys():
        raise no_replica(name, min(missing))
    return found


def no_replica(name: str, replica: roles.ReplicaId) -> errors.NotFound:
    """Return the error for a replica that a run does not have."""
    return errors.NotFound(
        f"job {name!r} has no replica {replica}", f"look at its replicas: paceline get {name}"
    )


def storable(value: Any) -> Any:
    """Return a measured value, or None for an integer that exceeds 64 bits, which nothing really measures."""
    return None if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST else value
