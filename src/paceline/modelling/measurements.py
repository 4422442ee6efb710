"""Measurements of a simulated job: the samples and step reports that a real job would give.

The cores and bytes of a step count when it ends. What a simulation does not know, such as memory, is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout
from paceline.modelling.simulations import Simulated

_Counts = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.floating[Any]]


def measurements(
    layout: ModelLayout, costs: Costs, done: Simulated, *, start_at: float
) -> tuple[list[Sample], list[StepReport]]:
    """Return a sample of each replica and a report of each trainer for every second, in the order of time.

    Args:
        layout: the layout of the job.
        costs: the costs of its steps.
        done: the simulation.
        start_at: when the job began (Unix seconds).
    """
    seconds = math.floor(done.seconds)
    if not seconds:
        return [], []
    steps = dict(_steps(layout, done, seconds))
    efforts = dict(_efforts(layout, done, seconds))
    total = sum(steps.values(), np.zeros(seconds, np.int64))
    samples: list[Sample] = []
    moved = sum(server.step_bytes for server in layout.servers) / 2
    step_seconds = costs.trainer_step_seconds(len(layout.servers))
    for trainers in layout.trainers:
        for replica in trainers.replicas:
            used = step_seconds * efforts[replica] + costs.trainer_background_cores
            samples += _samples(replica, steps[replica], used, moved, trainers.cores, start_at)
    for index, server in enumerate(layout.servers):
        cores = total * costs.server_seconds(server) + costs.server_background_cores
        replica = ReplicaId(Role.PS, index)
        samples += _samples(replica, total, cores, server.step_bytes / 2, server.cores, start_at)
    reports = list(_reports(layout, steps, dict(_waits(layout, done, seconds)), start_at))
    return sorted(samples, key=lambda each: each.at), sorted(reports, key=lambda each: each.at)


def _steps(layout: ModelLayout, done: Simulated, seconds: int) -> Iterator[tuple[ReplicaId, _Counts]]:
    """Yield the number of steps that each trainer ended in each second."""
    for trainers, group in zip(layout.trainers, done.step_ends, strict=True):
        for replica, ends in zip(trainers.replicas, group, strict=True):
            counts, _ = np.histogram(ends, bins=seconds, range=(0, seconds))
            yield replica, counts.astype(np.int64)


def _efforts(layout: ModelLayout, done: Simulated, seconds: int) -> Iterator[tuple[ReplicaId, _Floats]]:
    """Yield the computing of each trainer in each second, in ordinary steps."""
    for trainers, ends, efforts in zip(layout.trainers, done.step_ends, done.efforts, strict=True):
        for replica, own_ends, own in zip(trainers.replicas, ends, efforts, strict=True):
            yield replica, np.histogram(own_ends, bins=seconds, range=(0, seconds), weights=own)[0]


def _waits(layout: ModelLayout, done: Simulated, seconds: int) -> Iterator[tuple[ReplicaId, _Floats]]:
    """Yield the part of each second that each trainer waited for a batch: the first phase, if input binds."""
    for trainers, group in zip(layout.trainers, done.first_phases, strict=True):
        for replica, spans in zip(trainers.replicas, group, strict=True):
            if not layout.waits_for_input or not spans:
                yield replica, np.zeros(seconds)
                continue
            begun, over = (_passed(np.array(each), seconds) for each in zip(*spans, strict=True))
            yield replica, np.minimum(1.0, np.diff(begun - over))


def _passed(moments: _Floats, seconds: int) -> _Floats:
    """Return for each second the sum of the times that have passed since all earlier moments."""
    moments = np.sort(moments)
    at = np.arange(seconds + 1.0)
    count = np.searchsorted(moments, at)
    passed: _Floats = count * at - np.concatenate([[0.0], np.cumsum(moments)])[count]
    return passed


def _samples(
    replica: ReplicaId,
    steps: _Counts,
    used_cores: _Floats,
    step_bytes: float,
    limit: float | None,
    start_at: float,
) -> Iterator[Sample]:
    """Yield the samples of a replica that moves ``step_bytes`` in each direction for each step."""
    rows = zip(steps.tolist(), used_cores.tolist(), strict=True)
    for second, (count, cores) in enumerate(rows):
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
    layout: ModelLayout, steps: dict[ReplicaId, _Counts], waits: dict[ReplicaId, _Floats], start_at: float
) -> Iterator[StepReport]:
    reached = np.cumsum(sum(steps.values())).tolist()
    for replica, counts in steps.items():
        rows = zip(counts.tolist(), waits[replica].tolist(), strict=True)
        for second, (count, waited) in enumerate(rows):
            yield StepReport(
                replica=replica,
                attempt=1,
                at=start_at + second + 1,
                interval_seconds=1.0,
                step=reached[second],
                steps=count,
                examples=count * layout.batch_size,
                input_wait_seconds=waited,
            )
