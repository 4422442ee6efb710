"""A server of pages and API over a home, as a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from paceline.services.local import state_dirs
from paceline.surfaces.web import gates


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """A server that runs."""

    url: str
    pid: int
    token: str


@contextlib.contextmanager
def serving(home: state_dirs.Home) -> Iterator[Server]:
    """Give a server that answers; it ends with this."""
    program = str(Path(sys.executable).parent / "paceline")
    command = [program, "serve", "--port", "0", "--home", str(home.path)]
    environment = {**os.environ, "PACELINE_STORE": home.store_url}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().partition("/enter")[0]
            yield Server(url, process.pid, gates.token_file(home.path).read_text())
        finally:
            process.terminate()
