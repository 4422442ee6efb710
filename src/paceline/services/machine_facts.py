"""Facts about this machine, for readers who compare measurements."""

from __future__ import annotations

import functools
import importlib.metadata
import platform

from paceline.engines.local import machines
from paceline.model import quantities

_PACKAGES = ("paceline", "tensorflow", "numpy")


@functools.cache  # A job view asks twice a second; the facts do not change.
def facts() -> tuple[tuple[str, str], ...]:
    """Return the facts, each with its name."""
    machine = machines.read()
    versions = []
    for package in _PACKAGES:
        try:
            versions.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return (
        ("cores", str(len(machine.cores))),
        ("memory", quantities.format_bytes(machine.memory_bytes)),
        ("processor", platform.machine()),
        ("system", f"{platform.system()} {platform.release()}"),
        ("Python", platform.python_version()),
        *versions,
    )
