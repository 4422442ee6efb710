"""The place where replicas of a run look for trace requests and leave their traces (`TraceSite`).

A local run has a folder for this (`local.trace_sites`); a run of a cluster has a folder in each pod
(`cluster.trace_sites`). The place also holds what trainers record about the model's variables.
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
    """Requests traces, and copies them into a folder of this machine.

    Attributes:
        run: the folder of the run, which contains the folder of its traces
            (`model.traces.traced_steps.FOLDER`).
    """

    run: Path

    def asked(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Request a trace with this name from the trainers while the context is open.

        Raises:
            StoreError: the run's folder cannot be written.
            ClusterError: no trainer can be reached.
        """

    def profile(self, name: str, window: traced_steps.Window) -> None:
        """Ask the agents to have their servers profiled, too, for a trace that was requested."""

    def fetch(self, name: str | None = None) -> None:
        """Copy the files that a trace has so far.

        Args:
            name: the trace; None: the newest trace, together with the recorded variables.
        """


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Provide a temporary file that replaces another file once it is complete. Each caller has its own.

    Raises:
        StoreError: the file cannot be written.
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
