"""A server that is killed, alone or beside another, whose database is killed, whose disk is full, at random
moments while jobs are submitted to it: no job is lost, none is made twice, what cannot be done now is said.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import plots, postgresqls, submitters
from benchmarks.protocols import Bench, Check, NotHere, Result, Row, at_most, none
from benchmarks.served import Server, serving
from benchmarks.submitters import Submitters
from paceline.services import homes

#: How often each fault happens.
FAULTS, QUICK_FAULTS = 20, 3
#: From the first submit to the fault; a submit takes about half a second. And for how long it lasts.
LEAST_SECONDS, MOST_SECONDS = 0.5, 4.0
#: From the end of a fault until a submit is answered again.
RECOVERY_SECONDS = 10.0
DISK_BYTES = 64 << 20
#: What a full disk still has room for, at most.
ROOM_BYTES = 1 << 19


def run(bench: Bench) -> list[Check]:
    """Let each fault happen again and again."""
    faults = QUICK_FAULTS if bench.quick else FAULTS
    bench.plan(faults * len(SCENES))
    for name, scene in SCENES.items():
        for number in range(faults):
            bench.repeat(f"{name} {number}", functools.partial(scene, random.Random(number)))
    return list(_checks(bench.rows))


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    yield none("submits that were answered, and whose job is not there", [row["lost"] for row in rows])
    yield none("keys of which there are two jobs", [row["doubled"] for row in rows])
    yield none("jobs that nobody looks after", [row["unattended"] for row in rows])
    yield none("changes that are not in the audit log", [row["unaudited"] for row in rows])
    yield none("refusals that are no problem+json with 503 or 507", [len(row["wrong"]) for row in rows])
    for name in ("database", "disk"):
        found = [row["recovery"] for row in rows if row["key"].startswith(name)]
        yield at_most(f"seconds until a submit is answered again, {name}", [max(found)], RECOVERY_SECONDS)
    for what in ("answered", "refusals"):
        count = sum(row[what] for row in rows)
        yield Check(name=f"submits: {what}", value=count, low=count, high=count, target="told", holds=True)


@contextlib.contextmanager
def _home(folder: Path | None = None, store: str = "") -> Iterator[homes.Home]:
    """Give a home, in a folder of its own if none is named."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-", dir=folder) as made:
        yield homes.Home.from_environment({"PACELINE_HOME": made, "PACELINE_STORE": store})


def _pause(chance: random.Random) -> None:
    time.sleep(chance.uniform(LEAST_SECONDS, MOST_SECONDS))


def _row(home: homes.Home, crew: Submitters, recovery: float | None) -> dict[str, Any]:
    more = {"refusals": crew.refusals, "wrong": crew.wrong, "recovery": recovery}
    return {**submitters.became(home, crew.answered), **more}


def _server_killed(chance: random.Random) -> dict[str, Any]:
    """Kill the server while jobs are submitted, start another, let clients go on."""
    known: list[Server] = []
    with _home() as home:
        crew = Submitters(lambda: known[-1], "key")
        with serving(home) as first:
            known.append(first)
            crew.start()
            _pause(chance)
            os.kill(first.pid, signal.SIGKILL)
        with serving(home) as second:
            known.append(second)
            crew.end()
        return _row(home, crew, None)


def _twin_killed(chance: random.Random) -> dict[str, Any]:
    """Send each submit to two servers over one PostgreSQL at about the same time, and kill one of them."""
    with postgresqls.running() as database, _home(store=database.new_database()) as home:
        with serving(home) as staying:
            known = [staying]
            crews = [Submitters(lambda: known[-1], "key"), Submitters(lambda: staying, "key")]
            with serving(home) as dying:
                known.append(dying)
                for crew in crews:
                    crew.start()
                _pause(chance)
                os.kill(dying.pid, signal.SIGKILL)
            known.append(staying)
            _pause(chance)
            for crew in crews:
                crew.end()
        one, other = crews
        # Where they say two jobs of one key, there is one more than there are keys.
        one.answered |= other.answered
        one.refusals += other.refusals
        one.wrong += other.wrong
        return _row(home, one, None)


def _database_killed(chance: random.Random) -> dict[str, Any]:
    """Kill PostgreSQL while jobs are submitted, and start it again later; the server stays."""
    with postgresqls.running() as database, _home(store=database.new_database()) as home:
        with serving(home) as server, _submitting(server) as crew:
            _pause(chance)
            database.kill()
            _pause(chance)
            database.start()
            recovery = crew.goes_on()
        return _row(home, crew, recovery)


def _disk_full(chance: random.Random) -> dict[str, Any]:
    """Fill the disk while jobs are submitted, and make room again later; the server stays."""
    with small_disk() as disk, _home(disk) as home:
        with serving(home) as server, _submitting(server) as crew:
            _pause(chance)
            fill(disk / "filler", room_bytes=chance.randrange(ROOM_BYTES))
            _pause(chance)
            (disk / "filler").unlink()
            recovery = crew.goes_on()
        return _row(home, crew, recovery)


@contextlib.contextmanager
def _submitting(server: Server) -> Iterator[Submitters]:
    crew = Submitters(lambda: server, "key")
    crew.start()
    try:
        yield crew
    finally:
        crew.end()


@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    """Give a file system of its own.

    Raises:
        NotHere: this user may not mount one.
    """
    folder = tempfile.mkdtemp(prefix="paceline-disk-")
    options = f"size={DISK_BYTES}"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "paceline", folder], capture_output=True, check=False
    )
    try:
        if done.returncode:
            raise NotHere("a small disk cannot be mounted: this needs root")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
    finally:
        os.rmdir(folder)


def fill(path: Path, *, room_bytes: int) -> None:
    """Write a file until the disk is full, and cut off so much that there is that room."""
    with path.open("wb") as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(b"x" * (1 << 16))
                file.flush()
        os.truncate(path, max(0, path.stat().st_size - room_bytes))


#: What happens, by name; each takes what is left to chance, and returns what became of the jobs.
SCENES: Mapping[str, Callable[[random.Random], dict[str, Any]]] = {
    "server": _server_killed, "twin": _twin_killed, "database": _database_killed, "disk": _disk_full,
}  # fmt: skip


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was done."""
    yield (
        f"{len(rows)} faults while {submitters.CLIENTS} clients submitted, each sending again what was not "
        "answered: the server killed; one of two servers over one PostgreSQL killed, to both of which each "
        "submit was sent; PostgreSQL killed and started again; a full disk."
    )


def draw(result: Result, path: Path) -> None:
    """Draw how many submits were answered around each fault."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        groups.setdefault(row["key"].partition(" ")[0], []).append(float(row["answered"]))
    plots.strips(path, groups, label="submits", title="Submits answered around a fault")
