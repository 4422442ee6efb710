"""Starts, finds and ends the processes of replicas.

An agent is recognised by the path of its configuration in its command line. The processes that its command
started are recognised by ``PACELINE_RUN_DIR`` in their environment or by the replica's cgroup. No process ids
are kept in files, which could be stale: after a supervisor was killed, the next one looks at the running
processes.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import psutil

#: Variables that set a process's threads or its place in a cluster: each replica gets its own values.
_OF_A_REPLICA = re.compile(
    r"(?:OMP|OPENBLAS|MKL|NUMEXPR)_NUM_THREADS|TF_NUM_INT(?:RA|ER)OP_THREADS|TF_CONFIG"
    r"|(?:LOCAL_|NODE_|GROUP_|ROLE_)?RANK|(?:LOCAL_|GROUP_|ROLE_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)"
    r"|(?:PET|TORCHELASTIC)_\w+"
)
#: A shell script that enters the cgroups named before ``--``, then executes the command after it.
_ENTER = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"'

#: The most lookups of `halt`. Each finds fewer new processes, unless a command starts them endlessly.
_MOST_LOOKS = 100


def start(
    config: Path,
    *,
    agent: Path,
    log: Path,
    working_dir: Path,
    cgroup_files: Sequence[Path],
    namespace: Path | None,
) -> subprocess.Popen[bytes]:
    """Start an agent in a session of its own; it and its command write their output to ``log``.

    Raises:
        OSError: the working directory does not exist, or no process can be started.
    """
    command = ["/bin/sh", "-c", _ENTER, "paceline-enter", *map(str, cgroup_files), "--"]
    if namespace is not None:
        command += ["nsenter", f"--net={namespace}"]
    command += [sys.executable, "-I", "-S", str(agent), str(config)]
    with log.open("ab", buffering=0) as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=working_dir,
            env=environment(os.environ),
        )


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for replicas: the inherited one without variables specific to a replica.

    If Paceline runs from a virtual environment that is not activated, its Python comes first in ``PATH``.
    """
    # The job file defines a replica's threads and identity, not the shell from which the job was submitted.
    found = {name: value for name, value in inherited.items() if not _OF_A_REPLICA.fullmatch(name)}
    found.pop("PACELINE_STORE", None)  # It may hold a password.
    if sys.prefix != sys.base_prefix and "VIRTUAL_ENV" not in found:
        folder = str(Path(sys.executable).parent)
        path = found.get("PATH", os.defpath)
        if folder not in path.split(os.pathsep):
            found["PATH"] = folder + os.pathsep + path
    return found


def agent_pid(config: Path) -> int | None:
    """Return the process id of the agent that was started with this configuration; None if there is none."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(config) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                return process.pid
    return None


def members(run_dir: Path, replica_index: tuple[str, int] | None = None) -> set[int]:
    """Return the processes that belong to a run, or to one replica of it, according to their environment."""
    wanted = {"PACELINE_RUN_DIR": str(run_dir)}
    if replica_index is not None:
        wanted |= {"PACELINE_ROLE": replica_index[0], "PACELINE_INDEX": str(replica_index[1])}
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if all(environment.get(name) == value for name, value in wanted.items()):
                found.add(process.pid)
    return found - {os.getpid()}


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes; processes that have already ended are ignored."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def halt(look_up: Callable[[], set[int]]) -> None:
    """Stop processes (SIGSTOP), including those that they start during the lookup."""
    halted: set[int] = set()
    for _ in range(_MOST_LOOKS):
        if not (found := look_up() - halted):
            break
        send(found, signal.SIGSTOP)
        halted |= found


def commands(pids: Iterable[int], agents: set[int]) -> set[int]:
    """Return the processes that are neither agents nor forks of agents that have not yet executed a command.

    An agent waits for its fork (``vfork(2)``), so stopping the fork would stop the agent too.
    """
    found = set()
    for pid in set(pids) - agents:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            parent = process.ppid()
            if parent not in agents or process.cmdline() != psutil.Process(parent).cmdline():
                found.add(pid)
    return found


def kill(pids: Iterable[int]) -> None:
    """End processes at once."""
    send(pids, signal.SIGKILL)


def terminate(pid: int) -> None:
    """Ask a process to end."""
    send([pid], signal.SIGTERM)


class ExitWatch:
    """Waits for processes to end, whether or not they are children of this one (``pidfd_open(2)``)."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._pids: dict[int, int] = {}

    def add(self, pid: int) -> bool:
        """Watch a process; return False if it has already ended."""
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        self._pids[descriptor] = pid
        self._poll.register(descriptor, select.POLLIN)
        return True

    def wait(self, timeout_seconds: float) -> list[int]:
        """Return the watched processes that end within ``timeout_seconds``; each is returned once."""
        ended = []
        for descriptor, _ in self._poll.poll(max(0, round(timeout_seconds * 1000))):
            self._poll.unregister(descriptor)
            os.close(descriptor)
            ended.append(self._pids.pop(descriptor))
        return ended
