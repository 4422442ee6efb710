"""Opening and migrating a database, and every way in which it can fail."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import autogenerate, command, migration, script
from support import ports

from paceline import errors, stores
from paceline.model import roles
from paceline.model.measures import samples
from paceline.stores import databases, failures, postgresql, tables

PS = roles.ReplicaId(roles.Role.PS, 0)


def batch(count, at=0.0):
    return [samples.Sample(replica=PS, attempt=1, at=at + n, interval_seconds=1.0) for n in range(count)]


def store_stretch(store, number):
    """Store a stretch of 10 bytes with 100 samples."""
    store.append_from_spool(
        "demo", PS, 1, previous_offset=number * 10, offset=number * 10 + 10,
        samples=batch(100, at=number * 100.0),
    )  # fmt: skip


def failure(url):
    with pytest.raises(errors.StoreError) as caught:
        stores.open_store(url)
    assert caught.value.hint
    return caught.value


@pytest.fixture
def engine(fresh_url):
    engine = databases._engine(databases._parse(fresh_url), "here")
    if engine.dialect.name == "sqlite":
        os.makedirs(os.path.dirname(str(engine.url.database)))
    yield engine
    engine.dispose()


def test_the_migrations_make_the_tables_of_this_program(engine):
    with engine.begin() as connection:
        databases.upgrade(connection, "here")
        options = {"version_table": databases.VERSION_TABLE, "compare_type": True}
        context = migration.MigrationContext.configure(connection, opts=options)
        assert autogenerate.compare_metadata(context, tables.metadata) == []


def test_the_newest_revision_is_the_one_that_opening_looks_for():
    history = script.ScriptDirectory.from_config(databases.alembic_config(None))
    assert history.get_heads() == [databases.HEAD]


def test_the_schema_is_the_one_that_stores_have(tmp_path):
    """A change of the tables is a migration of its own: stores out there were made by the ones before."""
    url = f"sqlite:///{tmp_path}/paceline.db"
    with stores.open_store(url) as store, store._database.reading() as connection:
        made = connection.exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
        ).scalars()
        lines = [" ".join(each.split()) for each in made]
    golden = Path(__file__).parent / "golden" / f"schema-{databases.HEAD}.sql"
    assert lines == golden.read_text().splitlines()


#: Those that have no default in schema 0014.
OLD_COLUMNS = {
    "runs": "id, name, engine, directory, submitted_at, phase, replicas, message, labels, notes, source, "
    "spec, state",
    "replicas": "id, run_id, role, number, phase, attempt, restarts",
    "samples": "replica_id, attempt, at, interval_seconds, cpu_cores",
}


def test_what_a_store_has_is_there_after_its_migration(fresh_url, engine):
    with engine.begin() as connection:
        command.upgrade(databases.alembic_config(connection), "0014")
        for table, values in (
            ("runs", "1, 'demo', 'local', '/', 1.0, 'running', '', '', '', '', '', '', ''"),
            ("replicas", "1, 1, 'ps', 0, 'running', 1, 0"),
            ("samples", "1, 1, 5.0, 1.0, 0.5"),
        ):
            connection.exec_driver_sql(f"INSERT INTO {table} ({OLD_COLUMNS[table]}) VALUES ({values})")
    with stores.open_store(fresh_url) as store, store._database.reading() as connection:
        assert connection.execute(
            sa.select(tables.samples.c.cpu_cores, tables.samples.c.cpu_pressure_seconds)
        ).all() == [(0.5, None)]


def test_a_failed_migration_leaves_nothing_behind(engine, fresh_url):
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE requests (mine INTEGER)")
    error = failure(fresh_url)
    assert "requests" in error.message
    assert "a database of its own" in (error.hint or "")
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["requests"]


@pytest.mark.parametrize("version", ["9999", "0008"], ids=["newer", "never released"])
def test_a_schema_that_is_not_known_is_refused(engine, fresh_url, version):
    stores.open_store(fresh_url).close()
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {databases.VERSION_TABLE} SET version_num = '{version}'")
    error = failure(fresh_url)
    assert f"does not know its schema {version}, the newest it knows is {databases.HEAD}" in error.message
    assert "pip install --upgrade paceline" in (error.hint or "")
    assert "PACELINE_STORE" in (error.hint or "")


def test_a_store_is_for_its_user_alone(tmp_path):
    stores.open_store(f"sqlite:///{tmp_path}/a/paceline.db").close()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "paceline.db").stat().st_mode) == 0o600


def test_the_settings_of_sqlite(tmp_path):
    url = f"sqlite:///{tmp_path}/paceline.db"
    with stores.open_store(url) as store, store._database.reading() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
        }
    assert settings == {"journal_mode": "wal", "busy_timeout": 15000, "foreign_keys": 1, "synchronous": 1}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "cannot be understood"),
        ("no url", "cannot be understood"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql://host/name", "only in sqlite or postgresql"),
        ("postgresql://host:port/name", "cannot be understood"),
        ("postgresql://me:secret@host:port/name", "cannot be understood"),
        ("postgresql://me:secret@word@host:port/name", "cannot be understood"),
        ("postgresql://host:port/name?password=secret&x=1", "cannot be understood"),
        ("sqlite://me:secret@", "names no file"),
    ],
)
def test_a_url_that_names_no_store(url, said):
    message = failure(url).message
    assert said in message
    assert "secret" not in message


def test_a_missing_driver_is_said_so():
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from paceline import errors, stores\n"
        "try: stores.open_store('postgresql://host/name')\n"
        "except errors.StoreError as error: print(error, error.hint)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "psycopg is not installed" in told
    assert "paceline[postgresql]" in told


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be made" in failure(f"sqlite:///{tmp_path}/file/paceline.db").message
    (tmp_path / "folder").mkdir()
    assert "cannot be opened" in failure(f"sqlite:///{tmp_path}/folder").message


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "paceline.db"
    path.write_bytes(b"certainly not a database, but long enough to be one\n" * 100)
    error = failure(f"sqlite:///{path}")
    assert str(path) in error.message
    assert "not a database" in error.message


def test_a_damaged_file(tmp_path, make_run):
    path = tmp_path / "paceline.db"
    with stores.open_store(f"sqlite:///{path}") as store:
        for number in range(50):
            store.create_run(*make_run(f"run-{number}"))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with pytest.raises(errors.StoreError, match="is damaged") as caught:
        stores.open_store(f"sqlite:///{path}").list_runs()
    assert ".recover" in (caught.value.hint or "")


def test_a_store_that_another_process_keeps_locked(tmp_path, make_run, monkeypatch):
    monkeypatch.setattr("paceline.stores.failures.BUSY_SECONDS", 0.1)
    path = tmp_path / "paceline.db"
    with stores.open_store(f"sqlite:///{path}") as store:
        store.create_run(*make_run())
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.StoreError, match="locked"):
            store.append_samples("demo", batch(1))
        assert store.samples("demo") == []
        other.rollback()
        other.close()
        store.append_samples("demo", batch(1))
        assert len(store.samples("demo")) == 1


def test_a_full_disk_loses_nothing_that_was_stored(small_disk, make_run):
    folder = small_disk("size=2m")
    with stores.open_store(f"sqlite:///{folder}/paceline.db") as store:
        store.create_run(*make_run())
        filler = folder / "filler"
        filler.write_bytes(b"x" * 700_000)
        with pytest.raises(errors.StoreError, match="disk") as caught:
            [store_stretch(store, number) for number in range(1000)]
        assert "repeat" in (caught.value.hint or "").lower()
        stored = store.spool_offset("demo", PS, 1) // 10
        assert 0 < stored < 1000
        assert len(store.samples("demo")) == stored * 100
        filler.unlink()
        store_stretch(store, stored)
        assert [one.at for one in store.samples("demo")] == [float(at) for at in range((stored + 1) * 100)]
        with store._database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_a_disk_that_is_full_from_the_start(small_disk):
    folder = small_disk("size=64k")
    (folder / "filler").write_bytes(b"x" * 60_000)
    assert "disk" in failure(f"sqlite:///{folder}/paceline.db").message


def test_a_read_only_folder(small_disk, make_run):
    folder = small_disk("size=2m")
    url = f"sqlite:///{folder}/paceline.db"
    with stores.open_store(url) as store:
        store.create_run(*make_run())
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    error = failure(url)
    assert str(folder) in error.message
    assert "Let this user write" in (error.hint or "")
    assert "cannot be made" in failure(f"sqlite:///{folder}/other/paceline.db").message
    assert "cannot be made" in failure(f"sqlite:///{folder}/other.db").message


def test_a_store_that_becomes_read_only(small_disk, make_run):
    folder = small_disk("size=2m")
    with stores.open_store(f"sqlite:///{folder}/paceline.db") as store:
        store.create_run(*make_run())
        store.close()
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        with pytest.raises(errors.StoreError, match=r"cannot be used: .*(read-only|opened)"):
            store.append_samples("demo", batch(1))


def test_nothing_listens_at_the_url():
    port = ports.free_port()
    for url in (f"//me:secret@127.0.0.1:{port}/name", f"//me@127.0.0.1:{port}/name?password=secret"):
        error = failure(f"postgresql:{url}")
        assert "nothing listens there" in error.message
        assert "secret" not in error.message


def test_there_is_no_such_socket(tmp_path):
    assert "nothing listens there" in failure(f"postgresql://me@/name?host={tmp_path}").message


def test_a_server_without_the_database_or_the_user(postgresql):
    error = failure(f"postgresql://paceline@/missing?host={postgresql.folder}")
    assert "no such database" in error.message
    assert "createdb" in (error.hint or "")
    assert "let this user in" in failure(f"postgresql://stranger@/postgres?host={postgresql.folder}").message


def test_a_server_that_ends_the_connections(postgresql_url):
    with stores.open_store(postgresql_url) as store:
        before = len(store.list_runs())
        with pytest.raises(errors.StoreError, match="server"):  # noqa: SIM117
            with store._database.writing() as connection:
                connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
        assert len(store.list_runs()) == before


def test_a_server_that_falls_silent_is_an_error_within_twenty_seconds():
    # An idle connection is asked first; where it does not answer another is made.
    assert postgresql.PING_SECONDS + postgresql.CONNECT_SECONDS < 20
    assert postgresql.STATEMENT_SECONDS < postgresql.SILENT_SECONDS < 20


def test_a_server_that_falls_silent_within_a_statement(postgresql_url):
    with stores.open_store(postgresql_url) as store:
        with contextlib.ExitStack() as stack, pytest.raises(errors.StoreError, match="silent"):
            ask_a_silent_server(store, stack)
        assert store.list_runs() == []


def test_an_idle_connection_that_fell_silent_is_replaced(postgresql_url):
    with stores.open_store(postgresql_url) as store:
        with store._database.reading() as connection:
            first = backend(connection)
        with stopped(first), store._database.reading() as connection:
            assert backend(connection) != first


def test_a_server_that_refuses_all_connections_is_not_waited_for(postgresql):
    with stopped(postgresql._server.pid):
        error = failure(f"postgresql://paceline@/postgres?host={postgresql.folder}&connect_timeout=2")
    assert "did not answer in time" in error.message


def test_the_server_itself_gives_up_long_statements_but_not_those_of_migrations(postgresql_url):
    with stores.open_store(postgresql_url) as store:
        with store._database.writing() as connection:
            assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "15s"
            connection.exec_driver_sql("SET LOCAL statement_timeout = 10")
            with pytest.raises(sa.exc.DBAPIError) as caught:
                connection.exec_driver_sql("SELECT pg_sleep(60)")
        assert "too long" in failures.explain("here", caught.value).message
        with store._database._engine.connect() as connection:
            postgresql.be_patient(connection)
            assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "0"
            assert connection.connection.driver_connection.silent_seconds is None
            connection.invalidate()


def ask_a_silent_server(store, stack):
    with store._database.writing() as connection:
        connection.connection.driver_connection.silent_seconds = 0.2
        stack.enter_context(stopped(backend(connection)))
        connection.exec_driver_sql("SELECT 1")


def backend(connection):
    return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()


@contextlib.contextmanager
def stopped(process):
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def test_a_connection_in_use_is_closed_when_it_is_given_back_to_a_closed_database(store_url):
    database = databases.open_database(store_url)
    for is_used in (True, False):
        with contextlib.ExitStack() as held:
            if is_used:
                connection = held.enter_context(database.reading())
            database.close()
            if not is_used:  # A late caller, such as a server's thread, may still ask.
                connection = held.enter_context(database.reading())
            assert connection.scalar(sa.text("SELECT 1")) == 1
            driver = connection.connection.driver_connection
        assert is_closed(driver)


def is_closed(driver):
    if isinstance(driver, sqlite3.Connection):
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            driver.execute("SELECT 1")
        return True
    return driver.closed
