"""Emulated hosts: network namespaces joined by bridges, with shaped links and one address for each replica.

::

    replica namespace --veth-- host namespace (bridge) ==shaped uplink== fabric namespace (bridge)

Traffic between replicas of one host stays on the host's bridge; traffic between hosts passes both hosts'
uplinks, which a token bucket filter shapes in each direction. Each replica has an ``eth0`` of its own, so the
byte counters of that interface are the replica's. The namespaces have no connection to the outside. Source:
``ip-netns(8)``, ``veth(4)``, ``tc-tbf(8)``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import subprocess
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import EngineError
from paceline.model.jobs import job_specs
from paceline.model.roles import ReplicaId
from paceline.rendering import host_plans

INTERFACE = "eth0"
PORT = 2222
#: All jobs can use the same addresses, because each job has a fabric of its own.
SUBNET = ipaddress.ip_network("10.77.0.0/16")
NAMESPACES = Path("/run/netns")
#: A link may pass this many seconds' worth of data at once; it must cover a scheduler tick.
BURST_SECONDS = 0.01
MIN_BURST_BYTES = 128 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Network:
    """The network namespaces of one job; all their names have the same prefix."""

    prefix: str
    plan: host_plans.HostPlan

    def namespace(self, replica: ReplicaId) -> str:
        """Return the namespace of a replica."""
        return f"{self.prefix}-{replica}"

    def address(self, replica: ReplicaId) -> str:
        """Return ``host:port`` of a replica."""
        index = [seat.replica for seat in self.plan.seats].index(replica)
        return f"{SUBNET[index + 2]}:{PORT}"

    def create(self) -> None:
        """Create all namespaces and links; existing ones are removed first.

        Raises:
            EngineError: the kernel refused.
        """
        self.remove()
        for command in commands(self):
            _run(command)

    def limit(self, host: job_specs.Host, bits_per_second: int) -> None:
        """Change the rate of a host's shaped uplink in both directions, without interrupting traffic.

        A host without replicas has no link.

        Raises:
            EngineError: the kernel refused.
        """
        hosts = _hosts(self.plan)
        if host not in hosts:
            return
        number = hosts.index(host)
        ends = ((f"{self.prefix}-host-{number}", "uplink"), (f"{self.prefix}-fabric", f"host{number}"))
        for namespace, interface in ends:
            _run(_shape(namespace, interface, bits_per_second, verb="change"))

    def exists(self) -> bool:
        """Return whether the namespace of every replica exists."""
        return all((NAMESPACES / self.namespace(seat.replica)).exists() for seat in self.plan.seats)

    def remove(self) -> None:
        """Remove every namespace of the job; the kernel removes the links with them."""
        remove(self.prefix)


def remove(prefix: str) -> None:
    """Remove every namespace with this prefix.

    Raises:
        EngineError: a namespace cannot be removed.
    """
    for namespace in sorted(NAMESPACES.glob(f"{prefix}-*")):
        with contextlib.suppress(EngineError):
            _run(["ip", "netns", "delete", namespace.name])
        if namespace.exists():
            raise EngineError(f"the network namespace {namespace.name} cannot be removed")


def commands(network: Network) -> list[list[str]]:
    """Return the commands that create the network, in order; a dry run prints them."""
    fabric = f"{network.prefix}-fabric"
    script = [*_namespace(fabric), *_bridge(fabric)]
    hosts = _hosts(network.plan)
    for number, host in enumerate(hosts):
        inside, link = f"{network.prefix}-host-{number}", f"host{number}"
        script += [*_namespace(inside), *_bridge(inside)]
        script += _link(inside, "uplink", fabric, link)
        script += [
            _ip(inside, "link set uplink master bridge"),
            _ip(fabric, f"link set {link} master bridge"),
        ]
        if host.bandwidth_bits_per_second is not None:
            script += [_shape(inside, "uplink", host.bandwidth_bits_per_second)]
            script += [_shape(fabric, link, host.bandwidth_bits_per_second)]
    for number, seat in enumerate(network.plan.seats):
        inside = network.namespace(seat.replica)
        host_namespace = f"{network.prefix}-host-{hosts.index(seat.host)}"
        address = f"{SUBNET[number + 2]}/{SUBNET.prefixlen}"
        script += _namespace(inside)
        script += _link(inside, INTERFACE, host_namespace, f"replica{number}")
        script += [_ip(host_namespace, f"link set replica{number} master bridge")]
        script += [_ip(inside, f"address add {address} dev {INTERFACE}")]
    return script


def _namespace(name: str) -> list[list[str]]:
    return [["ip", "netns", "add", name], _ip(name, "link set lo up")]


def _bridge(namespace: str) -> list[list[str]]:
    return [_ip(namespace, "link add bridge type bridge"), _ip(namespace, "link set bridge up")]


def _link(namespace: str, name: str, peer_namespace: str, peer: str) -> list[list[str]]:
    return [
        _ip(namespace, f"link add {name} type veth peer name {peer} netns {peer_namespace}"),
        _ip(namespace, f"link set {name} up"),
        _ip(peer_namespace, f"link set {peer} up"),
    ]


def _hosts(plan: host_plans.HostPlan) -> list[job_specs.Host]:
    """Return the hosts that have replicas, in the order of their numbers."""
    return list(dict.fromkeys(seat.host for seat in plan.seats))


def _shape(namespace: str, interface: str, bits_per_second: int, *, verb: str = "add") -> list[str]:
    burst_bytes = max(MIN_BURST_BYTES, int(bits_per_second / 8 * BURST_SECONDS))
    shape = (
        f"qdisc {verb} dev {interface} root tbf rate {bits_per_second}bit burst {burst_bytes} latency 50ms"
    )
    return ["tc", "-n", namespace, *shape.split()]


def _ip(namespace: str, words: str) -> list[str]:
    return ["ip", "-n", namespace, *words.split()]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EngineError(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.returncode}")
