"""Reads the output of the replicas of a server's job, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paceline.model.jobs.runs import Run
from paceline.model.roles import ReplicaId
from paceline.services.logs import LogLine, LogSelection, Positions
from paceline.surfaces.client import readings
from paceline.surfaces.client.connections import ServerConnection

#: A request names at most this many replicas. For more, the client requests all lines and filters them.
MOST_NAMED = 200
#: The number of lines that a server sends at once.
PAGE_LINES = 5000
CUT = " ... (a server sends no more of a line)"


class ServerReader:
    """Reads output page by page; each page begins where the one before it ended.

    Args:
        connection: the connection to the server.
        path: the path of the output.
        run: the run.
        wanted: the part of the output to read.
    """

    def __init__(self, connection: ServerConnection, path: str, run: Run, wanted: LogSelection) -> None:
        self._connection, self._path, self._wanted = connection, path, wanted
        every = run.spec.replicas()
        named = [str(each) for each in every if wanted.replica(each)]
        self._choice: dict[str, Any] = {
            "replica": named if len(named) < min(len(every), MOST_NAMED) else None,
            "attempt": wanted.attempt,
        }
        self._after = ""

    @property
    def positions(self) -> Positions:
        """An empty mapping: the server marks the position with a text of its own."""
        return {}

    def fresh(self, *, ended: bool) -> Iterator[LogLine]:
        """Yield the lines since the last call (see `services.logs.Reader`)."""
        is_full = True
        while is_full:
            document = self._connection.get(
                self._path, **self._choice, **self._place(), limit=PAGE_LINES, unfinished=ended
            )
            with readings.understanding("output"):
                lines = list(map(_line, document["items"]))
                before, self._after, is_full = self._after, document["after"], document["is_full"]
                if is_full:
                    readings.check_goes_on(before, self._after)
            yield from (line for line in lines if self._wanted.replica(line.replica))

    def _place(self) -> dict[str, Any]:
        """Return the parameters that name the first line to read."""
        first = {} if self._after else {"begin": self._wanted.tail, "since": self._wanted.since}
        return {"after": self._after, **first}


def _line(document: readings.Document) -> LogLine:
    text = document["text"] + (CUT if document["is_cut"] else "")
    return LogLine(ReplicaId.parse(document["replica"]), document["attempt"], text)
