"""The processes of replicas: started, found again, and ended to the last one.

A replica is recognised by the path of its config in the agent's command line, and everything that its command
started by ``PACELINE_RUN_DIR`` in the environment or by the replica's cgroup. Nothing is remembered in
files that could be stale: after a supervisor was killed, the next one looks at what is there.
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

#: What says how many threads a process has and which one of several it is: each replica is told its own.
_OF_A_REPLICA = re.compile(
    r"(?:OMP|OPENBLAS|MKL|NUMEXPR)_NUM_THREADS|TF_NUM_INT(?:RA|ER)OP_THREADS|TF_CONFIG"
    r"|(?:LOCAL_|NODE_|GROUP_|ROLE_)?RANK|(?:LOCAL_|GROUP_|ROLE_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)"
    r"|(?:PET|TORCHELASTIC)_\w+"
)
#: Enters the cgroups given before ``--``, then becomes the command after it.
_ENTER = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"'

#: Each look finds fewer new processes than the last one, but of a command that starts them without end.
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
    """Start an agent in a session of its own; its output and its command's goes to ``log``.

    Raises:
        OSError: the working directory is not there, or nothing more can be started.
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
    """Return the environment for replicas: ours, and our own Python first when its venv was not activated."""
    # The job file says how many threads a replica has, and which it is; not the shell that happens to submit.
    found = {name: value for name, value in inherited.items() if not _OF_A_REPLICA.fullmatch(name)}
    found.pop("PACELINE_STORE", None)  # It may hold a password.
    if sys.prefix != sys.base_prefix and "VIRTUAL_ENV" not in found:
        folder = str(Path(sys.executable).parent)
        path = found.get("PATH", os.defpath)
        if folder not in path.split(os.pathsep):
            found["PATH"] = folder + os.pathsep + path
    return found


def agent_pid(config: Path) -> int | None:
    """Return the process id of the agent that was started with this config; None when there is none."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(config) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                return process.pid
    return None


def members(run_dir: Path, replica_index: tuple[str, int] | None = None) -> set[int]:
    """Return the processes whose environment says that they belong to a run, or to one replica of it."""
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
    """Send a signal to processes; those that are gone already do not matter."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def halt(look_up: Callable[[], set[int]]) -> None:
    """Have processes stand still, also those that they have started while they were looked up."""
    halted: set[int] = set()
    for _ in range(_MOST_LOOKS):
        if not (found := look_up() - halted):
            break
        send(found, signal.SIGSTOP)
        halted |= found


def commands(pids: Iterable[int], agents: set[int]) -> set[int]:
    """Return the processes that are neither agents nor forks of them that have not become a command yet.

    An agent waits for such a fork (``vfork(2)``): were the fork to stand still, so would the agent.
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
    """Waits for processes to end, children or not (``pidfd_open(2)``)."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._pids: dict[int, int] = {}

    def add(self, pid: int) -> bool:
        """Watch a process; return False when it is gone already."""
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        self._pids[descriptor] = pid
        self._poll.register(descriptor, select.POLLIN)
        return True

    def wait(self, timeout_seconds: float) -> list[int]:
        """Return the watched processes that ended within so long; each is reported once."""
        ended = []
        for descriptor, _ in self._poll.poll(max(0, round(timeout_seconds * 1000))):
            self._poll.unregister(descriptor)
            os.close(descriptor)
            ended.append(self._pids.pop(descriptor))
        return ended
