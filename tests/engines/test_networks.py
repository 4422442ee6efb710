"""Emulated hosts: own addresses, own counters, shaped links."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agents import AGENT

from paceline.engines.local import machines, networks
from paceline.model.jobs.job_specs import Host, JobSpec, RoleSpec
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import host_plans

LACKS = machines.lacks_namespaces(os.geteuid(), shutil.which)
needs_namespaces = pytest.mark.skipif(bool(LACKS), reason=f"no network namespaces: {LACKS}")
PS0, W0, W1 = ReplicaId(Role.PS, 0), ReplicaId(Role.WORKER, 0), ReplicaId(Role.WORKER, 1)
SPEC = JobSpec(
    name="job",
    hosts=(Host(name="slow", bandwidth_bits_per_second=40_000_000), Host(name="fast")),
    roles=(RoleSpec(role=Role.PS), RoleSpec(role=Role.WORKER, replicas=2)),
)
SERVE = """
import socket, sys
server = socket.create_server(("0.0.0.0", 2222)); print("ready", flush=True)
peer = server.accept()[0]; total = 0
while data := peer.recv(1 << 20): total += len(data)
print(total, flush=True)
"""
SEND = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 2222), timeout=240); start = time.monotonic()
for _ in range(int(sys.argv[2]) // 65536): peer.sendall(bytes(65536))
peer.shutdown(socket.SHUT_WR); peer.recv(1); print(time.monotonic() - start)
"""


@pytest.fixture
def network() -> Iterator[networks.Network]:
    plan = host_plans.plan(SPEC, free_cores=(0, 1), machine_memory_bytes=None)
    network = networks.Network(f"paceline-test{time.monotonic_ns() % 10**8}", plan)
    network.create()
    yield network
    network.remove()


def inside(network: networks.Network, replica: ReplicaId, script: str, *arguments: str) -> list[str]:
    namespace = networks.NAMESPACES / network.namespace(replica)
    return ["nsenter", f"--net={namespace}", sys.executable, "-c", script, *arguments]


def transfer_seconds(network: networks.Network, sender: ReplicaId, receiver: ReplicaId, amount: int) -> float:
    server = subprocess.Popen(inside(network, receiver, SERVE), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    with server, server.stdout:
        assert server.stdout.readline() == "ready\n"
        host = network.address(receiver).partition(":")[0]
        sent = subprocess.run(
            inside(network, sender, SEND, host, str(amount)),
            capture_output=True,
            text=True,
            check=True,
            timeout=240,
        )
        assert int(server.stdout.readline()) == amount
    return float(sent.stdout)


def received_bytes(network: networks.Network, replica: ReplicaId) -> int:
    script = "print([l.split()[1] for l in open('/proc/net/dev') if 'eth0' in l][0])"
    return int(subprocess.check_output(inside(network, replica, script), text=True))


def shaped_bytes(network: networks.Network) -> int:
    """Return what the token buckets between hosts have let through, in both directions."""
    links = ((f"{network.prefix}-host-0", "uplink"), (f"{network.prefix}-fabric", "host0"))
    shown = [
        json.loads(subprocess.check_output(["tc", "-n", space, "-s", "-j", "qdisc", "show", "dev", device]))
        for space, device in links
    ]
    return sum(queue["bytes"] for queues in shown for queue in queues if queue["kind"] == "tbf")


def test_the_plan_of_a_network_is_printable_and_shapes_both_ways() -> None:
    plan = host_plans.plan(SPEC, free_cores=(0, 1), machine_memory_bytes=None)
    script = [" ".join(command) for command in networks.commands(networks.Network("net", plan))]
    assert (
        "tc -n net-host-0 qdisc add dev uplink root tbf rate 40000000bit burst 131072 latency 50ms" in script
    )
    assert (
        "tc -n net-fabric qdisc add dev host0 root tbf rate 40000000bit burst 131072 latency 50ms" in script
    )
    assert not any("host1 root" in line for line in script)
    assert "ip -n net-ps-0 address add 10.77.0.2/16 dev eth0" in script


def test_a_host_without_replicas_has_no_link_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = Host(name="idle", bandwidth_bits_per_second=40_000_000)
    spec = dataclasses.replace(SPEC, hosts=(*SPEC.hosts, idle), roles=(RoleSpec(role=Role.PS),))
    plan = host_plans.plan(spec, free_cores=(0, 1), machine_memory_bytes=None)
    ran: list[object] = []
    monkeypatch.setattr(networks, "_run", ran.append)
    network = networks.Network("net", plan)
    network.limit(idle, 30_000_000)
    assert ran == []
    network.limit(spec.hosts[0], 30_000_000)
    assert len(ran) == 2


@needs_namespaces
def test_each_replica_has_its_address_and_its_own_byte_counters(network: networks.Network) -> None:
    assert len({network.address(seat.replica) for seat in network.plan.seats}) == 3
    before = {replica: received_bytes(network, replica) for replica in (PS0, W0, W1)}
    amount = 64 * 65536
    transfer_seconds(network, W0, PS0, amount)
    assert received_bytes(network, PS0) - before[PS0] >= amount
    assert received_bytes(network, W1) - before[W1] < amount / 10


@needs_namespaces
def test_the_link_between_hosts_is_as_slow_as_asked_and_within_a_host_it_is_not(
    network: networks.Network,
) -> None:
    """40 Mbit/s is 5 MB/s: 4 MB need 0.8 s, less what the bucket holds; PS 0 and worker 1 share a host."""
    hosts = {seat.replica: seat.host.name for seat in network.plan.seats}
    assert hosts == {PS0: "slow", W0: "fast", W1: "slow"}
    amount = 64 * 65536
    assert transfer_seconds(network, W0, PS0, amount) > 0.6
    between = shaped_bytes(network)
    assert between >= amount
    transfer_seconds(network, W1, PS0, amount)
    assert shaped_bytes(network) - between < amount / 10, "within a host nothing goes through its link"


def sampled(network: networks.Network, sender: ReplicaId, receiver: ReplicaId, folder: Path) -> list[Any]:
    """Return the samples of an agent beside a command that sends 4 MB and waits until that was sampled."""
    server = subprocess.Popen(inside(network, receiver, SERVE), stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    host = network.address(receiver).partition(":")[0]
    files = {name: str(folder / f"{sender}-{name}") for name in ("spool", "exit", "reports")}
    config = {
        "job": "job", "role": sender.role.value, "index": sender.index, "attempt": 1, "cluster": {},
        "command": [sys.executable, "-c", SEND + "time.sleep(0.5)", host, str(64 * 65536)],
        "interface": "eth0", "sample_seconds": 0.1, **files,
    }  # fmt: skip
    namespace = networks.NAMESPACES / network.namespace(sender)
    with server, server.stdout:
        assert server.stdout.readline() == "ready\n"
        subprocess.run(
            ["nsenter", f"--net={namespace}", sys.executable, AGENT, json.dumps(config)],
            check=True,
            capture_output=True,
            timeout=240,
        )
    lines = map(json.loads, Path(files["spool"]).read_text().splitlines())
    return [line for line in lines if line["type"] == "sample"]


@needs_namespaces
def test_segments_that_were_lost_on_the_way_and_sent_again_are_sampled(
    network: networks.Network, tmp_path: Path
) -> None:
    """A queue of 40 kB on the way drops what comes in bursts; within a host there is none (but on a busy
    machine an acknowledgement may come so late that TCP takes it for lost).
    """
    queue = ("root", "tbf", "rate", "40mbit", "burst", "100kb", "limit", "140kb")
    command = ("tc", "-n", f"{network.prefix}-fabric", "qdisc", "replace", "dev", "host0", *queue)
    subprocess.run(command, check=True, capture_output=True)
    lost, none = sampled(network, W0, PS0, tmp_path), sampled(network, W1, PS0, tmp_path)
    for samples in (lost, none):
        assert all(each["sent_segments"] is not None for each in samples)
        assert sum(each["sent_segments"] for each in samples) >= 64
    again = [sum(each["retransmitted_segments"] for each in samples) for samples in (lost, none)]
    assert again[0] > again[1]


@needs_namespaces
def test_nothing_is_left_after_removal_and_creating_again_replaces(network: networks.Network) -> None:
    network.create()
    assert network.exists()
    network.remove()
    assert not list(networks.NAMESPACES.glob(f"{network.prefix}-*"))
    network.remove()
