"""What the kernel has of the limits of a replica on this machine."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

from paceline.engines.local import machines, networks
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.runs import Run


def cores(run: Run, replica: str, host: str = "local") -> float | None:
    """Return the quota of a replica; None: it has none."""
    groups = machines.read().cgroups
    assert groups is not None
    folder = groups.roots["cpu"] / RunFolder.of(run).token / host / replica
    if groups.version == 2:
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    quota_text = (folder / "cpu.cfs_quota_us").read_text()
    period_text = (folder / "cpu.cfs_period_us").read_text()
    return None if int(quota_text) < 0 else int(quota_text) / int(period_text)


def memory(run: Run, replica: str, host: str = "local") -> int:
    """Return the bytes that a replica may take."""
    groups = machines.read().cgroups
    assert groups is not None
    name = "memory.max" if groups.version == 2 else "memory.limit_in_bytes"
    return int((groups.roots["memory"] / RunFolder.of(run).token / host / replica / name).read_text())


def links(run: Run) -> dict[str, str]:
    """Return what the kernel has of the links in each network namespace of a run."""
    spaces = networks.NAMESPACES.glob(f"{RunFolder.of(run).token}-*")
    return {
        each.name: subprocess.check_output(["tc", "-n", each.name, "qdisc", "show"], text=True)
        for each in spaces
    }


def until(condition: Callable[[], object], seconds: float = 240.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
