"""Loopback ports for the replicas of a job without a network of its own."""

from __future__ import annotations

import random
import socket
from collections.abc import Set

from paceline.errors import EngineError

#: Below the kernel's range for outgoing connections: none can take a port while its replica restarts.
FIRST, LAST = 20_000, 31_999


def choose(count: int, taken: Set[int], generator: random.Random) -> list[int]:
    """Return ports that no process listens on and that no other job uses.

    Raises:
        EngineError: there are not enough free ports.
    """
    chosen: list[int] = []
    candidates = [port for port in range(FIRST, LAST + 1) if port not in taken]
    generator.shuffle(candidates)
    for port in candidates:
        if len(chosen) == count:
            break
        if _is_free(port):
            chosen.append(port)
    if len(chosen) < count:
        raise EngineError(f"only {len(chosen)} of {count} loopback ports are free between {FIRST} and {LAST}")
    return chosen


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
