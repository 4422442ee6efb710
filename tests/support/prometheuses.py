"""A real Prometheus for tests: that of the PATH, or what ``tests/monitoring/fetch-prometheus`` unpacked."""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from support import ports


def program(name: str) -> str:
    """Return ``prometheus`` or ``promtool``; skip the test where there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paceline-prometheus"
    unpacked = Path(os.environ.get("PACELINE_PROMETHEUS") or cache) / "usr" / "bin"
    found = shutil.which(name) or shutil.which(name, path=str(unpacked))
    if found is None:
        pytest.skip(f"no {name}: tests/monitoring/fetch-prometheus fetches it")
    return found


@contextlib.contextmanager
def serving(pages: Mapping[str, Callable[[], str]]) -> Iterator[str]:
    """Answer paths with texts; yield ``host:port``."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages[self.path]().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextlib.contextmanager
def running(config: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """Run a Prometheus; yield its URL."""
    path = folder / "prometheus.yaml"
    path.write_text(yaml.safe_dump(dict(config)))
    (address,) = ports.addresses(1)
    command = [
        program("prometheus"),
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    log = folder / "prometheus.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        until(lambda: _is_ready(f"http://{address}"), log.read_text)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(240)


def until(holds: Callable[[], Any], what: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.25)


def queried(url: str, query: str) -> list[Any]:
    """Return the vector that a query gives now."""
    answer = httpx2.get(f"{url}/api/v1/query", params={"query": query}).json()
    assert answer["status"] == "success", (query, answer)
    return list(answer["data"]["result"])


def _is_ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/-/ready").status_code == 200
    except httpx2.HTTPError:
        return False
