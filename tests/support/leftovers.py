"""What a run has left on this machine: it should be nothing but its folder."""

from __future__ import annotations

import socket
from pathlib import Path

from paceline.engines.local import folders, layouts, machines, networks, processes
from paceline.model.jobs import job_specs


def find(spec: job_specs.JobSpec, folder: folders.RunFolder) -> list[str]:
    """Return every process, cgroup, namespace and listening port that is left of an ended run."""
    machine = machines.read()
    left = [f"process {pid}" for pid in sorted(processes.members(folder.path))]
    if machine.cgroups is not None:
        left += [f"cgroup {path}" for path in machine.cgroups.folders(folder.token) if path.exists()]
    left += [f"namespace {path.name}" for path in networks.NAMESPACES.glob(f"{folder.token}-*")]
    addresses = layouts.read(folder, spec.hosts).addresses.values() if folder.layout.exists() else []
    left += [f"port {address}" for address in addresses if _listens(address)]
    return left


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    if host != "127.0.0.1":
        return False  # In a namespace of its own, which is looked for above.
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def supervisor_pids(folder: folders.RunFolder) -> list[int]:
    """Return the guard and the supervisor of a run, guard first."""
    found = []
    home, name = str(folder.path.parent.parent).encode(), folder.path.name.encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"paceline.surfaces.supervisor" in words and home in words and name in words:
            found.append(int(path.parent.name))
    return sorted(found)
