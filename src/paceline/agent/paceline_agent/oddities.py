"""Reports what a command does that its exit code does not show.

It may flood its log, outlive its trainer, or listen at another port than the one at which others look for it.
"""

import os
import stat
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

#: Output is a flood if it exceeds both this size and this mean rate since the command began.
FLOOD_BYTES = 50 << 20
FLOOD_BYTES_PER_SECOND = 256 << 10
#: A command may go on this long after its trainer has ended: to save, to evaluate, to clean up.
OUTLIVING_SECONDS = 60.0
#: A TensorFlow server listens well before this time: importing TensorFlow takes a few seconds.
LISTENING_SECONDS = 60.0
#: Start of the message that a script uses other addresses than the job's; rules match it.
NOT_THE_JOBS = "its cluster is not the job's: "
_STDOUT = 1
#: State in `/proc/net/tcp` of a socket that listens.
_LISTENS = "0A"
#: How much of a process's command line is read, and how much is shown.
_READ_BYTES, SHOWN_CHARACTERS = 4096, 100


class Watch:
    """Checks a command from time to time.

    Args:
        reports: the report file; a file beside it holds the number of the process that trains.
        began: when the command began, by the monotonic clock.
        output: the descriptor that the command prints to.
        port: the port at which others look for its server; None: there is none.
    """

    def __init__(self, reports: str, began: float, output: int = _STDOUT, port: Optional[int] = None) -> None:
        self._owner_file = reports + ".owner"
        self._began = began
        self._output = output
        self._has_flooded = False
        self._trainer = 0
        self._ended_at: Optional[float] = None
        self._port = port

    def look(self, now: float, pids: Callable[[], Iterable[int]] = tuple) -> List[Dict[str, Any]]:
        """Return spool lines about what is new; each is returned once.

        Args:
            now: the time by the monotonic clock.
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

        Only a file has a size. In a container the output is a pipe, and the operator judges what it reads
        from it.
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
        """Return a message if the process that trained ended some time ago."""
        trainer = self._owner()
        if trainer != self._trainer:
            self._trainer, self._ended_at = trainer, None
        if not trainer or is_alive(trainer):
            return None
        if self._ended_at is None:
            self._ended_at = now
        if now - self._ended_at < OUTLIVING_SECONDS:
            return None
        self._ended_at = float("inf")  # Reported.
        return "process %d, which trained, has ended; the command goes on" % trainer

    def _elsewhere(self, now: float, pids: Callable[[], Iterable[int]]) -> Optional[str]:
        """Return a message with the ports at which its processes listen if its own port is not among them."""
        if self._port is None or now - self._began < LISTENING_SECONDS:
            return None
        port, found = self._port, listening(pids())
        if found is not None and not found:
            return None
        self._port = None  # Checked, or impossible to check.
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
    """Return the ports at which processes listen; None: one process cannot be inspected."""
    ports: Set[int] = set()
    for pid in pids:
        place = os.path.join(proc, str(pid))
        try:
            sockets = _opened(place)
            for table in ("tcp", "tcp6"):
                ports |= _ports(os.path.join(place, "net", table), sockets)
        except FileNotFoundError:  # The process has ended.
            continue
        except OSError:
            return None
    return ports


def holder(port: int, proc: str = "/proc") -> Optional[str]:
    """Return which process listens at a port, as text that is safe to show; None: no process does."""
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
    """Return the open files of a process; OSError if they cannot be listed."""
    found: Set[str] = set()
    for name in os.listdir(os.path.join(place, "fd")):
        try:
            found.add(os.readlink(os.path.join(place, "fd", name)))
        except OSError:  # It was closed in the meantime.
            continue
    return found


def command(path: str, gone: str = "unknown") -> str:
    """Return the beginning of a command line from its file in ``/proc``, made printable; or ``gone``."""
    try:
        with open(path, "rb") as file:
            words = file.read(_READ_BYTES).replace(b"\0", b" ").strip().decode("utf-8", "backslashreplace")
    except OSError:
        words = ""
    return "".join(each if each.isprintable() else "?" for each in words)[:SHOWN_CHARACTERS] or gone


def _ports(path: str, sockets: Set[str]) -> Set[int]:
    """Return the ports at which these sockets listen."""
    return {port for socket, port in _waiting(path) if socket in sockets}


def _waiting(path: str) -> Iterator[Tuple[str, int]]:
    """Yield the listening sockets of a kernel table, with their ports (proc(5))."""
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
    """Return whether a process runs; a zombie that waits to be reaped does not."""
    try:
        with open(os.path.join(proc, str(pid), "stat"), "rb") as file:
            state = file.read().rpartition(b") ")[2][:1]
    except OSError:
        return False
    return state not in (b"Z", b"X", b"")
