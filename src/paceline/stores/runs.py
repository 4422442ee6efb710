"""Runs and their replicas, and the state of the state machine that drives each run."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from paceline import errors
from paceline.control import states
from paceline.model import roles
from paceline.model.jobs import job_specs, runs, statuses
from paceline.model.studies import trained_models
from paceline.stores import encodings, journals, rows, spec_changes, tables


class StoredRuns(rows.StorePart):
    """The runs of a store."""

    def create_run(self, run: runs.Run, state: states.JobState, *, submit: runs.Submit | None = None) -> None:
        """Store a new run, its replicas and the state from which its supervisor starts.

        Args:
            run: the run.
            state: the state.
            submit: how a repeated submit is recognized; None: by the run's name alone.

        Raises:
            Conflict: there is a run of that name, or a run that was submitted with the same key.
            StoreError: the store cannot be written.
        """
        with self._database.writing() as connection:
            key = insert_run(connection, run, state)
            if submit is not None:
                _insert_submit(connection, key, submit)

    def submitted(self, submit: runs.Submit) -> str | None:
        """Return the name of the run that was submitted with a key; None if no run in the store was.

        Raises:
            Conflict: something else was submitted with this key.
            StoreError: the store cannot be read.
        """
        columns = tables.submits.c
        query = (
            sa.select(tables.runs.c.name, columns.fingerprint)
            .join_from(tables.submits, tables.runs)
            .where(columns.key == submit.key)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is not None and row.fingerprint != submit.fingerprint:
            raise submit.taken(row.name)
        return None if row is None else row.name

    def run_names_like(self, prefix: str) -> set[str]:
        """Return the names of runs that start with ``prefix``.

        Raises:
            StoreError: the store cannot be read.
        """
        name = tables.runs.c.name
        query = sa.select(name).where(name.startswith(prefix, autoescape=True))
        with self._database.reading() as connection:
            # SQLite's LIKE ignores the case of ASCII letters.
            return {found for found in connection.scalars(query) if found.startswith(prefix)}

    def get_run(self, name: str) -> runs.Run:
        """Return a run.

        Raises:
            NotFound: there is no such run; the message suggests similar names.
            StoreError: the store cannot be read.
        """
        columns = tables.runs.c
        query = sa.select(
            columns.engine, columns.directory, columns.submitted_at, columns.phase, columns.started_at,
            columns.finished_at, columns.message, columns.notes, columns.source, columns.spec, columns.detail,
        ).where(columns.name == name)  # fmt: skip
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                raise rows.not_found(connection, name)
        subject = f"job {name!r}"
        return runs.Run(
            name=name,
            spec=encodings.decode(job_specs.JobSpec, row.spec, what=subject),
            source=row.source.decode("utf-8", "surrogatepass"),
            engine=row.engine,
            directory=row.directory,
            submitted_at=row.submitted_at,
            phase=encodings.member(statuses.JobPhase, row.phase, what=subject),
            message=row.message,
            started_at=row.started_at,
            finished_at=row.finished_at,
            notes=tuple(json.loads(row.notes)),
            detail=encodings.member(runs.Detail, row.detail, what=subject),
        )

    def update_run(
        self,
        name: str,
        *,
        phase: statuses.JobPhase | None = None,
        message: str | None = None,
        started_at: float | None = None,
        finished_at: float | None = None,
        notes: Collection[str] | None = None,
    ) -> None:
        """Change facts of a run; None leaves a fact unchanged. Times are Unix seconds.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written.
        """
        given: dict[str, Any] = {
            "phase": None if phase is None else phase.value,
            "message": message,
            "started_at": started_at,
            "finished_at": finished_at,
            "notes": None if notes is None else json.dumps(list(notes)),
        }
        values = {column: value for column, value in given.items() if value is not None}
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            if values:
                connection.execute(sa.update(tables.runs).where(tables.runs.c.id == key).values(values))

    def save_state(
        self,
        name: str,
        state: states.JobState,
        *,
        at: float,
        events: Collection[runs.JobEvent] = (),
        source: str | None = None,
        drops_change: bool = False,
        resized: str | None = None,
        answered: Collection[int] = (),
    ) -> None:
        """Store the state of a run, for a later supervisor and for everything that shows the run.

        The first ``at`` (Unix seconds) with a phase other than ``pending`` becomes the start of the run, and
        the first with a final phase becomes its end. A run that is not in a final phase has no end, and its
        conclusion is deleted.

        Args:
            name: the run's name.
            state: the new state.
            at: time of the state (Unix seconds).
            events: what happened since the last save; stored in the same transaction.
            source: the new job file of a run that continues with it; this settles the waiting change.
            drops_change: whether to remove the waiting change: the run continues with its present job file.
            resized: the new job file of a run that got another one without stopping.
            answered: numbers of the requests that the state takes into account; they are removed.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written; it still has the previous state and the requests.
        """
        columns = tables.runs.c
        encoded = encodings.encode(state)
        started = None if state.phase is statuses.JobPhase.PENDING else at
        finished = sa.func.coalesce(columns.finished_at, at) if state.phase.is_final else None
        file = source if resized is None else resized
        changed = {} if file is None else {"source": source_bytes(file)}
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            if resized is not None:
                spec_changes.note_done(connection, key, resized, at)
            connection.execute(
                sa.update(tables.runs)
                .where(columns.id == key)
                .values(
                    phase=state.phase.value,
                    message=state.message,
                    replicas=_counts(state),
                    spec=encodings.encode(state.spec),
                    state=encoded,
                    model=trained_models.name_of(state.spec),
                    ttl_after_finished_seconds=state.spec.ttl_after_finished_seconds,
                    # A run that is not over is stored in full detail (again).
                    detail=columns.detail if state.phase.is_final else runs.Detail.FULL.value,
                    started_at=sa.func.coalesce(columns.started_at, started),
                    finished_at=finished,
                    **changed,
                )
            )
            if answered:
                journals.delete_requests(connection, key, answered)
            if not state.phase.is_final:
                connection.execute(sa.delete(tables.conclusions).where(tables.conclusions.c.run_id == key))
            if source is not None:
                spec_changes.settle(connection, key, at)
            if drops_change:
                spec_changes.drop(connection, key)
            _save_replicas(connection, key, state.replicas)
            journals.insert_events(connection, key, list(events))

    def load_state(self, name: str) -> states.JobState:
        """Return the last saved state of a run.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read, or a newer program wrote the state.
        """
        with self._database.reading() as connection:
            query = sa.select(tables.runs.c.state).where(tables.runs.c.name == name)
            text = connection.scalar(query)
            if text is None:
                raise rows.not_found(connection, name)
        return encodings.decode(states.JobState, text, what=f"the state of job {name!r}")

    def delete_run(self, name: str) -> None:
        """Remove a run and everything that is stored about it.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be written; nothing was removed.
        """
        with self._database.writing() as connection:
            key = rows.run_id(connection, name, lock=True)
            connection.execute(sa.delete(tables.runs).where(tables.runs.c.id == key))

    def set_replica_facts(
        self,
        name: str,
        replica: roles.ReplicaId,
        *,
        host: str | None = None,
        address: str | None = None,
        pid: int | None = None,
        cores: Collection[int] = (),
    ) -> None:
        """Store where a replica was last launched; None and ``()`` leave a fact unchanged.

        Raises:
            NotFound: there is no such run or replica.
            StoreError: the store cannot be written.
        """
        given = {
            "host": host, "address": address, "pid": pid, "cores": json.dumps(list(cores)) if cores else None,
        }  # fmt: skip
        values = {column: value for column, value in given.items() if value is not None}
        with self._database.writing() as connection:
            key = rows.replica_ids(connection, name, [replica])[replica]
            if values:
                connection.execute(
                    sa.update(tables.replicas).where(tables.replicas.c.id == key).values(values)
                )

    def replicas(self, name: str) -> list[runs.ReplicaRow]:
        """Return the replicas of a run: the first ones in the order of its roles, then those added later.

        Raises:
            NotFound: there is no such run.
            StoreError: the store cannot be read.
        """
        subject = f"a replica of job {name!r}"
        with self._database.reading() as connection:
            key = rows.run_id(connection, name)
            query = sa.select(tables.replicas).where(tables.replicas.c.run_id == key)
            return [
                runs.ReplicaRow(
                    replica=roles.ReplicaId(encodings.member(roles.Role, row.role, what=subject), row.number),
                    phase=encodings.member(statuses.ReplicaPhase, row.phase, what=subject),
                    attempt=row.attempt,
                    restarts=row.restarts,
                    memory_bytes=row.memory_bytes,
                    exit=encodings.decode(statuses.ExitReason, row.exit, what=subject) if row.exit else None,
                    host=row.host,
                    address=row.address,
                    pid=row.pid,
                    cores=tuple(json.loads(row.cores)),
                )
                for row in connection.execute(query.order_by(tables.replicas.c.id))
            ]


def insert_run(connection: sa.Connection, run: runs.Run, state: states.JobState) -> int:
    """Insert a run, its replicas and its labels; return the number of the run's row.

    Raises:
        Conflict: there is a run of that name.
    """
    values = {
        "name": run.name,
        "engine": run.engine,
        "directory": run.directory,
        "submitted_at": run.submitted_at,
        "phase": run.phase.value,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "ttl_after_finished_seconds": run.spec.ttl_after_finished_seconds,
        "replicas": _counts(state),
        "message": run.message,
        "labels": json.dumps(dict(run.spec.labels)),
        "notes": json.dumps(run.notes),
        "source": source_bytes(run.source),
        "spec": encodings.encode(run.spec),
        "state": encodings.encode(state),
        "model": trained_models.name_of(run.spec),
        "detail": run.detail.value,
    }
    try:
        made = connection.execute(sa.insert(tables.runs).values(values))
    except sa.exc.IntegrityError as error:
        raise errors.Conflict(
            f"there is a job {run.name!r} already",
            f"Give this one another name, or remove that one: paceline delete {run.name}",
        ) from error
    key = int(made.inserted_primary_key[0])  # type: ignore[index]
    _insert_replicas(connection, key, state.replicas)
    _insert_labels(connection, key, run.spec.labels)
    return key


def source_bytes(source: str) -> bytes:
    """Return the bytes in which a job file is stored."""
    return source.encode("utf-8", "surrogatepass")


def _counts(state: states.JobState) -> str:
    return runs.replica_counts(
        (each.replica.role.value, each.phase is statuses.ReplicaPhase.RUNNING)
        for each in state.replicas
        if state.spec.has(each.replica)
    )


def _values(state: states.ReplicaState) -> dict[str, Any]:
    return {
        "phase": state.phase.value,
        "attempt": state.attempt,
        "restarts": state.restarts,
        "memory_bytes": state.memory_bytes,
        "exit": None if state.exit is None else encodings.encode(state.exit),
    }


def _insert_replicas(connection: sa.Connection, run: int, replicas: Collection[states.ReplicaState]) -> None:
    if replicas:
        made = [
            {"run_id": run, "role": s.replica.role.value, "number": s.replica.index, **_values(s)}
            for s in replicas
        ]
        connection.execute(sa.insert(tables.replicas), made)


def _insert_labels(connection: sa.Connection, run: int, labels: Mapping[str, str]) -> None:
    if labels:
        made = [{"run_id": run, "key": key, "value": value} for key, value in labels.items()]
        connection.execute(sa.insert(tables.labels), made)


def _insert_submit(connection: sa.Connection, run: int, submit: runs.Submit) -> None:
    try:
        connection.execute(
            sa.insert(tables.submits).values(run_id=run, key=submit.key, fingerprint=submit.fingerprint)
        )
    except sa.exc.IntegrityError as error:
        raise errors.Conflict(f"a job was submitted with the key {submit.key!r} already") from error


def _save_replicas(connection: sa.Connection, run: int, replicas: Collection[states.ReplicaState]) -> None:
    """Write the rows of new and changed replicas; a replica that left the state keeps its row."""
    columns = tables.replicas.c
    query = sa.select(
        columns.role, columns.number, columns.id, columns.phase, columns.attempt, columns.restarts,
        columns.memory_bytes, columns.exit,
    ).where(columns.run_id == run)  # fmt: skip
    known = {(row.role, row.number): row for row in connection.execute(query)}
    missing, changed = [], []
    for state in replicas:
        row = known.get((state.replica.role.value, state.replica.index))
        values = _values(state)
        if row is None:
            missing.append(state)
        elif any(getattr(row, column) != value for column, value in values.items()):
            changed.append({"row": row.id, **values})
    _insert_replicas(connection, run, missing)
    if changed:
        # All values are bound parameters, so one statement serves all rows and is sent as one batch.
        update = sa.update(tables.replicas).where(columns.id == sa.bindparam("row"))
        named: dict[str, Any] = {
            column: sa.bindparam(column)
            for column in ("phase", "attempt", "restarts", "memory_bytes", "exit")
        }
        connection.execute(update.values(named), changed)
