"""Opening and migrating a database, and every way in which it can fail."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
import subprocess
import sys

import pytest
import sqlalchemy as sa
from alembic import autogenerate, command, migration, script

from paceline import errors, stores
from paceline.model import roles, samples, trained_models
from paceline.model.run_queries import RunQuery
from paceline.model.runs import Detail
from paceline.model.selectors import parse
from paceline.stores import databases, encodings, tables

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


#: A row of each table that any schema has had, beside those of the run itself.
KEPT = {
    "step_reports": {"replica_id": 9, "attempt": 1, "at": 1.0, "interval_seconds": 1.0, "examples": 512},
    "evaluations": {"replica_id": 9, "attempt": 1, "at": 1.0, "auc": 0.75},
    "events": {"id": 3, "run_id": 7, "at": 1.0, "kind": "running", "message": "it runs"},
    "spools": {"replica_id": 9, "attempt": 1, "position": 10},
    "requests": {"id": 3, "run_id": 7, "at": 1.0, "kind": "stop"},
    "labels": {"run_id": 7, "key": "team", "value": "ads"},
    "digests": {"run_id": 7, "at": 1.0, "trend": "[1.0]"},
    "submits": {"key": "k", "run_id": 7, "fingerprint": "f"},
    "relays": {
        "id": 3, "run_id": 7, "asked_at": 1.0, "done_at": 2.0, "source": b"kind: TrainingJob\n",
        "before": b"",
    },
    "audits": {"id": 3, "at": 1.0, "who": "ann", "origin": "::1", "action": "jobs.stop", "detail": ""},
}  # fmt: skip


@pytest.fixture
def engine(fresh_url):
    engine = databases._engine(databases._parse(fresh_url), "here")
    if engine.dialect.name == "sqlite":
        os.makedirs(os.path.dirname(str(engine.url.database)))
    yield engine
    engine.dispose()


def test_up_down_and_up_again(engine):
    for _ in range(2):
        with engine.begin() as connection:
            databases.upgrade(connection, "here")
            assert set(tables.metadata.tables) < set(sa.inspect(connection).get_table_names())
        with engine.begin() as connection:
            command.downgrade(databases.alembic_config(connection), "base")
            assert set(sa.inspect(connection).get_table_names()) == {databases.VERSION_TABLE}


def test_the_migrations_make_the_tables_of_this_program(engine):
    with engine.begin() as connection:
        databases.upgrade(connection, "here")
        options = {"version_table": databases.VERSION_TABLE, "compare_type": True}
        context = migration.MigrationContext.configure(connection, opts=options)
        assert autogenerate.compare_metadata(context, tables.metadata) == []


def test_the_newest_revision_is_the_one_that_opening_looks_for():
    history = script.ScriptDirectory.from_config(databases.alembic_config(None))
    assert history.get_heads() == [databases.HEAD]


def test_an_empty_file_and_an_older_schema_are_brought_up_to_date(engine, fresh_url):
    with engine.begin() as connection:
        databases.upgrade(connection, "here")
        command.downgrade(databases.alembic_config(connection), "base")
    with stores.open_store(fresh_url) as store:
        assert store.list_runs() == []


@pytest.mark.parametrize("revision", [f"{number:04}" for number in range(1, int(databases.HEAD))])
def test_what_any_older_program_kept_comes_through(engine, fresh_url, make_run, revision):
    run, state = make_run(ps=1, workers=1)
    with engine.begin() as connection:
        databases.upgrade(connection, "here", revision)
        metadata = sa.MetaData()
        metadata.reflect(connection)
        runs = metadata.tables["runs"]
        named = {"model": trained_models.name_of(run.spec)} if "model" in runs.c else {}
        connection.execute(
            sa.insert(runs).values(
                **named,
                id=7, name="demo", engine="local", directory=run.directory, submitted_at=5.0, phase="running",
                replicas="ps 1/1, worker 1/1", message="", labels='{"team": "ads"}', notes="[]",
                source=b"kind: TrainingJob\n", spec=encodings.encode(run.spec), state=encodings.encode(state),
            )
        )  # fmt: skip
        connection.execute(
            sa.insert(metadata.tables["replicas"]).values(
                id=9, run_id=7, role="ps", number=0, phase="running", attempt=1, restarts=0, cores="[]"
            )
        )
        made = [
            {"replica_id": 9, "attempt": 1, "at": float(at), "interval_seconds": 1.0, "threads": 3}
            for at in range(40)
        ]
        connection.execute(sa.insert(metadata.tables["samples"]), made)
        for table, values in KEPT.items():
            if table in metadata.tables:
                connection.execute(sa.insert(metadata.tables[table]).values(values))
    since = int(revision)
    with stores.open_store(fresh_url) as store:
        assert store.load_state("demo") == state
        for wanted in (
            RunQuery(selector=parse("team=ads")),
            RunQuery(model=trained_models.name_of(run.spec)),
        ):
            assert [each.name for each in store.run_page(wanted).runs] == ["demo"]
        assert store.get_run("demo").detail is Detail.FULL
        assert [each.threads for each in store.samples("demo")] == [3] * 40
        assert [each.examples for each in store.step_reports("demo")] == [512]
        assert [each.auc for each in store.evaluations("demo")] == [0.75]
        assert [each.message for _, each in store.events("demo")] == ["it runs"]
        assert store.spool_offset("demo", PS, 1) == 10
        assert [each.kind for each in store.take_requests("demo")] == ["stop"]
        assert (store.digest("demo") is not None) is (since >= 7)
        assert [each.source for each in store.relays("demo")] == (
            ["kind: TrainingJob\n"] if since >= 7 else []
        )
        assert [each.who for _, each in store.audits()] == (["ann"] if since >= 7 else [])
        assert store.conclusion("demo") is None
        store.append_samples("demo", batch(40, at=40.0))
        assert len(store.samples("demo", replica=PS)) == 80


def test_a_failed_migration_leaves_nothing_behind(engine, fresh_url):
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE requests (mine INTEGER)")
    error = failure(fresh_url)
    assert "requests" in error.message
    assert "a database of its own" in (error.hint or "")
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["requests"]


def test_a_newer_schema_is_refused(engine, fresh_url):
    stores.open_store(fresh_url).close()
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {databases.VERSION_TABLE} SET version_num = '9999'")
    error = failure(fresh_url)
    assert "was made by a newer Paceline: its schema is 9999" in error.message
    assert "pip install --upgrade paceline" in (error.hint or "")


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
    ],
)
def test_a_url_that_names_no_store(url, said):
    assert said in failure(url).message


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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failure(f"postgresql://me:secret@127.0.0.1:{port}/name")
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
