"""Rules on the cores and memory of containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from paceline.linting.manifests import readings, training
from paceline.linting.manifests.readings import Manifest, ManifestFile
from paceline.linting.rules import LintHit, rule
from paceline.model import quantities
from paceline.model.explanations.findings import Severity
from paceline.specs.yaml_text import problems
from paceline.specs.yaml_text.documents import Path


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
def requests_without_limits(file: ManifestFile) -> Iterator[LintHit]:
    """CPU requests need equal limits."""
    for manifest, path, container in file.containers():
        cpu = readings.scalar(container, "resources", "requests", "cpu")
        limits = (*path, "resources", "limits")
        if cpu is None or readings.field(container, "resources", "limits", "cpu") is not None:
            continue
        if _is_known(manifest, container, limits):
            asked = manifest.template.shown(cpu.text)
            message = (
                f"the container requests {asked} CPU but has no CPU limit: it never gets exclusive cores"
            )
            yield LintHit(manifest.document, (*path, "resources", "requests"), message, key=True)


@rule(
    "K8S202",
    "No memory limit",
    Severity.WARNING,
    why="A replica that grows without a limit takes the memory of the whole node, and the kernel may then "
    "kill someone else's process instead.",
    fix="Write resources.limits.memory.",
)
def no_memory_limit(file: ManifestFile) -> Iterator[LintHit]:
    """Memory needs a limit."""
    for manifest, path, container in file.containers():
        limits = (*path, "resources", "limits")
        if readings.field(container, "resources", "limits", "memory") is not None:
            continue
        if _is_known(manifest, container, limits):
            message = "the container has no memory limit"
            yield LintHit(manifest.document, (*path, "resources"), message, key=True)


@rule(
    "K8S203",
    "A fraction of a core",
    Severity.WARNING,
    why="Only whole cores can be exclusive: the kubelet's static CPU manager puts a container with a "
    "fraction of a core into the shared pool, whatever its quality-of-service class.",
    fix="Ask for whole cores, the same in requests and limits.",
)
def fractional_cpu(file: ManifestFile) -> Iterator[LintHit]:
    """Exclusive cores are whole."""
    for manifest, path, container in file.containers():
        for section in ("requests", "limits"):
            cpu = readings.scalar(container, "resources", section, "cpu")
            if cpu is not None and _is_fraction(manifest.template.resolved(cpu.text)):
                message = f"{manifest.template.shown(cpu.text)} CPU is no whole number of cores"
                yield LintHit(manifest.document, (*path, "resources", section, "cpu"), message)
                break


@rule(
    "K8S204",
    "Requests unlike limits",
    Severity.WARNING,
    why="Only pods whose requests equal their limits, for CPU and for memory, are of the Guaranteed class. "
    "Others get no exclusive cores, run as fast as their neighbours let them, and are evicted first when a "
    "node is short of memory. One slow or evicted replica holds up the whole job. Refused are a request "
    "above its limit, and one of a device (a GPU) that is unlike it.",
    fix="Write requests equal to the limits.",
)
def requests_unlike_limits(file: ManifestFile) -> Iterator[LintHit]:
    """Requests equal limits."""
    for manifest, path, container in file.containers():
        listed = readings.field(container, "resources", "requests")
        devices = [name for name in listed if "/" in name] if isinstance(listed, Mapping) else []
        for name, what in (("cpu", "CPU"), ("memory", "of memory"), *((each, each) for each in devices)):
            asked, most = (_amount(manifest, container, section, name) for section in ("requests", "limits"))
            if asked is None or most is None or asked[1] == most[1]:
                continue
            message = f"the container requests {asked[0]} {what} and is limited to {most[0]}"
            is_refused = asked[1] > most[1] or name in devices
            severity = Severity.ERROR if is_refused else None
            where = (*path, "resources", "requests", name)
            yield LintHit(manifest.document, where, message, severity=severity)


@rule(
    "K8S205",
    "A quantity that cannot be meant",
    Severity.ERROR,
    why="Kubernetes reads memory without a unit as bytes, m as thousandths, and cpu without a unit as whole "
    "cores. A Python process does not start in a few megabytes, and no node has a thousand cores: the pod is "
    "refused, killed at its start, or waits for ever.",
    fix="Write the unit that is meant: memory: 512Mi, cpu: 500m.",
)
def odd_quantity(file: ManifestFile) -> Iterator[LintHit]:
    """Memory and cores must be plausible for a process."""
    for manifest, path, container in file.containers():
        for section in ("limits", "requests"):
            for name in ("cpu", "memory"):
                value = readings.scalar(container, "resources", section, name)
                text = manifest.template.resolved(value.text) if value is not None else ""
                least = quantities.LEAST_PROCESS_BYTES if training.trains(manifest, container) else 1 << 20
                found = _oddity(name, text, least) if text and "{{" not in text else None
                if found is not None:
                    message, severity = found
                    where = (*path, "resources", section, name)
                    yield LintHit(manifest.document, where, message, severity=severity)


def _oddity(name: str, text: str, least: int) -> tuple[str, Severity] | None:
    """Return what is wrong with a quantity, and the severity; None if nothing is.

    Args:
        name: cpu or memory.
        text: the quantity.
        least: the least number of bytes with which the process can start.
    """
    try:
        number = quantities.parse_quantity(text)
        if number == 0:
            return None
        amount = quantities.parse_cpu_cores(text) if name == "cpu" else quantities.parse_bytes(text)
    except ValueError as error:
        return str(error), Severity.ERROR
    if name == "memory" and amount < least:
        return (
            f"{quantities.format_bytes(int(amount))} of memory are too few for a process of Python",
            Severity.WARNING,
        )
    if name == "cpu" and amount > quantities.MOST_NODE_CORES:
        return f"{problems.shown(text)} are {amount:g} cores; no node has so many", Severity.WARNING
    return None


def _amount(
    manifest: Manifest, container: Mapping[str, Any], section: str, name: str
) -> tuple[str, Decimal] | None:
    """Return a quantity as written and as a number, or None if it is unknown."""
    value = readings.scalar(container, "resources", section, name)
    text = manifest.template.resolved(value.text) if value is not None else ""
    try:
        return problems.shown(text), quantities.parse_quantity(text)
    except ValueError:
        return None


def _is_known(manifest: Manifest, container: Mapping[str, Any], limits: Path) -> bool:
    """Return whether all limits of a container are known: no template fills them in.

    A container without an image is only a part of one, as in an overlay, and its limits may be elsewhere.
    """
    if "image" not in container:
        return False
    for path in (limits[:-1], limits):
        there = readings.field(container, *map(str, path[limits.index("resources") :]))
        if there is not None and manifest.is_filled_in(path):
            return False
    return True


def _is_fraction(text: str) -> bool:
    try:
        return not quantities.is_whole(quantities.parse_cpu_cores(text[:60]))
    except ValueError:
        return False


RULES = (requests_without_limits, no_memory_limit, fractional_cpu, requests_unlike_limits, odd_quantity)
