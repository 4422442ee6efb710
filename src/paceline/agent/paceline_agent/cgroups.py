"""The agent's own cgroup, version 1 or 2."""

import os
import re
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from .kernel_files import KeptFiles, parse_integer, parse_keyed

#: In place of a controller: version 1 has no pressures, so version 2 is looked up, also beside version 1.
_PRESSURE = "pressure"
UNLIMITED = 2**62  # cgroup v1 writes "no limit" as the largest multiple of a page below 2**63
MAX_CPUS = 8192


def parse_quota(quota: str, period: str) -> Optional[float]:
    """Cores of cpu.max (cgroup-v2.rst) or cpu.cfs_quota_us, cpu.cfs_period_us (scheduler/sched-bwc.rst)."""
    quota_us, period_us = parse_integer(quota), parse_integer(period)
    if quota_us is None or period_us is None or quota_us <= 0 or period_us <= 0:
        return None
    return quota_us / period_us


def parse_limit(text: str) -> Optional[int]:
    """Bytes of memory.max or memory.limit_in_bytes (cgroup-v2.rst, cgroup-v1/memory.rst); None: no limit."""
    limit = parse_integer(text)
    return None if limit is None or not 0 <= limit < UNLIMITED else limit


def parse_pressure(text: str) -> Optional[float]:
    """Seconds for which at least one task waited: the total of "some" in cpu.pressure (psi.rst)."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["some"] and words[-1].startswith("total="):
            total_us = parse_integer(words[-1][len("total=") :])
            return None if total_us is None or total_us < 0 else total_us / 1e6
    return None


def parse_cpus(text: str) -> FrozenSet[int]:
    """Parse the kernel's list format, ``0-3,8`` (cgroup-v2.rst, cpuset.cpus); empty for anything else."""
    cpus: Set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        low, high = parse_integer(first), parse_integer(last or first)
        if low is not None and high is not None and 0 <= low <= high < MAX_CPUS:
            cpus.update(range(low, high + 1))
    return frozenset(cpus)


def format_cpus(cpus: FrozenSet[int]) -> str:
    """Write CPUs in the kernel's list format."""
    spans: List[List[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


class Mount(NamedTuple):
    """A line of /proc/self/mountinfo: which part of which file system is mounted where."""

    root: str
    point: str
    kind: str
    options: FrozenSet[str]


def parse_mounts(text: str) -> List[Mount]:
    """Read /proc/self/mountinfo (proc.rst, 3.5)."""
    mounts = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        words, kind = left.split(" "), right.split(" ")
        if len(words) >= 5 and len(kind) >= 3:
            root, point = (re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), w) for w in words[3:5])
            mounts.append(Mount(root, point, kind[0], frozenset(kind[2].split(","))))
    return mounts


def parse_cgroups(text: str) -> Dict[str, str]:
    """Parse /proc/self/cgroup: paths by controller; version 2's path is under "" (cgroup-v1/cgroups.rst)."""
    paths = {}
    for line in text.splitlines():
        words = line.split(":", 2)
        if len(words) == 3:
            paths.update({controller: words[2] for controller in words[1].split(",")})
    return paths


class Group(NamedTuple):
    """A cgroup's directory, and the topmost directory above it that is visible."""

    version: int
    directory: str
    top: str


def locate(controller: str, paths: Dict[str, str], mounts: List[Mount]) -> Optional[Group]:
    """Find the directory of our cgroup: in version 1 if it has the controller, else in version 2.

    In a container the mount shows only part of the tree, with the container's own cgroup at the mount point
    (cgroup-v2.rst, "Namespace"). Then our path does not lie below the mount's root, or is that root.
    """
    version = 1 if controller in paths else 2
    path = paths.get(controller if version == 1 else "")
    if path is None:
        return None
    below = Group(version, "", "")
    for mount in mounts:
        if not (
            mount.kind == "cgroup2"
            if version == 2
            else mount.kind == "cgroup" and controller in mount.options
        ):
            continue
        root = mount.root.rstrip("/")
        if ".." not in path and (path == root or path.startswith(root + "/")):
            return Group(version, (mount.point + path[len(root) :]).rstrip("/"), mount.point)
        below = Group(version, mount.point, mount.point)
    return below if below.top else None


def ancestry(group: Group) -> List[str]:
    """Return the cgroup's directory and its visible ancestors: a limit on any of them applies."""
    directories = [group.directory]
    while directories[-1] != group.top and directories[-1].startswith(group.top + "/"):
        directories.append(os.path.dirname(directories[-1]))
    return directories


class Pressures(NamedTuple):
    """The time for which at least one task of a cgroup waited for a resource so far, in seconds."""

    cpu: Optional[float]
    memory: Optional[float]
    io: Optional[float]


class CgroupReader:
    """Limits and counters of the agent's own cgroup, version 1 or 2; None for values that are missing."""

    def __init__(self, files: KeptFiles, paths: Dict[str, str], mounts: List[Mount]) -> None:
        self._files = files
        self._groups: Dict[str, Group] = {}
        for controller in ("cpu", "cpuacct", "cpuset", "memory", _PRESSURE):
            group = locate(controller, paths, mounts)
            if group is not None:
                found = group.directory if os.path.isdir(group.directory) else group.top
                self._groups[controller] = group._replace(directory=found)

    def _read(self, controller: str, first: str, second: str) -> Tuple[int, str]:
        group = self._groups.get(controller)
        if group is None:
            return 0, ""
        name = first if group.version == 1 else second
        return group.version, self._files.read(group.directory + "/" + name) or ""

    def _read_along(self, controller: str, first: str, second: str) -> List[str]:
        group = self._groups.get(controller)
        if group is None:
            return []
        name = first if group.version == 1 else second
        return [self._files.read(directory + "/" + name) or "" for directory in ancestry(group)]

    def cpu_limit(self) -> Optional[float]:
        """Return the limit in cores: the lowest quota along the path."""
        quotas = [text.split() for text in self._read_along("cpu", "cpu.cfs_quota_us", "cpu.max")]
        periods = [text.split() for text in self._read_along("cpu", "cpu.cfs_period_us", "cpu.max")]
        cores = [parse_quota(q[0], p[-1]) for q, p in zip(quotas, periods) if q and p]  # noqa: B905 - 3.6
        return min((limit for limit in cores if limit is not None), default=None)

    def cpus(self) -> FrozenSet[int]:
        """Return the CPUs that the cpuset allows; empty if unknown."""
        cpus = parse_cpus(self._read("cpuset", "cpuset.effective_cpus", "cpuset.cpus.effective")[1])
        return cpus or parse_cpus(self._read("cpuset", "cpuset.cpus", "cpuset.cpus")[1])

    def cpu_seconds(self) -> Optional[float]:
        """Return the CPU time used so far."""
        version, text = self._read("cpuacct", "cpuacct.usage", "cpu.stat")
        used = parse_integer(text) if version == 1 else parse_keyed(text, "usage_usec")
        return None if used is None else used / (1e9 if version == 1 else 1e6)

    def throttled_seconds(self) -> Optional[float]:
        """Return the time throttled so far."""
        version, text = self._read("cpu", "cpu.stat", "cpu.stat")
        time_ = parse_keyed(text, "throttled_time" if version == 1 else "throttled_usec")
        return None if time_ is None else time_ / (1e9 if version == 1 else 1e6)

    def pressures(self) -> Pressures:
        """Return for how long tasks waited so far; None where the kernel does not count it."""
        names = ("cpu.pressure", "memory.pressure", "io.pressure")
        return Pressures(*(parse_pressure(self._read(_PRESSURE, "", name)[1]) for name in names))

    def memory_bytes(self) -> Optional[int]:
        """Return the working set: the memory used, minus page cache that can be dropped at once."""
        usage = parse_integer(self._read("memory", "memory.usage_in_bytes", "memory.current")[1])
        version, text = self._read("memory", "memory.stat", "memory.stat")
        cache = parse_keyed(text, "total_inactive_file" if version == 1 else "inactive_file")
        return None if usage is None else max(0, usage - (cache or 0))

    def memory_limit(self) -> Optional[int]:
        """Return the limit in bytes: the lowest limit along the path."""
        texts = self._read_along("memory", "memory.limit_in_bytes", "memory.max")
        return min((limit for limit in map(parse_limit, texts) if limit is not None), default=None)

    def oom_kills(self) -> Optional[int]:
        """Return how many processes of the cgroup the kernel has killed for memory."""
        return parse_keyed(self._read("memory", "memory.oom_control", "memory.events")[1], "oom_kill")
