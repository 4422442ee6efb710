"""A proxy before an API server of this machine, which cuts connections and makes watches ask for too much.

It speaks TLS with the server and plain HTTP with its client, so that it can read the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import threading
from collections.abc import Callable, Iterator

_HOST = "127.0.0.1"
#: As a load balancer does, it keeps a client waiting while its server starts.
_CONNECT_SECONDS, _RETRY_SECONDS = 25.0, 0.2
_CHUNK = 1 << 16
_VERSION_OF_WATCH = re.compile(rb"^(GET [^ ]*resourceVersion=)\d+([^ ]* HTTP/1\.1)", re.MULTILINE)


class Proxy:
    """A proxy before a port of this machine.

    Attributes:
        port: where it listens.
        cuts: how many connections it has cut.
        to_age: so many of the next watches are to begin so long ago that the server has forgotten it.
    """

    def __init__(self, target: int, context: ssl.SSLContext) -> None:
        self.port = 0
        self.cuts = 0
        self.to_age = 0
        self._target = target
        self._context = context
        self._open: set[asyncio.StreamWriter] = set()
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    @classmethod
    @contextlib.contextmanager
    def before(cls, target: int, context: ssl.SSLContext) -> Iterator[Proxy]:
        """Yield a proxy that runs."""
        proxy = cls(target, context)
        proxy._thread.start()
        proxy._is_ready.wait()
        try:
            yield proxy
        finally:
            proxy._loop.call_soon_threadsafe(proxy._stopped.set)
            proxy._thread.join()

    def cut(self) -> None:
        """Cut all connections as they are."""
        self._loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        self.cuts += len(self._open)
        for writer in self._open:
            writer.transport.abort()

    async def _run(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, _HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_ready.set()
        await self._stopped.wait()
        self._abort()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            there = await self._connected()
            if there is not None:
                await asyncio.gather(_pipe(reader, there[1], self._aged), _pipe(there[0], writer, bytes))
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        deadline = self._loop.time() + _CONNECT_SECONDS
        while self._loop.time() < deadline:
            with contextlib.suppress(OSError):
                return await asyncio.open_connection(_HOST, self._target, ssl=self._context)
            await asyncio.sleep(_RETRY_SECONDS)
        return None

    def _aged(self, request: bytes) -> bytes:
        if not self.to_age or b"watch=" not in request:
            return request
        self.to_age -= 1
        return _VERSION_OF_WATCH.sub(rb"\g<1>1\2", request)


async def _pipe(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, changed: Callable[[bytes], bytes]
) -> None:
    """Carry on what comes, until one side ends."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(changed(chunk))
            await writer.drain()
    writer.close()
