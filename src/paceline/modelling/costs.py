"""The costs of a step as a few numbers, and the network of resources that they make of a layout.

In a step a trainer takes a batch that its input has prepared, computes on its own cores, and visits all
parameter servers at once. A server works for each visit, for each byte that it moves, for each row that it
looks up, and for each byte of a table that it updates whole. The trainer works for each visit, too. Half of
the bytes go to the trainer (pulls) and half to the server (pushes), over the links of both hosts. In
addition, every process uses a little CPU all the time: threads that poll, timers, its agent. This background
is subtracted from the cores that steps can use.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers
from paceline.modelling.resources import Resource, TrainerGroup

#: The kernel refills a quota every 100 ms (``scheduler/sched-bwc``); unused time of a period is lost.
QUOTA_SECONDS = 0.1
#: The burst of the shaped link of an emulated host (``tc-tbf(8)``), the larger of the two: see
#: `engines.local.networks`.
LINK_BURST_SECONDS, LINK_BURST_BYTES = 0.01, 128 * 1024
#: The share of an Ethernet frame of 1514 bytes that headers leave for TCP's payload (RFC 894, 791, 9293).
LINK_PAYLOAD = 1448 / 1514
#: The resource that all trainers read from.
STORAGE = "storage"
#: Batches that an input prepares ahead while a trainer computes (``tf.data.Dataset.prefetch``).
INPUT_AHEAD = 2.0
#: The share of cores that is left for steps at least, even if the background alone would take all of them.
LEAST_LEFT = 0.1
#: Measured for Adam, which reads and writes a table and its two moments: 2 ms a megabyte (float32 rows of 16
#: values, on one core).
WHOLE_BYTE_SECONDS = 2e-9
_MACHINE = "this machine"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The costs of a step.

    Attributes:
        trainer_seconds: core seconds of a trainer, without its visits.
        trainer_visit_seconds: core seconds of a trainer for each server that it visits.
        server_visit_seconds: core seconds of a server for each visit.
        server_byte_seconds: core seconds of a server for each byte of a visit.
        server_row_seconds: core seconds of a server for each row of a table that it looks up and updates.
        own_seconds: seconds of a step in which no limited resource is used: network round trips and wake-ups.
        trainer_background_cores, server_background_cores: cores that each process uses all the time, whatever
            it does.
        server_whole_byte_seconds: core seconds of a server for each byte of a table that it updates whole.
    """

    trainer_seconds: float
    trainer_visit_seconds: float
    server_visit_seconds: float
    server_byte_seconds: float
    server_row_seconds: float
    own_seconds: float
    trainer_background_cores: float
    server_background_cores: float
    server_whole_byte_seconds: float = WHOLE_BYTE_SECONDS

    def server_seconds(self, server: ParameterServer) -> float:
        """Return the core seconds of a server for a visit."""
        return (
            self.server_visit_seconds
            + self.server_byte_seconds * server.step_bytes
            + self.server_row_seconds * server.step_rows
            + self.server_whole_byte_seconds * server.whole_bytes
        )

    def trainer_step_seconds(self, servers: int) -> float:
        """Return the core seconds of a trainer for a step with this number of servers."""
        return self.trainer_seconds + self.trainer_visit_seconds * servers


def network(layout: ModelLayout, costs: Costs) -> tuple[list[Resource], list[TrainerGroup]]:
    """Return a layout as resources and groups of trainers."""
    return list(_resources(layout, costs)), list(_groups(layout, costs))


def _resources(layout: ModelLayout, costs: Costs) -> Iterator[Resource]:
    if layout.machine_cores is not None:
        yield _shared_cores(
            _MACHINE, layout.machine_cores, _background_cores(layout.servers, layout.trainers, costs)
        )
    for host in layout.hosts:
        if host.cpu_cores is not None:
            servers = [server for server in layout.servers if server.host == host.name]
            trainers = [group for group in layout.trainers if group.host == host.name]
            used = _background_cores(servers, trainers, costs)
            yield _quota(f"cores of {host.name}", host.cpu_cores, used)
        if host.bandwidth_bits_per_second is not None:
            rate = host.bandwidth_bits_per_second / 8 * LINK_PAYLOAD
            burst = max(LINK_BURST_BYTES, rate * LINK_BURST_SECONDS)
            yield Resource(name=f"link from {host.name}", rate=rate, burst=burst)
            yield Resource(name=f"link to {host.name}", rate=rate, burst=burst)
    for index, server in enumerate(layout.servers):
        if server.cores is not None:
            yield _quota(f"cores of ps-{index}", server.cores, costs.server_background_cores)
        elif f"cores of ps-{index}" in _core_names(layout, server, f"ps-{index}"):
            yield _unlimited(f"cores of ps-{index}")
    for name, group in _groups_by_name(layout).items():
        if group.cores is not None:
            used = costs.trainer_background_cores
            yield _quota(f"cores of {name}", group.cores, used, copies=group.count)
        elif f"cores of {name}" in _core_names(layout, group, name):
            yield _unlimited(f"cores of {name}")
    yield from _inputs(layout)


def _inputs(layout: ModelLayout) -> Iterator[Resource]:
    """Yield what trainers wait for before a step: the input of each, and the storage of all."""
    if layout.input_steps_per_second is not None:
        for name, group in _groups_by_name(layout).items():
            rate = layout.input_steps_per_second
            yield Resource(name=f"input of {name}", rate=rate, burst=INPUT_AHEAD, copies=group.count)
    if layout.storage_steps_per_second is not None:
        ahead = INPUT_AHEAD * layout.trainer_count
        yield Resource(name=STORAGE, rate=layout.storage_steps_per_second, burst=ahead)


def _background_cores(
    servers: Sequence[ParameterServer], trainers: Sequence[Trainers], costs: Costs
) -> float:
    count = sum(each.count for each in trainers)
    return costs.server_background_cores * len(servers) + costs.trainer_background_cores * count


def _left(cores: float, used: float) -> float:
    """Return the cores left for steps: always a few, as every process gets a share whatever others want."""
    return max(cores - used, LEAST_LEFT * cores)


def _shared_cores(name: str, cores: float, used: float) -> Resource:
    return Resource(name=name, rate=_left(cores, used), peak=1.0)


def _quota(name: str, cores: float, used: float, copies: int = 1) -> Resource:
    left = _left(cores, used)
    return Resource(name=name, rate=left, peak=1.0, burst=left * QUOTA_SECONDS, copies=copies)


def _unlimited(name: str) -> Resource:
    return Resource(name=name, rate=math.inf, peak=1.0)


def _core_names(layout: ModelLayout, process: ParameterServer | Trainers, own: str) -> list[str]:
    """Return the cores that a process draws on: at each level with a limit, or else its own, without one."""
    names = [_MACHINE] if layout.machine_cores is not None else []
    names += [
        f"cores of {host.name}"
        for host in layout.hosts
        if host.name == process.host and host.cpu_cores is not None
    ]
    return names if names and process.cores is None else [*names, f"cores of {own}"]


def _groups_by_name(layout: ModelLayout) -> dict[str, Trainers]:
    """Return the trainers by their name; a number is appended to a name that is already taken."""
    found: dict[str, Trainers] = {}
    for number, each in enumerate(layout.trainers):
        found[each.name if each.name not in found else f"{each.name} ({number})"] = each
    return found


def _groups(layout: ModelLayout, costs: Costs) -> Iterator[TrainerGroup]:
    hosts = {host.name: host for host in layout.hosts}

    def core_draws(process: ParameterServer | Trainers, own: str, seconds: float) -> dict[str, float]:
        return dict.fromkeys(_core_names(layout, process, own), seconds)

    def links(source: str | None, target: str | None, size: float) -> dict[str, float]:
        if source == target:
            return {}
        ends = ((source, "from"), (target, "to"))
        return {
            f"link {way} {host}": size
            for host, way in ends
            if host is not None and hosts[host].bandwidth_bits_per_second is not None
        }

    for name, group in _groups_by_name(layout).items():
        step_seconds = costs.trainer_step_seconds(len(layout.servers))
        visits: list[Mapping[str, float]] = [
            core_draws(server, f"ps-{index}", costs.server_seconds(server))
            | links(server.host, group.host, server.step_bytes / 2)
            | links(group.host, server.host, server.step_bytes / 2)
            for index, server in enumerate(layout.servers)
        ]
        inputs = {
            f"input of {name}": layout.input_steps_per_second,
            STORAGE: layout.storage_steps_per_second,
        }
        draws = {source: 1.0 for source, rate in inputs.items() if rate is not None}
        reading = [(draws,)] if draws else []
        yield TrainerGroup(
            name=name,
            trainers=group.count,
            steps_in_flight=layout.steps_in_flight,
            own_seconds=costs.own_seconds,
            phases=(*reading, (core_draws(group, name, step_seconds),), tuple(visits)),
            computes_in=len(reading),
        )
