"""Where a job's replicas run on this machine: chosen at submission or resumption, stored with the run."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from paceline.engines.local import folders, machines, networks, ports
from paceline.errors import EngineError
from paceline.model.jobs import job_specs
from paceline.model.roles import ReplicaId
from paceline.rendering import host_plans


@dataclasses.dataclass(frozen=True, slots=True)
class HostLayout:
    """A seat and an address ``host:port`` for each replica.

    Workers that may be added while the job runs have only an address. Removed workers keep their seats.
    """

    plan: host_plans.HostPlan
    addresses: Mapping[ReplicaId, str]

    def write(self, folder: folders.RunFolder) -> None:
        """Write the layout to the run's folder."""
        found: dict[str, dict[str, Any]] = {
            str(replica): {"address": address} for replica, address in self.addresses.items()
        }
        for seat in self.plan.seats:
            found[str(seat.replica)] |= {"host": seat.host.name, "cores": list(seat.cores)}
        written = folder.layout.with_suffix(".new")
        written.write_text(json.dumps(found, indent=1))
        written.replace(folder.layout)


def choose(
    spec: job_specs.JobSpec,
    machine: machines.Machine,
    folder: folders.RunFolder,
    others: Iterable[folders.RunFolder],
) -> HostLayout:
    """Return a layout that avoids the ports and cores of the unfinished jobs in ``others``.

    Raises:
        EngineError: the free cores, memory or ports do not suffice for the job.
    """
    others = list(others)
    taken_ports = {int(seat["address"].rpartition(":")[2]) for seat in _all_seats(others)}
    plan = seated(spec, machine, others)
    replicas = spec.replicas()
    if has_network(spec, machine):
        network = networks.Network(folder.token, plan)
        return HostLayout(plan, {replica: network.address(replica) for replica in replicas})
    replicas += spec.spares()
    chosen = ports.choose(len(replicas), taken_ports, random.Random())
    return HostLayout(plan, {r: f"127.0.0.1:{port}" for r, port in zip(replicas, chosen, strict=True)})


def seated(
    spec: job_specs.JobSpec, machine: machines.Machine, others: Iterable[folders.RunFolder]
) -> host_plans.HostPlan:
    """Return a plan with a seat for every replica, without the cores of the unfinished jobs in ``others``.

    Raises:
        EngineError: the free resources do not suffice for the job.
    """
    free_cores = _free_cores(machine, others)
    return host_plans.plan(spec, free_cores=free_cores, machine_memory_bytes=machine.memory_bytes)


def extend(
    spec: job_specs.JobSpec,
    machine: machines.Machine,
    folder: folders.RunFolder,
    active: Iterable[folders.RunFolder],
) -> None:
    """Assign seats to the new workers of a running job; the other replicas keep theirs.

    Args:
        spec: the job with its new workers.
        machine: this machine.
        folder: the folder of the job's run.
        active: the folders of all unfinished jobs, including this one.

    Raises:
        EngineError: there is no room for the new workers.
    """
    layout = read(folder, spec.hosts)
    plan = host_plans.extended(layout.plan, spec, free_cores=_free_cores(machine, active))
    if plan != layout.plan:
        HostLayout(plan, layout.addresses).write(folder)


def _free_cores(machine: machines.Machine, others: Iterable[folders.RunFolder]) -> list[int]:
    taken = {core for seat in _all_seats(others) for core in seat.get("cores", ())}
    return [core for core in machine.cores if core not in taken]


def has_network(spec: job_specs.JobSpec, machine: machines.Machine) -> bool:
    """Return whether replicas get network namespaces: the job has emulated hosts, and they are allowed."""
    return bool(spec.hosts) and not machine.lacks_namespaces


def read(folder: folders.RunFolder, hosts: Sequence[job_specs.Host]) -> HostLayout:
    """Return the stored layout of a run.

    Args:
        folder: the folder of the run.
        hosts: the emulated hosts of the job; empty if it has none.

    Raises:
        EngineError: the layout is missing, unreadable or names unknown hosts.
    """
    known = {host.name: host for host in hosts or (host_plans.LOCAL,)}
    try:
        saved = json.loads(folder.layout.read_text())
        seats = tuple(
            host_plans.Seat(
                replica=ReplicaId.parse(name), host=known[each["host"]], cores=tuple(each["cores"])
            )
            for name, each in saved.items()
            if "host" in each
        )
        addresses = {ReplicaId.parse(name): str(each["address"]) for name, each in saved.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EngineError(f"the layout in {folder.layout} cannot be read: {error!r}") from error
    return HostLayout(host_plans.HostPlan(seats), addresses)


def _all_seats(others: Iterable[folders.RunFolder]) -> Iterator[dict[str, Any]]:
    for folder in others:
        try:
            yield from json.loads(folder.layout.read_text()).values()
        except (OSError, ValueError):
            continue
