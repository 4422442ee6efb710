"""What a simulated job would have been measured to do: the samples and step reports of a real one.

Cores and bytes of a step count when it ends. What a simulation does not know, as memory, is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from paceline.model.roles import ReplicaId, Role
from paceline.model.samples import Sample, StepReport
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import Layout
from paceline.modelling.simulations import Simulated

_Counts = npt.NDArray[np.int64]


def measurements(
    layout: Layout, costs: Costs, done: Simulated, *, start_at: float
) -> tuple[list[Sample], list[StepReport]]:
    """Return a sample of each replica and a report of each trainer for every second, in the order of time.

    Args:
        layout: of the job.
        costs: of its steps.
        done: what happened.
        start_at: when it began (Unix seconds).
    """
    seconds = math.floor(done.seconds)
    steps = dict(_steps(layout, done, seconds))
    total = sum(steps.values(), np.zeros(seconds, np.int64))
    samples: list[Sample] = []
    moved = sum(each.step_bytes for each in layout.servers) / 2
    own = costs.trainer_step_seconds(len(layout.servers))
    for trainers in layout.trainers:
        for replica in trainers.replicas:
            samples += _samples(replica, steps[replica], own, moved, trainers.cores, costs, start_at)
    for index, server in enumerate(layout.servers):
        own = costs.server_seconds(server.step_bytes)
        replica = ReplicaId(Role.PS, index)
        samples += _samples(replica, total, own, server.step_bytes / 2, server.cores, costs, start_at)
    reports = list(_reports(layout, steps, total, start_at))
    return sorted(samples, key=lambda each: each.at), sorted(reports, key=lambda each: each.at)


def _steps(layout: Layout, done: Simulated, seconds: int) -> Iterator[tuple[ReplicaId, _Counts]]:
    """Yield the steps that each trainer ended in each second."""
    for trainers, crew in zip(layout.trainers, done.step_ends, strict=True):
        for replica, ends in zip(trainers.replicas, crew, strict=True):
            counts, _ = np.histogram(ends, bins=seconds, range=(0, seconds))
            yield replica, counts.astype(np.int64)


def _samples(
    replica: ReplicaId,
    steps: _Counts,
    core_seconds: float,
    step_bytes: float,
    limit: float | None,
    costs: Costs,
    start_at: float,
) -> Iterator[Sample]:
    """Yield samples of a replica that uses so much, and moves so many bytes either way, for each step."""
    for second, count in enumerate(steps.tolist()):
        cores = count * core_seconds + costs.background_cores
        yield Sample(
            replica=replica,
            attempt=1,
            at=start_at + second + 1,
            interval_seconds=1.0,
            cpu_cores=cores if limit is None else min(cores, limit),
            cpu_limit_cores=limit,
            network_received_bytes=round(count * step_bytes),
            network_sent_bytes=round(count * step_bytes),
        )


def _reports(
    layout: Layout, steps: dict[ReplicaId, _Counts], total: _Counts, start_at: float
) -> Iterator[StepReport]:
    reached = np.cumsum(total).tolist()
    for replica, counts in steps.items():
        for second, count in enumerate(counts.tolist()):
            yield StepReport(
                replica=replica,
                attempt=1,
                at=start_at + second + 1,
                interval_seconds=1.0,
                step=reached[second],
                steps=count,
                examples=count * layout.batch_size,
                input_wait_seconds=0.0,
            )
