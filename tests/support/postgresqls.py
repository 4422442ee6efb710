"""Debian's PostgreSQL as a process of one's own, which can be killed and started again."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from support.prerequisites import NotHere

START_SECONDS = 240.0
#: The user that Linux has for processes without rights.
UNPRIVILEGED = 65534
_READY = "ready to accept connections"


class Postgresql:
    """A server over a folder, reached by a socket in it.

    Args:
        binaries: the folder of PostgreSQL's programs.
        folder: an empty one.
    """

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.folder = folder
        self._binaries = binaries
        # PostgreSQL refuses to run as root.
        self._user = _unprivileged_user() if os.geteuid() == 0 else None
        self._server: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count()
        if self._user is not None:
            shutil.chown(folder, self._user)
        make = [str(binaries / "initdb"), "-D", "data", "-U", "paceline", "-A", "trust", "--no-sync"]
        subprocess.run(
            [*make, "-E", "UTF8", "--locale=C"], check=True, capture_output=True, user=self._user, cwd=folder
        )

    def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            RuntimeError: it did not.
        """
        # Processes can be killed without harm to what was written, so nothing waits for the disk.
        settings = ["-cfsync=off", "-clisten_addresses=", f"-cunix_socket_directories={self.folder}"]
        command = [str(self._binaries / "postgres"), "-D", "data", *settings]
        log = self.folder / "log"
        with log.open("wb") as out:
            self._server = subprocess.Popen(
                command, user=self._user, cwd=self.folder, stderr=out, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while _READY not in log.read_text():
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("PostgreSQL did not start: " + log.read_text())
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it, and whatever it has started, as a machine that fails would."""
        if self._server is not None:
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()

    def end(self) -> None:
        """Let it end, even while clients are connected."""
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(timeout=START_SECONDS)

    def new_database(self, like: str = "template1") -> str:
        """Return the URL of a new database, a copy of one to which no client is connected."""
        name = f"store_{os.getpid()}_{next(self._numbers)}"
        engine = sa.create_engine(f"postgresql+psycopg://paceline@/postgres?host={self.folder}")
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {like}")
        engine.dispose()
        return f"postgresql://paceline@/{name}?host={self.folder}"


def name_of(url: str) -> str:
    """Return the name of the database that a URL is of."""
    return str(sa.make_url(url).database)


@contextlib.contextmanager
def running() -> Iterator[Postgresql]:
    """Give a server that runs; nothing is left of it.

    Raises:
        NotHere: PostgreSQL is not installed.
    """
    binaries = _binaries()
    if binaries is None:
        raise NotHere("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="paceline-postgresql-"))
    try:
        server = Postgresql(binaries, folder)
        server.start()
        try:
            yield server
        finally:
            server.end()
    finally:
        shutil.rmtree(folder)


def _binaries() -> Path | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if shutil.which("pg_config"):
        told = subprocess.run(["pg_config", "--bindir"], check=True, capture_output=True, text=True)
        folders.append(Path(told.stdout.strip()))
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def _unprivileged_user() -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return pwd.getpwuid(UNPRIVILEGED).pw_name
