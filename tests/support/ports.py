"""Loopback ports for servers that a test starts a moment later.

A port that the system names (``bind`` to port 0) is free only until another process asks. A test that lets go
of it before its server listens can lose it: to a connection of any process, or to another test.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

#: Below the ports of local jobs (`engines.local.ports`), and so below those of outgoing connections.
FIRST, LAST = 10_000, 19_999
#: One file for each port; the process that has it locked has the port.
_FOLDER = Path(tempfile.gettempdir()) / f"paceline-test-ports-{os.getuid()}"
_taken: list[int] = []


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens.

    No other test, of this or another run, gets them while this process lives.
    """
    _FOLDER.mkdir(exist_ok=True)
    candidates = list(range(FIRST, LAST + 1))
    random.SystemRandom().shuffle(candidates)
    ports: list[int] = []
    for port in candidates:
        if len(ports) == count:
            break
        if _is_reserved(port):
            ports.append(port)
    assert len(ports) == count, f"only {len(ports)} of {count} ports are free"
    return ports


def free_port() -> int:
    """Return one such port."""
    return free_ports(1)[0]


def joined(count: int) -> str:
    """Return such ports, separated by commas."""
    return ",".join(map(str, free_ports(count)))


def addresses(count: int, host: str = "127.0.0.1") -> list[str]:
    """Return addresses with such ports."""
    return [f"{host}:{port}" for port in free_ports(count)]


def _is_reserved(port: int) -> bool:
    """Reserve a port if it is free; return whether that succeeded."""
    descriptor = os.open(_FOLDER / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        os.close(descriptor)
        return False
    _taken.append(descriptor)  # It stays open, and so locked.
    return True
