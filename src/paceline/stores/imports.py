"""Import of whole runs from recordings: packed first, then stored in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from paceline.control import states
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.stores import conclusions as conclusion_rows
from paceline.stores import diagnosis_summaries as summary_rows
from paceline.stores import journals, measurements, packings, probes, rows, runs, tables

if TYPE_CHECKING:
    from paceline.model.explanations import conclusions, diagnosis_summaries
    from paceline.model.measures import recordings


class _Packed(NamedTuple):
    """The older measurements of one kind of a replica and attempt, as rows for a table of blocks."""

    table: sa.Table
    replica: ReplicaId
    values: Sequence[Mapping[str, Any]]


class Imports(rows.StorePart):
    """Import of recordings into a store."""

    def import_run(
        self,
        recording: recordings.Recording,
        state: states.JobState,
        conclusion: conclusions.Conclusion,
        summary: diagnosis_summaries.DiagnosisSummary,
    ) -> None:
        """Store a run with everything that its recording holds, or nothing.

        Args:
            recording: recording of a run that has ended.
            state: state of the run and its replicas.
            conclusion: conclusion of the run.
            summary: what lists show.

        Raises:
            Conflict: there is a run of that name.
            NotFound: a measurement belongs to a replica that the run does not have.
            StoreError: the store cannot be written.
        """
        name = recording.run.name
        packed, latest = _packed(recording)
        with self._database.writing() as connection:
            key = runs.insert_run(connection, recording.run, state)
            ids = rows.replica_ids(connection, name, {row.replica for row in recording.replicas})
            facts = [
                {
                    "row": ids[row.replica],
                    "host": row.host,
                    "address": row.address,
                    "cores": json.dumps(row.cores),
                }
                for row in recording.replicas
            ]
            if facts:
                update = sa.update(tables.replicas).where(tables.replicas.c.id == sa.bindparam("row"))
                named: dict[str, Any] = {
                    column: sa.bindparam(column) for column in ("host", "address", "cores")
                }
                connection.execute(update.values(named), facts)
            for packed_rows in packed:
                owned = [
                    {"replica_id": _owner(ids, packed_rows.replica, name), **row}
                    for row in packed_rows.values
                ]
                connection.execute(sa.insert(packed_rows.table), owned)
            for batch in (*latest, list(recording.evaluations)):
                owners = {value.replica: _owner(ids, value.replica, name) for value in batch}
                measurements.insert(connection, batch, owners)
            journals.insert_events(connection, key, list(recording.events))
            for change in recording.changes:
                files = {
                    "source": runs.source_bytes(change.source),
                    "before": runs.source_bytes(change.before),
                }
                times = {"asked_at": change.asked_at, "done_at": change.done_at}
                connection.execute(sa.insert(tables.spec_changes).values(run_id=key, **files, **times))
            for probe in {recorded.began_at: recorded for recorded in recording.probes}.values():
                probes.insert(connection, key, probe)
            conclusion_rows.insert(connection, key, conclusion)
            summary_rows.save(connection, key, summary)


def _owner(ids: Mapping[ReplicaId, int], replica: ReplicaId, name: str) -> int:
    if replica not in ids:
        raise rows.no_replica(name, replica)
    return ids[replica]


def _packed(recording: recordings.Recording) -> tuple[list[_Packed], list[list[Any]]]:
    """Return the older measurements packed, and the latest ones of each replica and attempt unpacked."""
    older: list[_Packed] = []
    latest: list[list[Any]] = []
    for kind, measured in ((Sample, recording.samples), (StepReport, recording.steps)):
        packing = packings.PACKINGS[kind]
        by_owner: dict[tuple[ReplicaId, int], list[Any]] = {}
        for each in measured:
            by_owner.setdefault((each.replica, each.attempt), []).append(each)
        for (replica, attempt), values in by_owner.items():
            values.sort(key=lambda value: value.at)
            latest.append(values[-packing.kept :])
            columns = dict(_columns(kind, values[: -packing.kept]))
            if columns["at"]:
                found = [{"attempt": attempt, **row} for row in packings.packed(columns)]
                older.append(_Packed(packing.blocks, replica, found))
    return older, latest


def _columns(kind: type, values: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    for name in packings.names(kind):
        yield name, [rows.storable(getattr(value, name)) for value in values]
