"""Whether the machine has nothing else to do.

What is recorded beside other work shows what that does to the job, so its label would be wrong: diagnosis
would find the neighbour, rightly. On a virtual machine others may be guests of the same host: what they take
is stolen time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

#: A machine that rests uses less: its kernel, an editor, a shell.
MOST_CORES = 0.15
#: With less than that taken from it, a run is like any other.
MOST_STOLEN_CORES = 0.1
#: What ends after a run ends within that time.
AFTER_SECONDS = 20.0
BEFORE_SECONDS = 300.0
_LOOK_SECONDS = 2.0
#: Fields of ``cpu`` in ``/proc/stat`` (proc_stat(5)): user, nice, system, irq, softirq, steal.
_BUSY = (0, 1, 2, 5, 6, 7)
_STOLEN = (7,)


class NotAlone(RuntimeError):
    """Something else ran, and has disturbed a run, or would."""


def wait(patience_seconds: float) -> None:
    """Return when nothing else runs.

    Args:
        patience_seconds: how long that may take.

    Raises:
        NotAlone: something runs on and on.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        used = _cores(_BUSY)
        time.sleep(_LOOK_SECONDS)
        if (cores := used()) <= MOST_CORES:
            return
        if time.monotonic() > deadline:
            raise NotAlone(f"other programs use {cores:.2f} cores")


def stolen() -> Callable[[], float]:
    """Return what tells how many cores were stolen on average, from now until it is asked."""
    return _cores(_STOLEN)


def _cores(fields: Sequence[int]) -> Callable[[], float]:
    before, began = _seconds(fields), time.monotonic()
    return lambda: (_seconds(fields) - before) / max(time.monotonic() - began, 1e-9)


def _seconds(fields: Sequence[int]) -> float:
    words = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    return sum(int(words[place]) for place in fields) / os.sysconf("SC_CLK_TCK")
