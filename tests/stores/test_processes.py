"""Several processes at one store, and processes that die in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from paceline import stores
from paceline.model import roles
from paceline.stores import databases

WRITER = Path(__file__).with_name("writer.py")


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", str(WRITER), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def test_two_processes_open_a_fresh_store_at_once(fresh_url):
    processes = [start("open", fresh_url) for _ in range(2)]
    assert [finish(process) for process in processes] == ["opened\n", "opened\n"]
    with stores.open_store(fresh_url) as store:
        assert store.list_runs() == []


@pytest.mark.parametrize("statement", ["CREATE TABLE samples", f"INSERT INTO {databases.VERSION_TABLE}"])
def test_a_process_that_is_killed_while_it_migrates_leaves_nothing_behind(fresh_url, statement):
    process = start("die", fresh_url, statement)
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    engine = sa.create_engine(databases._parse(fresh_url))
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()
    with stores.open_store(fresh_url) as store:
        assert store.list_runs() == []


def test_four_processes_append_at_once(store_url, make_run):
    names = ["ps-0", "ps-1", "worker-0", "worker-1"]
    with stores.open_store(store_url) as store:
        store.create_run(*make_run())
        for process in [start("append", store_url, name) for name in names]:
            finish(process)
        by_replica = Counter(str(sample.replica) for sample in store.samples("demo"))
        assert by_replica == dict.fromkeys(names, 100)
        assert len(store.events("demo")) == 80


def test_a_killed_writer_leaves_offsets_that_fit(store_url, make_run):
    replica = roles.ReplicaId(roles.Role.PS, 0)
    with stores.open_store(store_url) as store:
        store.create_run(*make_run())
        stored = 0
        for _ in range(2):
            process = start("spool", store_url)
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip().isdecimal() and int(line) >= stored + 30:
                    break
            process.kill()
            process.communicate()
            offset = store.spool_offset("demo", replica, 1)
            assert offset % 100 == 0
            stored = offset // 100
            assert stored >= 31
            assert [sample.at for sample in store.samples("demo")] == [float(at) for at in range(stored * 5)]
            assert [event.message for _, event in store.events("demo")] == [str(n) for n in range(stored)]


def test_opening_a_store_that_is_up_to_date_imports_little(tmp_path):
    url = f"sqlite:///{tmp_path}/paceline.db"
    stores.open_store(url).close()
    code = (
        "import sys; from paceline import stores\n"
        f"with stores.open_store({url!r}) as store: store.list_runs()\n"
        "print({'alembic', 'pydantic', 'psycopg', 'tensorflow'} & sys.modules.keys())"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout == "set()\n"
