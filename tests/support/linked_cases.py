"""Cases of jobs on emulated hosts whose links have so many bits a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.model.jobs.job_specs import Host
from paceline.model.measures.recordings import Recording
from support import cases

MBIT = 1_000_000
#: Two PS on one host of 100 Mbit/s, each worker on one of its own.
HOSTS = {"ps-0": "a", "ps-1": "a", "worker-0": "b", "worker-1": "c"}


def recording(
    megabits: Mapping[str, float],
    hosts: Mapping[str, str] = HOSTS,
    *,
    bandwidths: Mapping[str, int] | None = None,
    spec: Mapping[str, Any] | None = None,
    **more: Any,
) -> Recording:
    """Return the recording of replicas that receive so many Mbit/s and send half of that."""
    loads = {}
    for name, rate in megabits.items():
        moved = round(rate * MBIT / 8)
        base = cases.SERVER if name.startswith("ps") else cases.TRAINER
        loads[name] = {**base, "network_received_bytes": moved, "network_sent_bytes": moved // 2}
    made = tuple(
        Host(name=host, bandwidth_bits_per_second=(bandwidths or {}).get(host, 100 * MBIT))
        for host in dict.fromkeys([*hosts.values(), "d"])
    )
    rows = {name: {"host": host} for name, host in hosts.items()}
    return cases.recording(loads, rows=rows, spec={"hosts": made, **(spec or {})}, **more)
