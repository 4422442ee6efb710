"""What a kubelet measured of its node and of the pods there: ``/stats/summary``.

Fields are those of ``k8s.io/kubelet/pkg/apis/stats/v1alpha1``. The kubelet also gives nanocores, a mean over
a time that it does not tell; the counters beside them say the same. Times are whole seconds there, so a mean
over 10 s may be off by a tenth: cAdvisor's are exact (`cadvisors`).
"""

from __future__ import annotations

import dataclasses
import urllib.parse
from collections.abc import Mapping

from paceline.rendering import pods
from paceline.sources.answers import ApiServer, Object, fetched, moment, parsed, part, parts
from paceline.sources.readings import Figure, Pod, Reading, Source, figure

_NANO = 1e-9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    """What is used on a node in all; None: not measured."""

    name: str
    cpu_seconds: Figure | None = None
    memory_bytes: Figure | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a kubelet said, and how many pods in it made no sense."""

    node: NodeReading
    readings: tuple[Reading, ...]
    broken: int


async def read(server: ApiServer, node: str) -> Summary:
    """Ask the kubelet of a node, through the API server.

    Raises:
        SourceError: the answer is no summary.
        EngineError: the API server refused, or does not reach the node.
    """
    return parse(
        await fetched(server, f"/api/v1/nodes/{urllib.parse.quote(node, safe='')}/proxy/stats/summary")
    )


def parse(text: str) -> Summary:
    """Return what a summary says of replicas and of the node.

    Raises:
        SourceError: the text is no JSON object.
    """
    found = parsed(text, "the kubelet")
    of_node = part(found, "node")
    node = NodeReading(
        name=str(of_node.get("nodeName", "")),
        cpu_seconds=_cpu_seconds(of_node),
        memory_bytes=_memory_bytes(of_node),
    )
    readings, broken = [], 0
    for each in parts(found, "pods"):
        read = _pod(each)
        broken += read is None
        if read is not None and read.at is not None:
            readings.append(read)
    return Summary(node=node, readings=tuple(readings), broken=broken)


def _pod(of: object) -> Reading | None:
    reference, network = part(of, "podRef"), part(of, "network")
    namespace, name = reference.get("namespace"), reference.get("name")
    if not (isinstance(namespace, str) and isinstance(name, str)):
        return None
    containers = (each for each in parts(of, "containers") if isinstance(each, Mapping))
    replica = next((each for each in containers if each.get("name") == pods.TRAINING), None)
    if replica is None:
        return Reading(pod=Pod(namespace, name), source=Source.KUBELET)
    return Reading(
        pod=Pod(namespace, name),
        source=Source.KUBELET,
        cpu_seconds=_cpu_seconds(replica),
        memory_bytes=_memory_bytes(replica),
        network_received_bytes=_transferred(network, "rxBytes"),
        network_sent_bytes=_transferred(network, "txBytes"),
    )


def _cpu_seconds(of: Object) -> Figure | None:
    cpu = part(of, "cpu")
    found = figure(cpu.get("usageCoreNanoSeconds"), moment(cpu.get("time")))
    return None if found is None else Figure(found.value * _NANO, found.at)


def _memory_bytes(of: Object) -> Figure | None:
    memory = part(of, "memory")
    return figure(memory.get("workingSetBytes"), moment(memory.get("time")))


def _transferred(network: Object, name: str) -> Figure | None:
    """Return the bytes of all interfaces; the kubelet names the default one also by itself."""
    at = moment(network.get("time"))
    interfaces = parts(network, "interfaces") or [network]
    found = [figure(each.get(name), at) for each in interfaces if isinstance(each, Mapping)]
    given = [each.value for each in found if each is not None]
    return figure(sum(given), at) if given else None
