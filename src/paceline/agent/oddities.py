"""Says what a command does that its exit code does not show.

It floods its log, outlives its trainer, or listens somewhere else than others look for it.

It runs under Python 3.6 and later, hence the old-fashioned spelling.
"""

import os
import stat
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

#: Output that is worth a word: so much of it, and so much a second since the command began.
FLOOD_BYTES = 50 << 20
FLOOD_BYTES_PER_SECOND = 256 << 10
#: A command may go on for so long after its trainer: to save, to evaluate, to clean up.
OUTLIVING_SECONDS = 60.0
#: A server of TensorFlow listens long before: importing it takes some seconds.
LISTENING_SECONDS = 60.0
#: How the message begins that the addresses of a script are others; rules go by it.
NOT_THE_JOBS = "its cluster is not the job's: "
_STDOUT = 1
#: In `/proc/net/tcp`: a socket that waits for connections.
_LISTENS = "0A"
#: So much is read and shown of a process's command.
_READ_BYTES, SHOWN_CHARACTERS = 4096, 100


class Watch:
    """Looks at a command now and then.

    Args:
        reports: the report file; the process that trains has its number in a file beside it.
        began: when the command began, by the monotonic clock.
        output: the descriptor of what the command prints to.
        port: at which others look for its server; None: at none.
    """

    def __init__(self, reports: str, began: float, output: int = _STDOUT, port: Optional[int] = None) -> None:
        self._owner_file = reports + ".owner"
        self._began = began
        self._output = output
        self._has_flooded = False
        self._trainer = 0
        self._ended_at = None  # type: Optional[float]
        self._port = port

    def look(self, now: float, pids: Callable[[], Iterable[int]] = tuple) -> List[Dict[str, Any]]:
        """Return lines for the spool on what is new; each is said once.

        Args:
            now: by the monotonic clock.
            pids: returns the processes of the command.
        """
        found = []
        for kind, message in (
            ("output", self._flood(now)),
            ("outlived", self._outlived(now)),
            ("instrumentation", self._elsewhere(now, pids)),
        ):
            if message is not None:
                found.append({"type": kind, "at": time.time(), "message": message})
        return found

    def _flood(self, now: float) -> Optional[str]:
        """Return how much was printed if that is a flood.

        Only a file has a size. In a container output is a pipe, and the operator judges what it reads of it.
        """
        status = os.fstat(self._output)
        seconds = now - self._began
        if self._has_flooded or not stat.S_ISREG(status.st_mode) or status.st_size < FLOOD_BYTES:
            return None
        if status.st_size < FLOOD_BYTES_PER_SECOND * seconds:
            return None
        self._has_flooded = True
        return "%.0f MiB of output in %.0f s" % (status.st_size / 1048576.0, seconds)

    def _outlived(self, now: float) -> Optional[str]:
        """Return that the process that trained ended some time ago."""
        trainer = self._owner()
        if trainer != self._trainer:
            self._trainer, self._ended_at = trainer, None
        if not trainer or is_alive(trainer):
            return None
        if self._ended_at is None:
            self._ended_at = now
        if now - self._ended_at < OUTLIVING_SECONDS:
            return None
        self._ended_at = float("inf")  # Said.
        return "process %d, which trained, has ended; the command goes on" % trainer

    def _elsewhere(self, now: float, pids: Callable[[], Iterable[int]]) -> Optional[str]:
        """Return at which ports its processes listen first, if it is not at its own."""
        if self._port is None or now - self._began < LISTENING_SECONDS:
            return None
        port, found = self._port, listening(pids())
        if found is not None and not found:
            return None
        self._port = None  # It was looked at, or never can be.
        if found is None or port in found:
            return None
        ports = ", ".join(str(each) for each in sorted(found)[:5])
        return "%snothing listens at its port %d; its processes listen at %s" % (NOT_THE_JOBS, port, ports)

    def _owner(self) -> int:
        try:
            with open(self._owner_file) as file:
                return int(file.read(20) or 0)
        except (OSError, ValueError):
            return 0


def listening(pids: Iterable[int], proc: str = "/proc") -> Optional[Set[int]]:
    """Return the ports at which processes wait for connections; None: that cannot be seen of one of them."""
    found = set()  # type: Set[int]
    for pid in pids:
        place = os.path.join(proc, str(pid))
        try:
            sockets = _opened(place)
            for table in ("tcp", "tcp6"):
                found |= _ports(os.path.join(place, "net", table), sockets)
        except FileNotFoundError:  # The process has ended.
            continue
        except OSError:
            return None
    return found


def holder(port: int, proc: str = "/proc") -> Optional[str]:
    """Return which process waits for connections at a port, as text that is safe to show; None: none does."""
    sockets = {
        socket
        for table in ("tcp", "tcp6")
        for socket, each in _waiting(os.path.join(proc, "self", "net", table))
        if each == port
    }
    if not sockets:
        return None
    for name in filter(str.isdigit, os.listdir(proc)):
        try:
            held = _opened(os.path.join(proc, name))
        except OSError:  # It has ended, or is another user's.
            continue
        if held & sockets:
            return "process %s (%s)" % (name, command(os.path.join(proc, name, "cmdline")))
    return "a process of another user"


def _opened(place: str) -> Set[str]:
    """Return what a process has open; OSError where that cannot be seen."""
    found = set()  # type: Set[str]
    for name in os.listdir(os.path.join(place, "fd")):
        try:
            found.add(os.readlink(os.path.join(place, "fd", name)))
        except OSError:  # It was closed meanwhile.
            continue
    return found


def command(path: str, gone: str = "unknown") -> str:
    """Return the beginning of a command as it may be shown, by its file in ``/proc``; or ``gone``."""
    try:
        with open(path, "rb") as file:
            words = file.read(_READ_BYTES).replace(b"\0", b" ").strip().decode("utf-8", "backslashreplace")
    except OSError:
        words = ""
    return "".join(each if each.isprintable() else "?" for each in words)[:SHOWN_CHARACTERS] or gone


def _ports(path: str, sockets: Set[str]) -> Set[int]:
    """Return the ports of sockets that wait for connections."""
    return {port for socket, port in _waiting(path) if socket in sockets}


def _waiting(path: str) -> Iterator[Tuple[str, int]]:
    """Yield the sockets that wait for connections, with their ports, by a table of the kernel (proc(5))."""
    try:
        with open(path) as file:
            lines = file.readlines()[1:]
    except FileNotFoundError:  # A kernel without IPv6.
        return
    for line in lines:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTENS:
            yield "socket:[%s]" % fields[9], int(fields[1].rpartition(":")[2], 16)


def is_alive(pid: int, proc: str = "/proc") -> bool:
    """Return whether a process runs: one that has ended may wait for its parent to ask for its status."""
    try:
        with open(os.path.join(proc, str(pid), "stat"), "rb") as file:
            state = file.read().rpartition(b") ")[2][:1]
    except OSError:
        return False
    return state not in (b"Z", b"X", b"")
