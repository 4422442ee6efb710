"""Where the replicas of a run look for requests and leave their traces (`TraceSite`).

A run of this machine has a folder for that (`local.trace_sites`), one of a cluster has a folder in each pod
(`cluster.trace_sites`). What trainers count of the model's variables is there, too.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from paceline.errors import StoreError
from paceline.model.traces import traced_steps


class TraceSite(Protocol):
    """How traces are asked for, and brought into a folder of this machine.

    Attributes:
        run: the folder of the run, with that of its traces in it (`model.traces.traced_steps.FOLDER`).
    """

    run: Path

    def asked(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Ask the trainers for a trace of a name as long as this is open.

        Raises:
            StoreError: the run's folder cannot be written.
            ClusterError: no trainer can be asked.
        """

    def profile(self, name: str, window: traced_steps.Window) -> None:
        """Ask the agents to have their servers profiled for a trace that is asked for, too."""

    def fetch(self, name: str | None = None) -> None:
        """Bring the files of a trace that are there by now; of the newest, when none is named, and with
        it what was counted of variables.
        """


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a file to write to, which takes another one's place when all is written. Each caller has its own.

    Raises:
        StoreError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
