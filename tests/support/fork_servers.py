"""Python scripts as processes that begin with modules imported: forked from a process that has imported them.

TensorFlow takes seconds of CPU to import. A fork server imports it once and forks each script from there,
with its own arguments, environment, folder and log. Such a process has a pid, takes signals and has an exit
code like any other; it lacks only an interpreter that starts. So tests that are about that do not use it.

A process with threads must not fork: their locks would stay locked in the child. So the server has one
thread, also of the libraries that it has imported, and makes sure of it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

#: NumPy and SciPy start threads as they are imported, and so does the allocator that pyarrow brings.
_ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


class ForkServer:
    """A process that has imported modules, and forks scripts when it is asked to."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *modules],
            env={**environment, **_ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def start(
        self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path
    ) -> Forked:
        """Starts a script, the first of `command`; its output is appended to a file."""
        request = {"command": command, "environment": environment, "folder": str(folder), "log": str(log)}
        return Forked(self, self._ask(request))

    def reap(self, pid: int) -> int:
        """The exit code of a process that has ended, less than 0 for the signal that ended it."""
        return self._ask({"reap": pid})

    def _ask(self, request: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """Ends the server; what it has forked goes on."""
        with self._process:
            pass


class Forked:
    """A process that was forked: the part of `subprocess.Popen` that tests use.

    It is not reaped before its exit code is asked for, so its pid is its own until then.
    """

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._descriptor = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(timeout=0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, which is waited for."""
        if self.returncode is None:
            milliseconds = None if timeout is None else timeout * 1000
            waiting = select.poll()
            waiting.register(self._descriptor, select.POLLIN)
            if not waiting.poll(milliseconds):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = self._server.reap(self.pid)
            os.close(self._descriptor)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal; one that has ended already does not notice."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)


def _serve(modules: Sequence[str]) -> dict[str, Any] | None:
    """Answers requests until there are no more; returns the request of a child to be, in that child."""
    for name in modules:
        importlib.import_module(name)
    threads = os.listdir("/proc/self/task")
    if len(threads) > 1:
        sys.exit(f"error: a process with {len(threads)} threads must not fork; one of {modules} starts them")
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        if "reap" in request:
            _, status = os.waitpid(request["reap"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                return request
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    return None


def _become(request: Mapping[str, Any]) -> tuple[CodeType, dict[str, Any]]:
    """Makes of this process what an interpreter that was just started with a script would be."""
    with open(os.devnull, "rb") as nothing, open(request["log"], "ab") as log:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    faulthandler.enable()
    script = request["command"][0]
    sys.argv[:] = request["command"]
    sys.path[0] = os.path.dirname(script)
    with open(script, encoding="utf-8") as file:
        code = compile(file.read(), script, "exec")
    main = sys.modules["__main__"].__dict__
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]
    main["__file__"] = script
    return code, main


if __name__ == "__main__":
    _request = _serve(sys.argv[1:])
    if _request is None:
        os._exit(0)  # at once: taking down what was imported takes seconds
    exec(*_become(_request))
