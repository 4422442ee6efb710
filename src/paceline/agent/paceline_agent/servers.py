"""A small HTTP server."""

import contextlib
import io
import itertools
import socket
import threading
import time

from .answers import STATUSES, Stretch
from .pages import Pages
from .requests import parse_request

SERVER_THREADS = 4
REQUEST_BYTES, REQUEST_SECONDS = 8192, 10.0
PAUSE_SECONDS = 0.05  # per thread after each answer; a flood of requests costs a few hundredths of a core
SLOWEST_BYTES = 1 << 20  # bytes per second; a client that reads more slowly does not get the whole file


class Server:
    """Answers on a port, in a few threads that each handle one request at a time.

    The standard library's ``http.server`` would take 7 MB and 60 ms in each replica. The cost of clients is
    bounded by: the number of threads, the bytes of a request, the time until its answer is sent, how much of
    the answer is in memory, and the answers per second.
    """

    def __init__(self, port: int, pages: Pages) -> None:
        """Listen; OSError if that fails."""
        self._pages = pages
        try:
            self._socket = socket.socket(socket.AF_INET6)
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self._listen("::", port)
        except OSError:
            self._socket = socket.socket(socket.AF_INET)
            self._listen("", port)

    def _listen(self, host: str, port: int) -> None:
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
            self._socket.listen(16)
        except OSError:
            self._socket.close()
            raise

    def start(self) -> None:
        """Start the threads that answer."""
        for _ in range(SERVER_THREADS):
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                connection, _ = self._socket.accept()
                with contextlib.closing(connection):
                    self._converse(connection)
            time.sleep(PAUSE_SECONDS)

    def _converse(self, connection: socket.socket) -> None:
        came, data = time.monotonic(), b""
        until = came + REQUEST_SECONDS
        while b"\r\n\r\n" not in data and len(data) < REQUEST_BYTES:
            connection.settimeout(max(0.01, until - time.monotonic()))
            chunk = connection.recv(REQUEST_BYTES)
            if not chunk or time.monotonic() >= until:
                return
            data += chunk
        request = parse_request(data)
        status, kind, body = self._pages.answer(request) if request else (400, "text/plain", b"no HTTP\n")
        head = (
            f"HTTP/1.1 {status} {STATUSES[status]}\r\nContent-Type: {kind}\r\n"
            + ("WWW-Authenticate: Bearer\r\n" if status == 401 else "")
            + f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        until += len(body) / SLOWEST_BYTES
        stretch = Stretch(body, io.BytesIO(), 0) if isinstance(body, bytes) else body
        with contextlib.closing(stretch):
            for piece in itertools.chain([head.encode("ascii")], stretch.pieces()):
                connection.settimeout(max(0.01, until - time.monotonic()))
                connection.sendall(piece)
        if request and status == 200:
            self._pages.heard(request, came)
