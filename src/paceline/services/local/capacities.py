"""The capacity of this machine for jobs, and whether another job fits.

Jobs that share cores may together ask for more than there are; each then gets less. A job does not fit only
if it needs more exclusive cores than are left, or if it is larger than the machine or an emulated host.
"""

from __future__ import annotations

import bisect
import socket
from collections.abc import Iterable, Sequence

from paceline.engines.local import layouts
from paceline.engines.local.folders import RunFolder
from paceline.engines.local.machines import Machine
from paceline.errors import EngineError
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Node, Resources
from paceline.model.roles import Role
from paceline.scheduling.fits import Blocker, Fit
from paceline.scheduling.items import total


def node(machine: Machine, active: Iterable[JobSpec]) -> Node:
    """Return this machine, with the sum of what its unfinished jobs ask for."""
    return Node(
        name=socket.gethostname(),
        allocatable=Resources(millicores=1000 * len(machine.cores), memory_bytes=machine.memory_bytes),
        used=sum(map(total, active), Resources()),
    )


def fit(spec: JobSpec, machine: Machine, others: Sequence[RunFolder]) -> Fit:
    """Return whether a job fits beside the unfinished jobs of ``others``."""
    workers = spec.role(Role.WORKER)
    try:
        plan = layouts.seated(spec, machine, others)
    except EngineError as error:
        reason = error.message if error.hint is None else f"{error.message}: {error.hint}"
        most = None if workers is None else _most_workers(spec, machine, others)
        return Fit(fits=False, places={}, most_workers=most, blockers=(Blocker(reason=reason),))
    return Fit(
        fits=True,
        places={seat.replica: seat.host.name for seat in plan.seats},
        most_workers=None if workers is None else workers.replicas,
    )


def _most_workers(spec: JobSpec, machine: Machine, others: Sequence[RunFolder]) -> int | None:
    """Return how many workers would fit; None: the job does not even fit without workers."""

    def lacks(count: int) -> bool:
        try:
            layouts.seated(spec.with_workers(count), machine, others)
        except EngineError:
            return True
        return False

    workers = spec.role(Role.WORKER)
    assert workers is not None, "there are some"
    if lacks(0):
        return None
    return bisect.bisect_left(range(1, workers.replicas + 1), True, key=lacks)
