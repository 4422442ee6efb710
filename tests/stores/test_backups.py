"""Backup and restore, by the very commands of ``docs/history.md``, while something writes."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

from paceline import stores
from paceline.model import roles
from paceline.model.measures import samples

PS = roles.ReplicaId(roles.Role.PS, 0)
PAGE = Path(__file__).parents[2] / "docs" / "history.md"
LINES = 40


def commands(first: str) -> str:
    """Return the lines of a block of the page that has a text in it, up to the next block."""
    (found,) = (block for block in re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.S) if first in block)
    return found


def run(script: str, folder: Path, url: str) -> None:
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)[:1]
    path = os.pathsep.join([*map(str, binaries), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "PATH": path, "PACELINE_STORE": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def read_on(store: stores.Store, *, most: int = LINES) -> None:
    """Store what a spool has, from where it is stored on: 100 samples for each 10 bytes."""
    while (offset := store.spool_offset("demo", PS, 1)) < most * 10:
        found = [
            samples.Sample(replica=PS, attempt=1, at=float(10 * offset + n), interval_seconds=1.0)
            for n in range(100)
        ]
        store.append_from_spool("demo", PS, 1, previous_offset=offset, offset=offset + 10, samples=found)


def test_what_is_restored_goes_on_with_nothing_lost_and_nothing_twice(fresh_url, tmp_path, make_run):
    is_sqlite = fresh_url.startswith("sqlite")
    (tmp_path / ".local" / "state").mkdir(parents=True)
    (tmp_path / "state" / "runs" / "demo").mkdir(parents=True)
    (tmp_path / "state" / "runs" / "demo" / "job.yaml").write_text("kind: TrainingJob\n")
    (tmp_path / ".local" / "state" / "paceline").symlink_to(tmp_path / "state")
    with stores.open_store(fresh_url) as store:
        store.create_run(*make_run())
        read_on(store, most=3)
        writing = threading.Thread(target=read_on, args=(store,))
        writing.start()
        run(
            commands("VACUUM INTO" if is_sqlite else "pg_dump").partition("pg_restore")[0],
            tmp_path,
            fresh_url,
        )
        writing.join()
        assert len(store.samples("demo")) == LINES * 100
        store.delete_run("demo")
    if is_sqlite:
        (tmp_path / "state" / "runs" / "demo" / "job.yaml").unlink()
        run(commands("rm -f"), tmp_path, fresh_url)
        assert (tmp_path / "state" / "runs" / "demo" / "job.yaml").exists()
    else:
        whole = commands("pg_dump")
        run(whole[whole.index("pg_restore") :], tmp_path, fresh_url)
    with stores.open_store(fresh_url) as store:
        kept = store.spool_offset("demo", PS, 1)
        assert 30 <= kept <= LINES * 10
        assert len(store.samples("demo")) == kept * 10
        read_on(store)
        at = [each.at for each in store.samples("demo")]
        assert at == pytest.approx([float(second) for second in range(LINES * 100)], abs=0.01)
