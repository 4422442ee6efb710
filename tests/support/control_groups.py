"""Cgroups for tests, of the version that this machine has, and the marks of tests that need them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from paceline.engines.local import cgroups
from paceline.engines.local.cgroups import CgroupLimits, Hierarchy

F = TypeVar("F", bound=Callable[..., Any])

HIERARCHY, _REASON = cgroups.detect(Path("/proc/self/mountinfo").read_text())
#: Of tests of what cgroups measure or enforce. They also run under version 2 (``with-cgroup-v2``).
CGROUPS = [
    pytest.mark.cgroups,
    pytest.mark.skipif(HIERARCHY is None, reason=f"no cgroups can be made here: {_REASON}"),
]


@dataclasses.dataclass(frozen=True)
class ControlGroup:
    """A cgroup below that of Paceline."""

    hierarchy: Hierarchy
    name: str

    def enter(self) -> None:
        """Move this process into the group."""
        for folder in self.hierarchy.folders(self.name):
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def read(self, controller: str, v1: str, v2: str) -> str:
        """Return what a file of the group says; it has a name in each version."""
        name = v1 if self.hierarchy.version == 1 else v2
        return (self.hierarchy.roots[controller] / self.name / name).read_text()


def needed(test: F) -> F:
    """Mark one test."""
    for mark in CGROUPS:
        test = mark(test)
    return test


@contextlib.contextmanager
def made(limits: CgroupLimits) -> Iterator[ControlGroup]:
    """Give a group with limits, and remove it with all that is in it."""
    assert HIERARCHY is not None
    name = f"test-{os.getpid()}-{time.monotonic_ns()}"
    HIERARCHY.create(name, limits)
    try:
        yield ControlGroup(HIERARCHY, name)
    finally:
        HIERARCHY.remove(name)
