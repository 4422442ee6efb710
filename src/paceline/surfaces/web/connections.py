"""Connections of the server, each of which has to say in time what it wants.

A client may hold a connection and send nothing, or a byte of its headers now and then; it may go on to send a
body long after it was answered. Neither costs more than a connection, and that not for long.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: In which the headers of a request have to come: from its first byte, or the connection's beginning.
HEADER_SECONDS = 20.0
#: For how long the rest of a body is taken, and dropped, after its request was answered: a client that still
#: sends would not read the answer if the connection ended at once.
LINGER_SECONDS = 5.0
#: What is read of a connection at once. Until the application asks for a body, no more than that and 64 KiB
#: is held.
READ_BYTES = 64 << 10


class TimedConnection(H11Protocol):
    """A connection with deadlines."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_lingering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # asyncio's own transports read 256 KiB at once.
            transport.max_size = READ_BYTES
        self._wait(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what comes; once it is a whole head, it has come in time."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()
        elif self._is_idle and (self._deadline is None or self._has_lingered):
            self._wait(HEADER_SECONDS)

    def on_response_complete(self) -> None:
        """Take the rest of the request for some seconds, or wait for the next one."""
        before = self.cycle
        super().on_response_complete()
        if self.cycle is not before:  # The next request was there already.
            self._stop_waiting()
        elif self.conn.their_state is h11.SEND_BODY:
            self._wait(LINGER_SECONDS)
            self._is_lingering = True

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def _has_lingered(self) -> bool:
        """Whether the rest of a body has come, so that the next request is waited for."""
        return self._is_lingering and self.conn.their_state is not h11.SEND_BODY

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(seconds, self._end)

    def _stop_waiting(self) -> None:
        self._is_lingering = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.transport.close()
