"""Cgroups of replicas: what is written, and that the kernel enforces it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import control_groups
from support.control_groups import HIERARCHY

from paceline.engines.local import cgroups

#: Prints how many cores a process gets that would take all that it can.
BURN = """
import time
start, used = time.monotonic(), time.process_time()
while time.process_time() - used < 0.4: pass
print((time.process_time() - used) / (time.monotonic() - start))
"""
V1_MOUNTS = """\
24 21 0:20 / /sys/fs/cgroup ro - tmpfs tmpfs ro
25 24 0:21 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
26 24 0:22 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
27 24 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
28 24 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""


@pytest.fixture
def group() -> Iterator[str]:
    assert HIERARCHY is not None
    name = f"test-{time.monotonic_ns()}"
    yield name
    HIERARCHY.remove(name)


def in_group(group: str, script: str) -> subprocess.CompletedProcess[str]:
    assert HIERARCHY is not None
    enter = "".join(f"echo $$ > {folder}/cgroup.procs; " for folder in HIERARCHY.folders(group))
    return subprocess.run(
        ["/bin/sh", "-c", f'{enter} exec "$@"', "sh", sys.executable, "-c", script],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def test_the_mounts_of_v1_are_found_with_joined_controllers() -> None:
    v1, v2 = cgroups._mounts(V1_MOUNTS)
    assert v1 == {
        "cpu": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "cpuacct": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "cpuset": Path("/sys/fs/cgroup/cpuset"),
        "memory": Path("/sys/fs/cgroup/memory"),
    }
    assert v2 == Path("/sys/fs/cgroup/unified")


@control_groups.needed
def test_kills_for_memory_are_counted(group: str) -> None:
    assert HIERARCHY is not None
    HIERARCHY.create(group, cgroups.CgroupLimits(memory_bytes=16 << 20))
    assert HIERARCHY.oom_kills(group) == 0
    assert in_group(group, "x = b'1' * (60 << 20)").returncode == -9
    assert HIERARCHY.oom_kills(group) == 1
    assert HIERARCHY.oom_kills(f"{group}-not-there") == 0


@pytest.mark.parametrize("mountinfo", ["", "nonsense\n", " - \n", "1 2 - cgroup\n"])
def test_a_machine_without_cgroups_is_told_why(mountinfo: str) -> None:
    assert cgroups.detect(mountinfo) == (None, "no cgroup hierarchy with cpu, cpuset and memory is mounted")


def test_limits_become_the_files_of_each_version() -> None:
    limits = cgroups.CgroupLimits(cpu_cores=1.5, cores=(0, 3), memory_bytes=1024)
    assert cgroups._settings(1, limits) == [
        ("cpu", "cpu.cfs_period_us", "100000"),
        ("cpu", "cpu.cfs_quota_us", "150000"),
        ("cpuset", "cpuset.cpus", "0,3"),
        ("memory", "memory.memsw.limit_in_bytes", "-1"),
        ("memory", "memory.limit_in_bytes", "1024"),
        ("memory", "memory.memsw.limit_in_bytes", "1024"),
    ]
    assert cgroups._settings(2, limits) == [
        ("cpu", "cpu.max", "150000 100000"),
        ("cpuset", "cpuset.cpus", "0,3"),
        ("memory", "memory.swap.max", "0"),
        ("memory", "memory.max", "1024"),
    ]


@control_groups.needed
def test_memory_limits_rise_fall_and_go_with_what_may_be_swapped_out(group: str) -> None:
    assert HIERARCHY is not None
    limit, with_swap = (
        ("memory.max", "memory.swap.max")
        if HIERARCHY.version == 2
        else ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
    )
    folder = HIERARCHY.roots["memory"] / group
    HIERARCHY.create(group, cgroups.CgroupLimits())
    free = (folder / limit).read_text()
    for mebibytes in (64, 256, 32, None):
        size = None if mebibytes is None else mebibytes << 20
        HIERARCHY.limit(group, cgroups.CgroupLimits(memory_bytes=size))
        seen = (folder / limit).read_text()
        assert seen == (free if size is None else f"{size}\n")
        if (folder / with_swap).exists():
            swap = (folder / with_swap).read_text()
            if HIERARCHY.version == 2:
                assert swap == ("max\n" if size is None else "0\n")
            else:
                assert swap == seen


def test_a_tiny_share_is_raised_to_what_the_kernel_accepts() -> None:
    assert ("cpu", "cpu.max", "1000 100000") in cgroups._settings(2, cgroups.CgroupLimits(cpu_cores=0.001))


def test_v2_hands_controllers_down_at_every_level(tmp_path: Path) -> None:
    """On a tree of plain files: the order of writes is ours, the meaning is the kernel's."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    hierarchy, reason = cgroups.detect(f"30 29 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n")
    # A plain folder keeps its files, so the probe cannot be removed; a real cgroup's files vanish with it.
    assert hierarchy is None or hierarchy.version == 2
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory"
    assert (tmp_path / "paceline" / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory"
    assert reason == "" or "probe" in reason


@control_groups.needed
def test_a_cpu_quota_is_enforced(group: str) -> None:
    assert HIERARCHY is not None
    HIERARCHY.create(group, cgroups.CgroupLimits(cpu_cores=0.2))
    assert float(in_group(group, BURN).stdout) < 0.3


@control_groups.needed
def test_exclusive_cores_are_all_that_a_replica_sees(group: str) -> None:
    assert HIERARCHY is not None
    HIERARCHY.create(group, cgroups.CgroupLimits(cores=(0,)))
    assert in_group(group, "import os; print(os.sched_getaffinity(0))").stdout == "{0}\n"


@control_groups.needed
def test_a_memory_limit_kills(group: str) -> None:
    assert HIERARCHY is not None
    HIERARCHY.create(group, cgroups.CgroupLimits(memory_bytes=32 * 2**20))
    assert in_group(group, "x = b'1' * (200 * 2**20)").returncode == -9


@control_groups.needed
def test_limits_of_a_host_hold_for_its_replicas_together(group: str) -> None:
    assert HIERARCHY is not None
    HIERARCHY.create(group, cgroups.CgroupLimits(cpu_cores=0.2))
    HIERARCHY.create(f"{group}/replica", cgroups.CgroupLimits(memory_bytes=2**30))
    assert float(in_group(f"{group}/replica", BURN).stdout) < 0.3


@control_groups.needed
def test_removing_a_group_ends_everything_in_it(group: str) -> None:
    assert HIERARCHY is not None
    HIERARCHY.create(f"{group}/a/b", cgroups.CgroupLimits())
    enter = "".join(f"echo $$ > {folder}/cgroup.procs; " for folder in HIERARCHY.folders(f"{group}/a/b"))
    # The shell goes on when its children are killed before it.
    script = f"{enter} trap '' TERM; sleep 60 & setsid sleep 60 & wait; sleep 60"
    process = subprocess.Popen(["/bin/sh", "-c", script])
    deadline = time.monotonic() + 240
    while len(HIERARCHY.pids(group)) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    HIERARCHY.remove(group)
    assert process.wait(timeout=240) == -9
    assert not any(folder.exists() for folder in HIERARCHY.folders(group))
    HIERARCHY.remove(group)
