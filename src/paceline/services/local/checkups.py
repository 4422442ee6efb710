"""Checks of what this machine offers to Paceline.

Each check says what it found and, if something is missing, what to do.

TensorFlow is looked for in a separate process, because this process never imports it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from paceline.engines.local import firewalls, machines
from paceline.errors import StoreError
from paceline.model import quantities
from paceline.model.explanations.checkups import Check, CheckState
from paceline.services.local import state_dirs
from paceline.stores import open_store

TENSORFLOW_SECONDS = 120.0
TOOL_SECONDS = 20.0
#: Below this much free space, the store and logs soon have no room.
LOW_DISK_BYTES = 1 << 30

Run = Callable[[Sequence[str], float], "str | None"]


def checks(home: state_dirs.Home, *, run: Run | None = None) -> Iterator[Check]:
    """Yield every check as it is done.

    Args:
        home: the state folder and store to check.
        run: runs a program for at most the given number of seconds and returns what it printed, or None if it
            failed.
    """
    run = run or output_of
    yield python(sys.version_info[:3])
    machine = machines.read()
    yield capacity(machine)
    yield cgroups(machine)
    yield namespaces(machine)
    yield job_ports()
    yield state_folder(home.path)
    yield store(home.store_url)
    yield tensorflow(run)
    yield gpus(run)


def python(version: tuple[int, int, int]) -> Check:
    """Check the Python that runs Paceline."""
    detail = f"{'.'.join(map(str, version))} ({sys.executable})"
    if version >= (3, 11, 0):
        return Check(name="Python", state=CheckState.OK, detail=detail)
    return Check(name="Python", state=CheckState.FAILED, detail=detail, advice="install Python 3.11 or later")


def capacity(machine: machines.Machine) -> Check:
    """Report the machine's cores and memory, with the load and the free memory."""
    available = psutil.virtual_memory().available
    load = os.getloadavg()[0]
    return Check(
        name="Machine",
        state=CheckState.OK,
        detail=f"{len(machine.cores)} cores (load {load:.1f}), {quantities.format_bytes(available)} free "
        f"of {quantities.format_bytes(machine.memory_bytes)}",
    )


def cgroups(machine: machines.Machine) -> Check:
    """Check whether the resources of replicas can be limited."""
    if machine.cgroups is not None:
        controllers = ", ".join(sorted(machine.cgroups.roots))
        return Check(
            name="Limits",
            state=CheckState.OK,
            detail=f"cgroup v{machine.cgroups.version} with {controllers}",
        )
    return Check(
        name="Limits",
        state=CheckState.MISSING,
        detail=machine.lacks_cgroups,
        advice="jobs run without limits; run as root, or have the cgroup controllers delegated to this user",
    )


def namespaces(machine: machines.Machine) -> Check:
    """Check whether emulated hosts can get their own networks."""
    if not machine.lacks_namespaces:
        detail = f"{', '.join(filter(None, map(shutil.which, ('ip', 'tc', 'nsenter'))))}"
        return Check(name="Emulated hosts", state=CheckState.OK, detail=f"network namespaces with {detail}")
    return Check(
        name="Emulated hosts",
        state=CheckState.MISSING,
        detail=machine.lacks_namespaces,
        advice="jobs without `hosts:` do not need it",
    )


def job_ports() -> Check:
    """Check whether the ports of jobs are closed to other machines."""
    name, lacks = "Job ports", firewalls.lacks()
    if not lacks:
        return Check(name=name, state=CheckState.OK, detail="closed to other machines, by nftables")
    return Check(
        name=name,
        state=CheckState.MISSING,
        detail=f"open to other machines, which can read and write files through them: {lacks}",
        advice="close 20000 to 31999 of TCP by this machine's own firewall; docs/security.md",
    )


def state_folder(path: Path) -> Check:
    """Check whether runs can be stored."""
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    detail = f"{path}, {quantities.format_bytes(free)} free"
    name = "State folder"
    if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
        return Check(
            name=name, state=CheckState.FAILED, detail=f"{path} cannot be written",
            advice="set PACELINE_HOME to a folder that can be written",
        )  # fmt: skip
    if free < LOW_DISK_BYTES:
        return Check(name=name, state=CheckState.MISSING, detail=detail, advice="free some: paceline prune")
    return Check(name=name, state=CheckState.OK, detail=detail)


def store(url: str) -> Check:
    """Check whether the store can be opened; a store file that does not exist yet is not created."""
    path = Path(url.removeprefix("sqlite:///"))
    shown = str(path) if url.startswith("sqlite:///") else url.partition("://")[0]
    if url.startswith("sqlite:///") and not path.exists():
        return Check(name="Store", state=CheckState.OK, detail=f"{path}, made with the first job")
    try:
        with open_store(url) as opened:
            runs = len(opened.list_runs())
    except StoreError as error:
        return Check(name="Store", state=CheckState.FAILED, detail=error.message, advice=error.hint or "")
    return Check(
        name="Store",
        state=CheckState.OK,
        detail=f"{shown}, schema up to date, {runs} job{'' if runs == 1 else 's'}",
    )


def tensorflow(run: Run) -> Check:
    """Check whether the Python that runs Paceline has TensorFlow."""
    printed = run(
        [sys.executable, "-c", "import tensorflow; print(tensorflow.__version__)"], TENSORFLOW_SECONDS
    )
    if printed:
        return Check(
            name="TensorFlow", state=CheckState.OK, detail=f"{printed.split()[-1]} for {sys.executable}"
        )
    return Check(
        name="TensorFlow",
        state=CheckState.MISSING,
        detail=f"{sys.executable} cannot import it",
        advice="pip install 'paceline[training]', or name a Python that has it in the job's command",
    )


def gpus(run: Run) -> Check:
    """Check for GPUs and for the tool that measures them."""
    name = "GPUs"
    if shutil.which("nvidia-smi") is None:
        return Check(
            name=name,
            state=CheckState.MISSING,
            detail="nvidia-smi not found",
            advice="not needed without GPUs",
        )
    printed = run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], TOOL_SECONDS)
    if not printed:
        return Check(
            name=name, state=CheckState.MISSING, detail="nvidia-smi finds none", advice="look at the driver"
        )
    return Check(name=name, state=CheckState.OK, detail=", ".join(printed.splitlines()))


def output_of(command: Sequence[str], timeout_seconds: float) -> str | None:
    """Return what a program prints; None if it fails or takes too long."""
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, timeout=timeout_seconds, check=False,
            stdin=subprocess.DEVNULL, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
