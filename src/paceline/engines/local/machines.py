"""What this machine has and what it allows this process to do; all of it is detected, not assumed."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import psutil

from paceline.engines.local import cgroups


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts of this machine.

    Attributes:
        cores: the CPUs that this process may use.
        cgroups: the hierarchy in which cgroups can be created; None if that is not possible.
        lacks_cgroups: why cgroups cannot be created; empty if they can.
        lacks_namespaces: why network namespaces cannot be created; empty if they can.
    """

    cores: tuple[int, ...]
    memory_bytes: int
    cgroups: cgroups.Hierarchy | None
    lacks_cgroups: str
    lacks_namespaces: str


def read() -> Machine:
    """Return the facts of this machine."""
    hierarchy, lacks_cgroups = cgroups.detect(Path("/proc/self/mountinfo").read_text())
    return Machine(
        cores=tuple(sorted(os.sched_getaffinity(0))),
        memory_bytes=psutil.virtual_memory().total,
        cgroups=hierarchy,
        lacks_cgroups=lacks_cgroups,
        lacks_namespaces=lacks_namespaces(os.geteuid(), shutil.which),
    )


def lacks_namespaces(user_id: int, which: Callable[[str], str | None]) -> str:
    """Return why network namespaces cannot be created; empty if they can."""
    if user_id != 0:
        return "this needs root"
    tools = [tool for tool in ("ip", "tc", "nsenter") if which(tool) is None]
    if tools:
        return f"{', '.join(tools)} not found (packages iproute2 and util-linux)"
    return ""
