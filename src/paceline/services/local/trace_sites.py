"""The folder of a local run, in which its replicas look for trace requests and leave their traces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from paceline.model.traces import traced_steps
from paceline.services.trace_sites import replacing


class FolderTraceSite:
    """The trace site of a run on this machine: its folder."""

    def __init__(self, run: Path) -> None:
        self.run = run

    @contextlib.contextmanager
    def asked(self, name: str) -> Iterator[None]:
        """Leave a request in the folder (see `TraceSite`)."""
        self._request(traced_steps.request_text(name))
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                # Otherwise another trace has been requested meanwhile.
                if self._file.read_text().split()[:1] == [name]:
                    self._file.unlink()

    def profile(self, name: str, window: traced_steps.Window) -> None:
        """Leave a request for the agents, too (see `TraceSite`)."""
        self._request(traced_steps.request_text(name, window))

    @property
    def _file(self) -> Path:
        return self.run / traced_steps.FOLDER / traced_steps.REQUEST

    def _request(self, text: str) -> None:
        with replacing(self._file) as part:
            part.write_text(f"{text}\n")

    def fetch(self, name: str | None = None) -> None:
        """Do nothing: the files are already in this folder."""
