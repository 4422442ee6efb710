"""Opening a database: its settings, its schema, its transactions.

Alembic takes longer to import than most commands take to run. It is imported only if the schema is not the
newest, which one query finds out. A process that finds an old or empty database migrates it in one
transaction that holds the database's own lock, and checks the schema again once it has the lock. Two
processes that open a new store at the same time therefore create its tables only once.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from paceline import errors
from paceline.stores import failures

#: The newest revision in ``migrations/``; a test checks that they agree.
HEAD = "0015"
VERSION_TABLE = "paceline_schema"

_PASSWORD = re.compile("([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)
_ADVISORY_LOCK = 0x706163656C696E65  # "paceline"
_UPGRADING = threading.Lock()  # Alembic keeps its context in module globals


class Database:
    """A database whose schema is the newest one.

    Args:
        engine: the SQLAlchemy engine that makes connections.
        place: name of the database in messages: its file, or its URL without the password.
    """

    def __init__(self, engine: sa.Engine, place: str) -> None:
        self.place = place
        self._engine = engine
        self._writer = engine.execution_options(paceline_writes=True)
        # Measurements move from one table to another, so a reader of both must see one state.
        # SQLite guarantees this by itself.
        several = engine.dialect.name == "postgresql"
        self._reader = engine.execution_options(isolation_level="REPEATABLE READ") if several else engine
        # SQLite allows one writer and lets the others poll. Among many pollers, one may never get its turn.
        self._turn = contextlib.nullcontext() if several else threading.RLock()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Provide a connection that sees one consistent state of the database.

        Raises:
            StoreError: the database failed.
        """
        with failures.explained(self.place), self._reader.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Provide a connection whose changes are committed together when the block ends, or not at all.

        Raises:
            StoreError: the database failed; nothing was changed.
        """
        with self._turn, failures.explained(self.place), self._writer.begin() as connection:
            yield connection

    def bytewise(self, column: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        """Return a text column that sorts by code point, whatever the locale of the database."""
        return sa.collate(column, "C") if self._engine.dialect.name == "postgresql" else column

    def close(self) -> None:
        """Close every connection; a connection that another thread uses is closed when it is returned."""
        sa.event.listen(self._engine, "checkin", _close)
        self._engine.dispose()


def _close(_connection: object, entry: sa.pool.ConnectionPoolEntry) -> None:
    """Close a connection that is returned; a disposed pool would leave it to the garbage collector."""
    entry.close()


def open_database(url: str) -> Database:
    """Open a database and bring its schema up to date.

    Args:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or ``postgresql://user@host/name``.

    Raises:
        StoreError: the URL is wrong, the database cannot be opened, this program does not know its schema,
            or the file is not a database.
    """
    parsed = _parse(url)
    local = parsed.get_backend_name() == "sqlite"
    place = str(parsed.database) if local else _without_secrets(url)
    if local:
        _make_file(pathlib.Path(str(parsed.database)))
    engine = _engine(parsed, place)
    try:
        with failures.explained(place):
            if _version(engine) != HEAD:
                _migrate(engine, place)
    except BaseException:
        engine.dispose()
        raise
    return Database(engine, place)


def _parse(url: str) -> sa.URL:
    """Return the parsed URL, with the driver that Paceline uses for this kind of database."""
    examples = "Examples: sqlite:////var/lib/paceline.db, postgresql://user@host/paceline"
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        shown = _without_secrets(url)
        raise errors.StoreError(f"the store's URL {shown!r} cannot be understood", examples) from error
    kind = parsed.drivername.partition("+")[0]
    if kind == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise errors.StoreError(f"the store's URL {_without_secrets(url)!r} names no file", examples)
        return parsed.set(drivername="sqlite+pysqlite")
    if kind in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise errors.StoreError(f"a store cannot be kept in {kind!r}, only in sqlite or postgresql", examples)


def _without_secrets(url: str) -> str:
    """Return a URL, possibly a malformed one, without its password."""
    kind, slashes, rest = url.partition("//")
    user, at, place = rest.rpartition("@")
    name, colon, _ = user.partition(":")
    return _PASSWORD.sub(r"\1***", f"{kind}{slashes}{name}{colon and ':***'}{at}{place}")


def _make_file(path: pathlib.Path) -> None:
    """Create the file of a SQLite database and its folder, accessible to this user only."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise errors.StoreError(
            f"the store {path} cannot be made: {error.strerror}",
            "Let this user write to its folder, or name another store in PACELINE_STORE.",
        ) from error


def _engine(url: sa.URL, place: str) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": failures.BUSY_SECONDS})
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        from paceline.stores import postgresql

        return postgresql.engine(url)
    except ModuleNotFoundError as error:
        raise errors.StoreError(
            f"the store {place} cannot be used: {error.name} is not installed",
            "Install it: pip install 'paceline[postgresql]'",
        ) from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = (
        None  # transactions begin where _begin_sqlite says, not where the driver guesses
    )
    ready = False
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        ready = True
    finally:
        if not ready:
            connection.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # A writer takes the write lock at once: a transaction that reads first cannot wait for the lock later.
    writes = connection.get_execution_options().get("paceline_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _version(engine: sa.Engine) -> str | None:
    """Return the revision of the schema; None if the version table is missing or empty."""
    try:
        with engine.connect() as connection:
            return connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()
    except sa.exc.DBAPIError as error:
        missing = "no such table" in str(error.orig) or getattr(error.orig, "sqlstate", None) == "42P01"
        if missing:
            return None
        raise


def _migrate(engine: sa.Engine, place: str) -> None:
    """Bring the schema up to date, unless another process does so first."""
    # Foreign keys are off: rebuilding a table must not delete the rows that refer to it.
    options = engine.execution_options(paceline_writes=True)
    with _UPGRADING, options.connect() as connection:
        if engine.dialect.name == "sqlite":
            _write_ahead(connection)
            _driver(connection).execute("PRAGMA foreign_keys = OFF")
        else:
            from paceline.stores import postgresql

            postgresql.be_patient(connection)
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            upgrade(connection, place)
        connection.invalidate()  # It has foreign keys off (SQLite) or no time limits (PostgreSQL).


def _driver(connection: sa.Connection) -> Any:
    """Return the driver's own connection, outside of a transaction: within one, some pragmas do nothing."""
    return connection.connection.driver_connection


def _write_ahead(connection: sa.Connection) -> None:
    """Switch to write-ahead logging, so that readers can read during a write; the file keeps this mode.

    If two processes switch at the same time, SQLite reports "locked" to one at once, without its usual wait.
    """
    give_up_at = time.monotonic() + failures.BUSY_SECONDS
    while True:
        try:
            _driver(connection).execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except connection.dialect.loaded_dbapi.OperationalError as error:
            wrapped = sa.exc.OperationalError("PRAGMA journal_mode = WAL", None, error)
            if not failures.is_busy(wrapped) or time.monotonic() > give_up_at:
                raise wrapped from error
        time.sleep(0.02)


def upgrade(connection: sa.Connection, place: str) -> None:
    """Migrate the schema, within the transaction of a connection that holds the lock.

    Raises:
        StoreError: this program does not know the schema: the schema is newer, or was never released.
    """
    from alembic import command, script  # takes half a second, so only if there is something to migrate

    config = alembic_config(connection)
    current = None
    if sa.inspect(connection).has_table(VERSION_TABLE):
        current = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()
    known = {revision.revision for revision in script.ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise errors.StoreError(
            f"the store {place} cannot be used: this Paceline does not know its schema {current}, "
            f"the newest it knows is {HEAD}",
            "If a newer Paceline made the store, upgrade (pip install --upgrade paceline); else name another "
            "store in PACELINE_STORE.",
        )
    command.upgrade(config, "head")


def alembic_config(connection: sa.Connection) -> Any:
    """Return the ``alembic.config.Config`` with which Alembic's commands use a connection."""
    from alembic import config

    made = config.Config()
    made.set_main_option("script_location", "paceline.stores:migrations")
    made.set_main_option("path_separator", "os")
    made.attributes["connection"] = connection
    return made
