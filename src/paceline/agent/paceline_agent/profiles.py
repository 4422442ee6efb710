"""Profiles of this replica's TensorFlow server, on request."""

import os
import re
import threading
import time
from typing import Any, Optional, Set, Tuple

from .configs import Config, own_port
from .tokens import read_token

TRACE_NAME = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z"
#: Content of the request file: the name of a trace, for how many milliseconds servers are to be profiled for
#: it, and the start time (Unix seconds). All servers start at the same time, so that their profiles show the
#: same steps.
TRACE_REQUEST = re.compile(
    r"^(%s) profile (\d{1,5})(?: (\d{1,12}(?:\.\d{1,3})?))?( everywhere)?\s*$" % TRACE_NAME
)
LONGEST_LEAD_SECONDS = 10.0


class Profiles:
    """Profiles this replica's server on request, in a thread of its own.

    A coordinator asks for profiles ``everywhere``. Agents that are reached over the network do not see the
    folder in which it asks, so the coordinator's agent passes the request on to them.
    """

    def __init__(self, config: Config) -> None:
        run = config.placeholders.get("run_dir", "")
        self._traces = os.path.join(run, "traces") if run else None
        self._port = own_port(config)
        self._replica = "%s-%d.%d" % (config.role, config.index, config.attempt)
        self._asked: Tuple[Any, ...] = ()
        self._thread: Optional[threading.Thread] = None
        self._problems: Set[str] = set()
        self._problem: Optional[str] = None
        self._pages_port = config.metrics_port if config.role == "chief" else None
        self._token_file = config.token_file
        self._others = [
            address.rpartition(":")[0]
            for role, addresses in sorted(config.cluster.items())
            for index, address in enumerate(addresses)
            if (role, index) != (config.role, config.index) and role != "evaluator"
        ]

    def tick(self) -> Optional[str]:
        """Look for a request; return what has gone wrong since the last call, each kind of problem once."""
        if self._traces is not None and self._port is not None:
            self._begin(self._traces, self._port)
        problem, self._problem = self._problem, None
        if problem is None or problem in self._problems:
            return None
        self._problems.add(problem)
        return problem

    def _begin(self, traces: str, port: int) -> None:
        try:
            with open(os.path.join(traces, "request")) as file:
                text = file.read(100)
        except (OSError, UnicodeDecodeError):
            return
        request = TRACE_REQUEST.match(text)
        if request is None or (self._thread and self._thread.is_alive()):
            return
        name, milliseconds, at, everywhere = request.groups()
        if (name, milliseconds, at) == self._asked:
            return
        self._asked = name, milliseconds, at
        if everywhere and self._pages_port is not None:
            path = "/traces/{}?profile={}&at={}".format(name, milliseconds, at or "0")
            arguments = (self._others, self._pages_port, path, read_token(self._token_file))
            threading.Thread(target=self._pass_on, args=arguments, daemon=True).start()
        wait = max(0.0, min(float(at or 0) - time.time(), LONGEST_LEAD_SECONDS))
        taken = (wait, port, traces, name, self._replica, int(milliseconds))
        self._thread = threading.Thread(target=self._take, args=taken, daemon=True)
        self._thread.start()

    def _pass_on(self, *arguments: Any) -> None:
        """Ask the other agents; report once if some cannot be asked."""
        from . import passing

        self._problem = passing.ask(*arguments) or self._problem

    def _take(self, wait: float, *arguments: Any) -> None:
        from . import profiler

        time.sleep(wait)
        try:
            profiler.keep(*arguments)
        except profiler.ProfilerError as error:
            self._problem = str(error)
