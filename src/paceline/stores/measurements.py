"""Measurements: samples, step reports and evaluations, and how far each spool was read.

Each of the three kinds has a table of its own, whose columns have the names of the value's fields.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from paceline import errors
from paceline.model import roles
from paceline.model.jobs import runs
from paceline.model.measures import samples as values
from paceline.stores import combinations, journals, packings, rows, tables

M = TypeVar("M", values.Sample, values.StepReport, values.EvaluationReport)

_TABLES: dict[type, sa.Table] = {
    values.Sample: tables.samples,
    values.StepReport: tables.step_reports,
    values.EvaluationReport: tables.evaluations,
}


class Measurements(rows.StorePart):
    """The measurements of a store's runs.

    In ``samples``, ``step_reports`` and ``evaluations``, ``since`` is the first instant that counts and
    ``until`` the first that does not (Unix seconds). Adjacent windows therefore count nothing twice.

    The latest samples and step reports of each replica are returned as they were stored. Older ones are
    packed and rounded (see `precisions`). With ``every_seconds``, the measurements of a replica and attempt
    are combined into one for each window of this length (see `combinations`).
    """

    def append_samples(self, name: str, measured: Iterable[values.Sample]) -> None:
        """Store samples of a run's replicas.

        Raises:
            NotFound: there is no such run or replica.
            StoreError: the store cannot be written; none of the samples was stored.
        """
        self._append(name, values.Sample, list(measured))

    def append_step_reports(self, name: str, reports: Iterable[values.StepReport]) -> None:
        """Store step reports of a run's replicas; raises as ``append_samples`` does."""
        self._append(name, values.StepReport, list(reports))

    def append_evaluations(self, name: str, evaluations: Iterable[values.EvaluationReport]) -> None:
        """Store evaluations of a run's model; raises as ``append_samples`` does."""
        self._append(name, values.EvaluationReport, list(evaluations))

    def samples(
        self,
        name: str,
        *,
        replica: roles.ReplicaId | None = None,
        role: roles.Role | None = None,
        since: float | None = None,
        until: float | None = None,
        every_seconds: float | None = None,
    ) -> list[values.Sample]:
        """Return the samples of one replica, of one role or of all replicas, in the order of time.

        Raises:
            InvalidInput: ``every_seconds`` is not a positive, finite number.
            NotFound: there is no such run.
            StoreError: the store cannot be read, or packed samples are damaged.
        """
        return self._select(name, values.Sample, replica, role, since, until, every_seconds)

    def step_reports(
        self,
        name: str,
        *,
        replica: roles.ReplicaId | None = None,
        role: roles.Role | None = None,
        since: float | None = None,
        until: float | None = None,
        every_seconds: float | None = None,
    ) -> list[values.StepReport]:
        """Return step reports in the order of time; raises as ``samples`` does."""
        return self._select(name, values.StepReport, replica, role, since, until, every_seconds)

    def evaluations(
        self,
        name: str,
        *,
        replica: roles.ReplicaId | None = None,
        role: roles.Role | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> list[values.EvaluationReport]:
        """Return evaluations in the order of time; raises as ``samples`` does."""
        return self._select(name, values.EvaluationReport, replica, role, since, until, None)

    def latest_samples(self, name: str) -> dict[roles.ReplicaId, values.Sample]:
        """Return the latest sample of each replica that has one.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read.
        """
        return self._latest(name, values.Sample)

    def latest_step_reports(self, name: str) -> dict[roles.ReplicaId, values.StepReport]:
        """Return the latest step report of each replica that has one; raises as ``latest_samples`` does."""
        return self._latest(name, values.StepReport)

    def spool_offset(self, name: str, replica: roles.ReplicaId, attempt: int) -> int:
        """Return how many bytes of an attempt's spool were read and stored; 0 if none were.

        Raises:
            NotFound: there is no such run or replica.
            StoreError: the store cannot be read.
        """
        with self._database.reading() as connection:
            key = rows.replica_ids(connection, name, [replica])[replica]
            return _position(connection, key, attempt) or 0

    def append_from_spool(
        self,
        name: str,
        replica: roles.ReplicaId,
        attempt: int,
        *,
        previous_offset: int,
        offset: int,
        samples: Iterable[values.Sample] = (),
        steps: Iterable[values.StepReport] = (),
        evaluations: Iterable[values.EvaluationReport] = (),
        events: Iterable[runs.JobEvent] = (),
    ) -> None:
        """Store the contents of a section of an attempt's spool and the section's end: everything or nothing.

        Args:
            name: the run's name.
            replica: replica whose spool was read.
            attempt: attempt whose spool was read.
            previous_offset: where the section begins, in bytes; the value that ``spool_offset`` returned.
            offset: where the section ends, in bytes.
            samples: samples in the section.
            steps: step reports in the section. A report with `CURRENT_ATTEMPT`, whose attempt the spool does
                not know, gets the replica's attempt; it is dropped if the run has no such replica.
            evaluations: evaluations in the section.
            events: events in the section.

        Raises:
            Conflict: the stored part of the spool does not end at ``previous_offset``: another process reads
                the spool too. Nothing was stored.
            NotFound: there is no such run or replica.
            StoreError: the store cannot be written. Nothing was stored, and the same call may be repeated.
        """
        happened = list(events)
        with self._database.writing() as connection:
            run = rows.run_id(connection, name, lock=True)
            told = _of_current_attempts(connection, run, list(steps))
            batches: list[Sequence[Any]] = [list(samples), told, list(evaluations)]
            ids = rows.replica_ids(connection, name, {replica, *_replicas(batches)})
            found = _position(connection, ids[replica], attempt)
            if (found or 0) != previous_offset:
                raise errors.Conflict(
                    f"the spool of {replica} (attempt {attempt}) of job {name!r} is stored up to byte "
                    f"{found or 0}, not {previous_offset}: another supervisor reads it too",
                    "Go on from spool_offset().",
                )
            _set_position(connection, ids[replica], attempt, offset, known=found is not None)
            for batch in batches:
                insert(connection, batch, ids)
            journals.insert_events(connection, run, happened)

    def _append(self, name: str, kind: type[M], measured: list[M]) -> None:
        with self._database.writing() as connection:
            if measured:
                insert(connection, measured, rows.replica_ids(connection, name, _replicas([measured])))
            else:
                rows.run_id(connection, name)

    def _select(
        self,
        name: str,
        kind: type[M],
        replica: roles.ReplicaId | None,
        role: roles.Role | None,
        since: float | None,
        until: float | None,
        every_seconds: float | None,
    ) -> list[M]:
        if every_seconds is not None and not 0 < every_seconds < math.inf:
            raise errors.InvalidInput(f"measurements cannot be combined every {every_seconds} seconds")
        with self._database.reading() as connection:
            run = rows.run_id(connection, name)
            wanted = packings.MeasurementQuery(run=run, replica=replica, role=role, since=since, until=until)
            table = _TABLES[kind]
            query = _query(kind).where(*wanted.owners()).where(*wanted.between(table.c.at, table.c.at))
            found = connection.execute(query.order_by(table.c.at, table.c.id))
            if kind not in packings.PACKINGS:
                return _measured(kind, found)
            packed = packings.chunks(connection, kind, wanted)
            if every_seconds is None:
                measured = [each for chunk in packed for each in _values(kind, chunk)]
                measured += _measured(kind, found)
            else:
                latest = packings.latest(kind, found)
                measured = [
                    each
                    for chunk in packings.by_owner(packed, latest)
                    for each in _values(kind, _combined(chunk, every_seconds))
                ]
        measured.sort(key=operator.attrgetter("at"))
        return measured

    def _latest(self, name: str, kind: type[M]) -> dict[roles.ReplicaId, M]:
        table, owners = _TABLES[kind], tables.replicas
        inner = table.alias()
        # One index lookup for each replica, no matter how many measurements it has.
        newest = (
            sa.select(inner.c.id)
            .where(inner.c.replica_id == owners.c.id)
            .order_by(inner.c.at.desc(), inner.c.id.desc())
            .limit(1)
            .correlate(owners)
            .scalar_subquery()
        )
        with self._database.reading() as connection:
            run = rows.run_id(connection, name)
            query = _query(kind, table.c.id == newest).where(owners.c.run_id == run).order_by(owners.c.id)
            return {value.replica: value for value in _measured(kind, connection.execute(query))}


def _query(kind: type[M], on: sa.ColumnElement[bool] | None = None) -> sa.Select[Any]:
    table, owners = _TABLES[kind], tables.replicas
    columns = [table.c[name] for name in ("replica_id", "attempt", *packings.names(kind))]
    condition = table.c.replica_id == owners.c.id if on is None else on
    return sa.select(owners.c.role, owners.c.number, *columns).select_from(owners.join(table, condition))


def _measured(kind: type[M], found: Iterable[Any]) -> list[M]:
    read = list(found)
    if not read:
        return []
    role, number, _, attempt, *rest = zip(*read, strict=True)
    ids = functools.cache(lambda role, number: roles.ReplicaId(roles.Role(role), number))
    columns = dict(zip(packings.names(kind), rest, strict=True))
    return _made(kind, {"replica": list(map(ids, role, number)), "attempt": attempt, **columns}, len(read))


def _values(kind: type[M], chunk: packings.MeasurementChunk) -> list[M]:
    """Return the measurements of a chunk."""
    count = len(chunk.columns["at"])
    replica, attempt = [chunk.replica] * count, [chunk.owner.attempt] * count
    return _made(kind, {**chunk.columns, "replica": replica, "attempt": attempt}, count)


def _made(kind: type[M], columns: Mapping[str, Sequence[Any]], count: int) -> list[M]:
    """Return measurements; a field without a column is None.

    Fields are set column by column. The constructor of a frozen dataclass sets each field with a Python call,
    which takes five times as long, and looking at a large job makes tens of thousands of measurements.
    """
    made = [object.__new__(kind) for _ in range(count)]
    for field in dataclasses.fields(kind):
        column = columns.get(field.name) or itertools.repeat(None, count)
        set_field = kind.__dict__[field.name].__set__  # its slot
        collections.deque(map(set_field, made, column), maxlen=0)
    return made


def combined(kind: type[M], measured: Iterable[M], every_seconds: float) -> list[M]:
    """Return measurements combined into one for each window of a replica and attempt, in the order of time.

    Args:
        kind: their kind.
        measured: the measurements.
        every_seconds: length of a window.
    """
    by_attempt: dict[tuple[roles.ReplicaId, int], list[M]] = collections.defaultdict(list)
    for each in sorted(measured, key=operator.attrgetter("at")):
        by_attempt[each.replica, each.attempt].append(each)
    combined_values: list[M] = []
    for (replica, attempt), each_of in by_attempt.items():
        measured_columns = {name: [getattr(each, name) for each in each_of] for name in packings.names(kind)}
        columns = combinations.combined(measured_columns, every_seconds)
        count = len(columns["at"])
        owners: dict[str, Sequence[Any]] = {"replica": [replica] * count, "attempt": [attempt] * count}
        combined_values += _made(kind, {**columns, **owners}, count)
    combined_values.sort(key=operator.attrgetter("at"))
    return combined_values


def _combined(chunk: packings.MeasurementChunk, every_seconds: float) -> packings.MeasurementChunk:
    return dataclasses.replace(chunk, columns=combinations.combined(chunk.columns, every_seconds))


def _of_current_attempts(
    connection: sa.Connection, run: int, steps: list[values.StepReport]
) -> list[values.StepReport]:
    """Return step reports in which `CURRENT_ATTEMPT` is replaced by the attempt that the replica is at.

    Reports with `CURRENT_ATTEMPT` of replicas that the run does not have are dropped.
    """
    if all(report.attempt != values.CURRENT_ATTEMPT for report in steps):
        return steps
    columns = tables.replicas.c
    query = sa.select(columns.role, columns.number, columns.attempt).where(columns.run_id == run)
    attempts = {
        roles.ReplicaId(roles.Role(role), number): attempt
        for role, number, attempt in connection.execute(query)
    }
    current_reports = []
    for report in steps:
        if report.attempt != values.CURRENT_ATTEMPT:
            current_reports.append(report)
        elif report.replica in attempts:
            current_reports.append(dataclasses.replace(report, attempt=attempts[report.replica]))
    return current_reports


def _replicas(batches: Iterable[Sequence[Any]]) -> set[roles.ReplicaId]:
    return {value.replica for batch in batches for value in batch}


def insert(connection: sa.Connection, measured: Sequence[Any], ids: dict[roles.ReplicaId, int]) -> None:
    """Insert measurements of one kind with one statement, then pack older ones if there are too many rows."""
    if not measured:
        return
    kind: type[Any] = type(measured[0])
    names = ("attempt", *packings.names(kind))
    made = [
        {"replica_id": ids[value.replica], **{name: rows.storable(getattr(value, name)) for name in names}}
        for value in measured
    ]
    connection.execute(sa.insert(_TABLES[kind]), made)
    for owner in sorted({packings.Owner(ids[value.replica], value.attempt) for value in measured}):
        packings.pack(connection, kind, owner)


def _position(connection: sa.Connection, replica: int, attempt: int) -> int | None:
    columns = tables.spools.c
    found = connection.scalar(
        sa.select(columns.position).where(columns.replica_id == replica, columns.attempt == attempt)
    )
    return None if found is None else int(found)


def _set_position(
    connection: sa.Connection, replica: int, attempt: int, position: int, *, known: bool
) -> None:
    columns = tables.spools.c
    if known:
        where = (columns.replica_id == replica, columns.attempt == attempt)
        connection.execute(sa.update(tables.spools).where(*where).values(position=position))
    else:
        row = {"replica_id": replica, "attempt": attempt, "position": position}
        connection.execute(sa.insert(tables.spools).values(row))
