"""Connections of the server, with deadlines for what the client has to send.

A client may hold a connection and send nothing, or send a byte of its headers now and then; it may go on
sending a body long after it was answered. Each costs the server one connection, and only for a short time.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: The time for a request's headers, from its first byte or from the beginning of the connection.
HEADER_SECONDS = 20.0
#: How long the rest of a body is read and discarded after its request was answered: a client that is still
#: sending would not read the answer if the connection ended at once.
LINGER_SECONDS = 5.0
#: How much is read from a connection at once. Until the application asks for a body, at most this much and
#: 64 KiB are held.
READ_BYTES = 64 << 10


class TimedConnection(H11Protocol):
    """A connection with deadlines."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_lingering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request's headers."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # asyncio's transports read 256 KiB at once by default.
            transport.max_size = READ_BYTES
        self._wait(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received data, and stop the deadline once the headers are complete."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()
        elif self._is_idle and (self._deadline is None or self._has_lingered):
            self._wait(HEADER_SECONDS)

    def on_response_complete(self) -> None:
        """Read the rest of the request for some seconds, or wait for the next one."""
        before = self.cycle
        super().on_response_complete()
        if self.cycle is not before:  # The next request had already arrived.
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
        """Whether the rest of a body has arrived, so that the next request is awaited."""
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
