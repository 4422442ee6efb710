"""Where a job's replicas sit on this machine: chosen when it is submitted or resumed, kept in its folder."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.engines.local import folders, machines, networks, ports
from paceline.errors import EngineError
from paceline.model import jobs
from paceline.model.roles import ReplicaId
from paceline.rendering import host_plans


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """A seat and an address ``host:port`` for each replica."""

    plan: host_plans.HostPlan
    addresses: Mapping[ReplicaId, str]

    def write(self, folder: folders.RunFolder) -> None:
        """Keep the layout in the run's folder."""
        seats = {
            str(seat.replica): {
                "host": seat.host.name,
                "cores": list(seat.cores),
                "address": self.addresses[seat.replica],
            }
            for seat in self.plan.seats
        }
        folder.layout.write_text(json.dumps(seats, indent=1))


def choose(
    spec: jobs.JobSpec,
    machine: machines.Machine,
    folder: folders.RunFolder,
    others: Iterable[folders.RunFolder],
) -> Layout:
    """Return where every replica goes, beside the unfinished jobs of ``others``.

    Raises:
        EngineError: the job is too big for what is free.
    """
    taken_ports: set[int] = set()
    taken_cores: set[int] = set()
    for seat in _all_seats(others):
        taken_ports.add(int(seat["address"].rpartition(":")[2]))
        taken_cores.update(seat["cores"])
    free_cores = [core for core in machine.cores if core not in taken_cores]
    plan = host_plans.plan(spec, free_cores=free_cores, machine_memory_bytes=machine.memory_bytes)
    replicas = spec.replicas()
    if has_network(spec, machine):
        network = networks.Network(folder.token, plan)
        return Layout(plan, {replica: network.address(replica) for replica in replicas})
    chosen = ports.choose(len(replicas), taken_ports, random.Random())
    return Layout(plan, {r: f"127.0.0.1:{port}" for r, port in zip(replicas, chosen, strict=True)})


def has_network(spec: jobs.JobSpec, machine: machines.Machine) -> bool:
    """Whether the replicas get network namespaces: the job asks for hosts, and we may make them."""
    return bool(spec.hosts) and not machine.lacks_namespaces


def read(spec: jobs.JobSpec, folder: folders.RunFolder) -> Layout:
    """Return the layout that was chosen.

    Raises:
        EngineError: it is not there or does not fit the job.
    """
    hosts = {host.name: host for host in spec.hosts or (host_plans.LOCAL,)}
    try:
        saved = json.loads(folder.layout.read_text())
        seats = tuple(
            host_plans.Seat(
                replica=replica,
                host=hosts[saved[str(replica)]["host"]],
                cores=tuple(saved[str(replica)]["cores"]),
            )
            for replica in spec.replicas()
        )
        addresses = {replica: str(saved[str(replica)]["address"]) for replica in spec.replicas()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineError(f"the layout in {folder.layout} cannot be read: {error!r}") from error
    return Layout(host_plans.HostPlan(seats), addresses)


def _all_seats(others: Iterable[folders.RunFolder]) -> Iterator[dict[str, Any]]:
    for folder in others:
        try:
            yield from json.loads(folder.layout.read_text()).values()
        except (OSError, ValueError):
            continue
