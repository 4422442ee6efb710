"""Cores and memory of containers."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.linting.manifests import readings
from paceline.linting.manifests.readings import ManifestFile
from paceline.linting.rules import Hit, rule
from paceline.model import quantities
from paceline.model.findings import Severity


@rule(
    "K8S201",
    "Requests without limits",
    Severity.WARNING,
    why="Only pods of the Guaranteed quality-of-service class can get exclusive cores, and that class "
    "needs limits equal to the requests, for CPU and for memory. Exclusive cores trained over 20 % "
    "faster than shared ones where this was measured. Without a CPU limit a replica also takes its "
    "neighbours' cores.",
    fix="Write limits equal to the requests.",
)
def requests_without_limits(file: ManifestFile) -> Iterator[Hit]:
    """CPU requests need equal limits."""
    for manifest in file.manifests:
        for path, container in manifest.containers():
            cpu = readings.scalar(container, "resources", "requests", "cpu")
            if cpu is not None and readings.field(container, "resources", "limits", "cpu") is None:
                asked = manifest.template.shown(cpu.text)
                message = (
                    f"the container requests {asked} CPU but has no CPU limit: it never gets exclusive cores"
                )
                yield Hit(manifest.document, (*path, "resources", "requests"), message, key=True)


@rule(
    "K8S202",
    "No memory limit",
    Severity.WARNING,
    why="A replica that grows without a limit takes the memory of the whole node, and the kernel may then "
    "kill someone else's process instead.",
    fix="Write resources.limits.memory.",
)
def no_memory_limit(file: ManifestFile) -> Iterator[Hit]:
    """Memory needs a limit."""
    for manifest in file.manifests:
        for path, container in manifest.containers():
            if readings.field(container, "resources", "limits", "memory") is None:
                message = "the container has no memory limit"
                yield Hit(manifest.document, (*path, "resources"), message, key=True)


@rule(
    "K8S203",
    "A fraction of a core",
    Severity.WARNING,
    why="Only whole cores can be exclusive: the kubelet's static CPU manager puts a container with a "
    "fraction of a core into the shared pool, whatever its quality-of-service class.",
    fix="Ask for whole cores, the same in requests and limits.",
)
def fractional_cpu(file: ManifestFile) -> Iterator[Hit]:
    """Exclusive cores are whole."""
    for manifest in file.manifests:
        for path, container in manifest.containers():
            for section in ("requests", "limits"):
                cpu = readings.scalar(container, "resources", section, "cpu")
                if cpu is not None and _is_fraction(manifest.template.resolved(cpu.text)):
                    message = f"{manifest.template.shown(cpu.text)} CPU is no whole number of cores"
                    yield Hit(manifest.document, (*path, "resources", section, "cpu"), message)
                    break


def _is_fraction(text: str) -> bool:
    try:
        return not quantities.is_whole(quantities.parse_cpu_cores(text[:60]))
    except ValueError:
        return False


RULES = (requests_without_limits, no_memory_limit, fractional_cpu)
