"""Probes of runs: a probe is one value, saved as a whole after each cut."""

from __future__ import annotations

import sqlalchemy as sa

from paceline.model.measures import probes
from paceline.stores import encodings, rows, tables

#: How many probes of a run are kept; the newest ones stay.
MOST_PROBES = 100


class StoredProbes(rows.StorePart):
    """The probes of a store's runs."""

    def save_probe(self, name: str, probe: probes.Probe) -> None:
        """Store the current state of a probe of a run and replace its previous state.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written; the previous state is unchanged.
        """
        columns = tables.probes.c
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            known = sa.select(columns.id).where(columns.run_id == key, columns.began_at == probe.began_at)
            own, data = connection.scalar(known), encodings.encode(probe)
            if own is not None:
                connection.execute(sa.update(tables.probes).where(columns.id == own).values(data=data))
                return
            insert(connection, key, probe)
            newest = sa.select(columns.id).where(columns.run_id == key).order_by(columns.id.desc())
            kept = connection.scalars(newest.limit(MOST_PROBES)).all()
            old = (columns.run_id == key) & (columns.id < min(kept))
            connection.execute(sa.delete(tables.probes).where(old))

    def probes(self, name: str) -> list[probes.Probe]:
        """Return the probes of a run, the oldest first.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read, or a newer program wrote them.
        """
        columns = tables.probes.c
        with self._database.reading() as connection:
            key = rows.run_id(connection, name)
            query = sa.select(columns.data).where(columns.run_id == key).order_by(columns.id)
            found = connection.scalars(query).all()
        return [encodings.decode(probes.Probe, each, what=f"a probe of {name!r}") for each in found]


def insert(connection: sa.Connection, run: int, probe: probes.Probe) -> None:
    """Insert a probe of a run whose row is locked."""
    values = {"run_id": run, "began_at": probe.began_at, "data": encodings.encode(probe)}
    connection.execute(sa.insert(tables.probes).values(values))
