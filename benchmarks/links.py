"""A web server over a folder behind a link of a given speed: a token bucket that all its answers share."""

from __future__ import annotations

import contextlib
import http.server
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_PIECE_BYTES = 16_384


class Link:
    """Lets so many bytes pass a second; None: as many as come."""

    def __init__(self, bytes_per_second: float | None) -> None:
        self._bytes_per_second = bytes_per_second
        self._lock = threading.Lock()
        self._free_at = time.monotonic()

    def pass_on(self, count: int) -> None:
        """Wait until these bytes have passed."""
        if self._bytes_per_second is None:
            return
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic()) + count / self._bytes_per_second
            until = self._free_at
        time.sleep(max(0.0, until - time.monotonic()))


class _Handler(http.server.BaseHTTPRequestHandler):
    """Serves files of the folder, whole or a range."""

    folder: Path
    link: Link

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_GET(self) -> None:
        path = self.folder / Path(self.path).name
        self._answer(path.read_bytes() if path.is_file() else b"")

    def _answer(self, data: bytes) -> None:
        path = self.folder / Path(self.path).name
        if not path.is_file():
            self.send_error(404)
            return
        size = path.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first = int(asked[1]) if asked else 0
        end = min(size, int(asked[2]) + 1) if asked and asked[2] else size
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - first))
        self.end_headers()
        with contextlib.suppress(OSError):
            for start in range(first, min(end, len(data)), _PIECE_BYTES):
                piece = data[start : min(start + _PIECE_BYTES, end)]
                self.link.pass_on(len(piece))
                self.wfile.write(piece)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def serving(folder: Path, bytes_per_second: float | None) -> Iterator[str]:
    """Serve the files of a folder; yield the URL before their names."""
    handler = type("Handler", (_Handler,), {"folder": folder, "link": Link(bytes_per_second)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.1,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
