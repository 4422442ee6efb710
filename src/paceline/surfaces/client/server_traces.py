"""Requests traces of a job from its server, and downloads them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from paceline.errors import SourceError
from paceline.model.traces import traced_steps
from paceline.services import trace_sites
from paceline.surfaces.client import readings
from paceline.surfaces.client.connections import ServerConnection

_FILE = re.compile(rf"[a-z]+-\d+\.\d+({'|'.join(map(re.escape, traced_steps.SUFFIXES))})")


class ServerSite:
    """A folder for downloaded traces (see `services.trace_sites.TraceSite`).

    Args:
        connection: the connection to the server.
        path: the path of the run's traces at the server.
        run: the folder.
    """

    def __init__(self, connection: ServerConnection, path: str, run: Path) -> None:
        self.run = run
        self._connection, self._path = connection, path

    @contextlib.contextmanager
    def asked(self, name: str) -> Iterator[None]:
        """Have the server request a trace from the trainers; it withdraws the request by itself."""
        self._connection.post(self._path, {"name": name})
        yield

    def profile(self, name: str, window: traced_steps.Window) -> None:
        """Have the server request a profile from the agents, by the server's clock.

        See `services.trace_sites.TraceSite`.
        """
        self._connection.post(self._path, {"name": name, "profile_milliseconds": window.milliseconds})

    def fetch(self, name: str | None = None) -> None:
        """Download the files of a trace that exist so far; without a name, those of the newest trace."""
        document = self._connection.get(self._path)
        with readings.understanding("traces"):
            found = {each["name"]: [file["name"] for file in each["files"]] for each in document["items"]}
            wanted = max(found, default="") if name is None else name
        for file in found.get(wanted, ()):
            self._bring(wanted, file)

    def _bring(self, trace: str, file: str) -> None:
        if not traced_steps.is_name(trace) or not _FILE.fullmatch(file):
            raise SourceError(f"the server names a file of a trace {trace!r}/{file!r}, which is none")
        path = self.run / traced_steps.FOLDER / trace / file
        if path.exists():
            return
        with trace_sites.replacing(path) as part:
            self._connection.download(f"{self._path}/{trace}/files/{quote(file)}", part)
