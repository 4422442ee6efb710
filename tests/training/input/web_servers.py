"""A real HTTP server over a folder that serves ranges, and can be told to drop connections."""

import contextlib
import http.server
import re
import threading
from pathlib import Path


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves files by range; drops the connection half-way as often as `server.drops` says."""

    def do_HEAD(self):
        self._answer(send=False)

    def do_GET(self):
        self._answer(send=True)

    def _answer(self, *, send):
        path = self.server.folder / self.path.strip("/")
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first = int(asked[1]) if asked else 0
        end = int(asked[2]) + 1 if asked and asked[2] else len(data)
        part = data[first:end]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if not send:
            return
        self.server.served.append(self.path)
        if self.server.drops > 0:
            self.server.drops -= 1
            part = part[: len(part) // 2]
            self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.write(part)

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serving(folder):
    """Yields the server, with its `url`, what it `served`, and how many answers it is to drop."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.folder, server.drops, server.served = Path(folder), 0, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
