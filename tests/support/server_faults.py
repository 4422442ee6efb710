"""A server that is killed, alone or beside another, whose database is killed, whose disk is full, at random
moments while jobs are submitted to it: no job is lost, none is made twice, what cannot be done now is said.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from paceline.services.local import state_dirs
from support import postgresqls, submitters
from support.kills import until
from support.prerequisites import NotHere
from support.served import Server, serving
from support.submitters import Submitters

#: So many answers come before a fault, and while it lasts; then it happens somewhere within a submit.
LEAST_ANSWERS, MOST_ANSWERS = 2, 8
SUBMIT_SECONDS = 0.5
DISK_BYTES = 64 << 20
#: What a full disk still has room for, at most.
ROOM_BYTES = 1 << 19


@contextlib.contextmanager
def _home(folder: Path | None = None, store: str = "") -> Iterator[state_dirs.Home]:
    """Give a home, in a folder of its own if none is named."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-", dir=folder) as made:
        yield state_dirs.Home.from_environment({"PACELINE_HOME": made, "PACELINE_STORE": store})


def _pause(chance: random.Random, *crews: Submitters) -> None:
    """Wait until clients have had some more answers, and a moment."""
    seen = sum(crew.answers for crew in crews)
    count = chance.randint(LEAST_ANSWERS, MOST_ANSWERS)
    until(lambda: sum(crew.answers for crew in crews) >= seen + count, seconds=submitters.END_SECONDS)
    time.sleep(chance.uniform(0.0, SUBMIT_SECONDS))


def _row(home: state_dirs.Home, crew: Submitters, recovery: float | None) -> dict[str, Any]:
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
            _pause(chance, crew)
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
                _pause(chance, *crews)
                os.kill(dying.pid, signal.SIGKILL)
            known.append(staying)
            _pause(chance, *crews)
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
            _pause(chance, crew)
            database.kill()
            _pause(chance, crew)
            database.start()
            recovery = crew.goes_on()
        return _row(home, crew, recovery)


def _disk_full(chance: random.Random) -> dict[str, Any]:
    """Fill the disk while jobs are submitted, and make room again later; the server stays."""
    with small_disk() as disk, _home(disk) as home:
        with serving(home) as server, _submitting(server) as crew:
            _pause(chance, crew)
            fill(disk / "filler", room_bytes=chance.randrange(ROOM_BYTES))
            _pause(chance, crew)
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
