"""The answers to clients."""

import contextlib
import itertools
import json
import math
import os
import re
import threading
import time
from typing import Sequence

from .answers import NOT_ALLOWED, NOTHING, Answer, Stretch, open_file
from .configs import Config
from .metrics import Metrics
from .profiles import TRACE_NAME
from .requests import Request
from .tokens import is_same, read_token

PAGE_BYTES = 1 << 20  # of the spool in one answer
FILE_BYTES = 1 << 26
MOST_NAMES = 10_000  # of trace files in one answer
TRACE_REQUEST_SECONDS = 60.0
TRACE_PATH = re.compile(r"^/traces(?:/(%s)(?:/([a-z]+-\d+\.\d+\.(?:parquet|zip|profile)))?)?$" % TRACE_NAME)


class Pages:
    """The answers to clients: metrics for all; spool, traces and variables for those with the job's token.

    A request for only the end of the spool also gets the earlier lines about the script (``seen``), in front.
    """

    def __init__(self, config: Config, metrics: Metrics, seen: Sequence[bytes] = ()) -> None:
        self._metrics, self._spool, self._seen = metrics, config.spool, seen
        self._run = config.placeholders.get("run_dir", "")
        self._linger_seconds = config.linger_seconds
        self._token = read_token(config.token_file) if config.metrics_port is not None else None
        self._read_to, self._expected_until = 0, -math.inf
        self._last_came, self._hearing = -math.inf, threading.Lock()
        self._request_until = self._left_until()

    def _left_until(self) -> float:
        """Return when to remove a request that already exists; never if there is none.

        An earlier agent of this replica may have left it. Or it is new: a trace may be requested while an
        agent starts, and on one machine all replicas share the folder.
        """
        try:
            left = os.stat(os.path.join(self._run, "traces", "request")).st_mtime
        except OSError:
            return math.inf
        return time.monotonic() + left + TRACE_REQUEST_SECONDS - time.time()

    def answer(self, request: Request) -> Answer:
        """Return status, content type and body."""
        if request.path == "/metrics" and request.method == "GET":
            return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.text().encode("utf-8")
        if not self.admits(request):
            return NOT_ALLOWED
        trace = TRACE_PATH.match(request.path)
        if request.method == "POST" and trace and trace.group(1) and not trace.group(2):
            wanted = trace.group(1)
            if request.number("profile") is not None:
                wanted += " profile {} {}".format(request.query["profile"], request.query.get("at", "0"))
            return self._ask(wanted)
        if request.method != "GET":
            return 405, "text/plain", b"only GET, and POST /traces/NAME\n"
        if request.path == "/spool":
            return self._page(request)
        if request.path == "/variables.json":
            return self._file("variables.json")
        if trace and trace.group(2):
            return self._file(os.path.join("traces", trace.group(1), trace.group(2)))
        if trace:
            return self._names(os.path.join("traces", trace.group(1) or ""))
        return NOTHING

    def admits(self, request: Request) -> bool:
        """Return whether a request has the job's token; a job without one admits all who reach the port."""
        return self._token is None or (bool(self._token) and is_same(request.token, self._token))

    def _page(self, request: Request) -> Answer:
        """Return a section of the spool after a line that says where it begins."""
        offset, last = request.number("offset") or 0, request.number("last")
        promised = request.promised_seconds()
        if promised is not None:  # set now: this answer may be the last event before the command ends
            self._expected_until = time.monotonic() + min(promised, self._linger_seconds)
        try:
            file, size = open_file(self._spool)
        except FileNotFoundError:
            return 200, "application/x-ndjson", page_head(offset, 0)
        if last is None:
            file.seek(offset)
            stretch = Stretch(page_head(offset, size), file, max(0, min(PAGE_BYTES, size - offset)))
            return 200, "application/x-ndjson", stretch
        with file:
            if last < size:
                offset = file.seek(size - last - 1)
                offset += len(file.readline(PAGE_BYTES))
            file.seek(offset)
            data = file.read(PAGE_BYTES)
        before = b"".join(line for line in tuple(self._seen) if line not in data)
        return 200, "application/x-ndjson", page_head(offset - len(before), size) + before + data

    def _file(self, name: str) -> Answer:
        try:
            file, size = open_file(os.path.join(self._run, name))
        except OSError:
            return NOTHING
        if size > FILE_BYTES:
            file.close()
            return 413, "text/plain", b"the file is too large\n"
        return 200, "application/octet-stream", Stretch(b"", file, size)

    def _names(self, folder: str) -> Answer:
        try:
            with os.scandir(os.path.join(self._run, folder)) as entries:
                names = sorted(each.name for each in itertools.islice(entries, MOST_NAMES))
            names = [name for name in names if name[:1] != "."]
        except OSError:
            names = []
        return 200, "application/json", json.dumps(names).encode("ascii")

    def _ask(self, wanted: str) -> Answer:
        """Write a request for a trace where trainers and `Profiles` look for it."""
        path = os.path.join(self._run, "traces", "request")
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".agent", "w") as file:
                file.write(wanted + "\n")
            os.rename(path + ".agent", path)
        except OSError as error:
            return 400, "text/plain", f"{path} cannot be written: {error}\n".encode("utf-8", "replace")
        self._request_until = time.monotonic() + TRACE_REQUEST_SECONDS
        return 202, "application/json", b"{}"

    def tidy(self, now: float) -> None:
        """Remove a request for a trace after a time by which every trainer has seen it.

        The request is not meant for trainers that start later.
        """
        if now >= self._request_until:
            self._request_until = math.inf
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._run, "traces", "request"))

    def heard(self, request: Request, came: float) -> None:
        """Note that an answer has arrived: a reader that asks from an offset has everything before it.

        Of two answers to one reader the later may be noted first, by another thread: the request that came
        last counts.
        """
        with self._hearing:
            if request.promised_seconds() is not None and came >= self._last_came:
                self._last_came, self._read_to = came, request.number("offset") or 0

    def is_awaited(self, now: float) -> bool:
        """Return whether a reader that promised to return has not yet read the whole spool."""
        try:
            return now < self._expected_until and self._read_to < os.path.getsize(self._spool)
        except OSError:
            return False


def page_head(offset: int, size: int) -> bytes:
    """Return the line that says where a section of the spool begins."""
    head = {"type": "page", "at": time.time(), "offset": offset, "size": size}
    return json.dumps(head).encode("ascii") + b"\n"
