"""Creates, limits, empties and removes the cgroups of replicas, under cgroup v1 and v2.

A group's path is relative to ``paceline`` in each hierarchy, so all controllers of v1 use the same path.
Sources: the kernel's ``admin-guide/cgroup-v1`` (``cpusets``, ``memory``), ``scheduler/sched-bwc`` and
``admin-guide/cgroup-v2``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.errors import EngineError

V1_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
V2_CONTROLLERS = ("cpu", "cpuset", "memory")
#: The kernel's default period of the CPU bandwidth controller.
PERIOD_MICROSECONDS = 100_000
#: Files that only a kernel has that counts what groups swap out.
_SWAP_FILES = ("memory.swap.max", "memory.memsw.limit_in_bytes")
#: The kernel refuses quotas below one millisecond.
MIN_QUOTA_MICROSECONDS = 1_000


#: The kernel's default CPU shares (``cpu.shares`` of v1) and CPU weight (``cpu.weight`` of v2).
SHARES, WEIGHT = 1024, 100
#: The largest shares and weight that the kernel accepts.
MOST_SHARES, MOST_WEIGHT = 262_144, 10_000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CgroupLimits:
    """Limits of a group; None or empty means no limit.

    Attributes:
        weight: the group's share of contended cores, as a multiple of the default share.
    """

    cpu_cores: float | None = None
    cores: tuple[int, ...] = ()
    memory_bytes: int | None = None
    weight: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where groups are created: the cgroup version, and the folder ``paceline`` of each controller."""

    version: int
    roots: Mapping[str, Path]

    def folders(self, group: str) -> tuple[Path, ...]:
        """Return the distinct folders of a group."""
        return tuple(dict.fromkeys(root / group for root in self.roots.values()))

    def create(self, group: str, limits: CgroupLimits) -> None:
        """Create a group with all its parents, or set the limits of an existing one.

        Raises:
            EngineError: the kernel refused.
        """
        try:
            for root in self.roots.values():
                _make(root, group, self.version)
            self._write(group, _settings(self.version, limits))
        except OSError as error:
            raise EngineError(f"cannot make the cgroup {group}: {error}") from error

    def limit(self, group: str, limits: CgroupLimits) -> None:
        """Set the limits of an existing group, and remove limits that no longer apply.

        A cpuset is never removed: the group's processes have threads on those cores.

        Raises:
            EngineError: the kernel refused, or there is no such group.
        """
        try:
            self._write(group, [*_lifted(self.version, limits), *_settings(self.version, limits)])
        except OSError as error:
            raise EngineError(f"the limits of the cgroup {group} cannot be set: {error}") from error

    def _write(self, group: str, settings: Sequence[tuple[str, str, str]]) -> None:
        for controller, name, value in settings:
            path = self.roots[controller] / group / name
            if name not in _SWAP_FILES or path.exists():
                path.write_text(value)

    def pids(self, group: str) -> set[int]:
        """Return the processes in a group and below it."""
        found: set[int] = set()
        for folder in self.folders(group):
            for procs in [folder / "cgroup.procs", *folder.glob("**/cgroup.procs")]:
                with contextlib.suppress(FileNotFoundError, OSError):
                    found.update(int(pid) for pid in procs.read_text().split())
        return found

    def oom_kills(self, group: str) -> int:
        """Return how many processes of a group the kernel has killed for memory; 0 if there is no counter."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        words = _read(self.roots["memory"] / group / name).split()
        counts = dict(zip(words[::2], words[1::2], strict=False))
        return int(counts.get("oom_kill", 0))

    def remove(self, group: str, *, patience_seconds: float = 5.0) -> None:
        """End every process in a group, and remove the group with its descendants.

        Raises:
            EngineError: the group could not be removed in time.
        """
        deadline = time.monotonic() + patience_seconds
        while True:
            for pid in self.pids(group):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            left = [folder for folder in self.folders(group) if not _remove_tree(folder)]
            if not left:
                return
            if time.monotonic() > deadline:
                raise EngineError(f"the cgroup {left[0]} cannot be removed: it is still in use")
            time.sleep(0.02)


def detect(mountinfo: str) -> tuple[Hierarchy | None, str]:
    """Return the hierarchy that this process may write to, or None and the reason.

    Args:
        mountinfo: the text of ``/proc/self/mountinfo``.
    """
    v1, v2 = _mounts(mountinfo)
    if v2 is not None and set(V2_CONTROLLERS) <= set(_read(v2 / "cgroup.controllers").split()):
        hierarchy = Hierarchy(2, {controller: v2 / "paceline" for controller in V2_CONTROLLERS})
    elif all(controller in v1 for controller in V1_CONTROLLERS):
        hierarchy = Hierarchy(1, {controller: v1[controller] / "paceline" for controller in V1_CONTROLLERS})
    else:
        return None, "no cgroup hierarchy with cpu, cpuset and memory is mounted"
    probe = f"probe-{os.getpid()}-{threading.get_native_id()}"  # Other threads may probe at the same time.
    try:
        hierarchy.create(probe, CgroupLimits())
        hierarchy.remove(probe)
    except EngineError as error:
        return None, error.message
    return hierarchy, ""


def _mounts(mountinfo: str) -> tuple[dict[str, Path], Path | None]:
    v1: dict[str, Path] = {}
    v2 = None
    for line in mountinfo.splitlines():
        fields, dash, rest = line.partition(" - ")
        kind, _, options = [*rest.split(" ", 2), "", "", ""][:3]
        places = fields.split(" ")
        if not dash or not kind.startswith("cgroup") or len(places) < 5:
            continue
        folder = Path(places[4])
        if kind == "cgroup2":
            v2 = folder
        else:
            v1.update({option: folder for option in options.split(",") if option in V1_CONTROLLERS})
    return v1, v2


def _settings(version: int, limits: CgroupLimits) -> list[tuple[str, str, str]]:
    """Return (controller, file, value) for each limit."""
    settings = []
    if limits.cpu_cores is not None:
        quota = max(MIN_QUOTA_MICROSECONDS, round(limits.cpu_cores * PERIOD_MICROSECONDS))
        if version == 2:
            settings.append(("cpu", "cpu.max", f"{quota} {PERIOD_MICROSECONDS}"))
        else:
            settings.append(("cpu", "cpu.cfs_period_us", str(PERIOD_MICROSECONDS)))
            settings.append(("cpu", "cpu.cfs_quota_us", str(quota)))
    if limits.cores:
        settings.append(("cpuset", "cpuset.cpus", ",".join(map(str, limits.cores))))
    if limits.memory_bytes is not None:
        settings += _memory(version, str(limits.memory_bytes))
    if limits.weight != 1:
        settings.append(_weight(version, limits.weight))
    return settings


def _lifted(version: int, limits: CgroupLimits) -> list[tuple[str, str, str]]:
    """Return (controller, file, value) that resets each resource without a limit to the kernel's default."""
    lifted = []
    if limits.cpu_cores is None:
        no_quota = ("cpu.max", "max") if version == 2 else ("cpu.cfs_quota_us", "-1")
        lifted.append(("cpu", *no_quota))
    if limits.memory_bytes is None:
        lifted += _memory(version, None)
    if limits.weight == 1:
        lifted.append(_weight(version, 1))
    return lifted


def _memory(version: int, limit: str | None) -> list[tuple[str, str, str]]:
    """Return the settings of a memory limit, or of none.

    What a group may not hold, it may not swap out either: a replica at its limit would not be killed, but
    become slow. The limit of v1 with swap is never below that without it, so it is lifted first.
    """
    if version == 2:
        return [
            ("memory", "memory.swap.max", "max" if limit is None else "0"),
            ("memory", "memory.max", limit or "max"),
        ]
    with_swap = "memory.memsw.limit_in_bytes"
    settings = [("memory", with_swap, "-1"), ("memory", "memory.limit_in_bytes", limit or "-1")]
    return settings if limit is None else [*settings, ("memory", with_swap, limit)]


def _weight(version: int, times: float) -> tuple[str, str, str]:
    if version == 2:
        return "cpu", "cpu.weight", str(min(MOST_WEIGHT, max(1, round(WEIGHT * times))))
    return "cpu", "cpu.shares", str(min(MOST_SHARES, max(2, round(SHARES * times))))


def _make(root: Path, group: str, version: int) -> None:
    """Create each level of a group, from ``root`` down, so that it can hold limited processes."""
    folder = root.parent
    for part in (root.name, *Path(group).parts):
        if version == 2:
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in V2_CONTROLLERS))
        child = folder / part
        child.mkdir(exist_ok=True)
        if version == 1:
            # A v1 cpuset accepts no process until it has CPUs and memory nodes.
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (child / name).exists() and not _read(child / name).strip():
                    (child / name).write_text(_read(folder / name))
        folder = child


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _remove_tree(folder: Path) -> bool:
    """Remove a cgroup folder and those below it; return whether it is gone."""
    if not folder.exists():
        return True
    for child in sorted(folder.glob("**/"), key=lambda path: len(path.parts), reverse=True):
        try:
            child.rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENOTEMPTY):
                raise EngineError(f"the cgroup {child} cannot be removed: {error}") from error
            return False
    return not folder.exists()
