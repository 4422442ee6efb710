"""Models of others, fitted to the same runs: non-negative least squares of the time of a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize

from paceline.modelling.calibrations import MeasuredRun
from paceline.modelling.layouts import ModelLayout

_Floats = npt.NDArray[np.float64]
#: From a layout the terms of the time that each trainer takes for a step.
Terms = Callable[[ModelLayout], Sequence[float]]


def optimus(layout: ModelLayout) -> Sequence[float]:
    """Return the terms of Optimus, asynchronous (Peng and others 2018, section 3.2)."""
    workers, servers = layout.trainer_count, len(layout.servers)
    return 1.0, workers / servers, float(workers), float(servers)


def dlrover_rm(layout: ModelLayout) -> Sequence[float]:
    """Return the terms of DLRover-RM (Wang and others 2023): gradient, update, exchange, embedding, rest."""
    workers, servers = layout.trainer_count, len(layout.servers)
    worker_cores = np.mean([each.cores or 1.0 for each in layout.trainers for _ in each.replicas])
    server_cores = np.mean([each.cores or 1.0 for each in layout.servers])
    bandwidths = [host.bandwidth_bits_per_second for host in layout.hosts if host.bandwidth_bits_per_second]
    moved = sum(each.step_bytes for each in layout.servers)
    exchange = 8 * moved / servers / (min(bandwidths, default=10**10) / workers)
    return (
        layout.batch_size / float(worker_cores),
        workers / (servers * float(server_cores)),
        exchange,
        layout.batch_size / servers,
        1.0,
    )


def steps_per_second(terms: Terms, runs: Sequence[MeasuredRun], of: ModelLayout) -> float:
    """Return the throughput that a model tells of a layout when it has learnt from runs."""
    rows: _Floats = np.array([terms(each.layout) for each in runs], dtype=float)
    seconds = np.array([each.layout.trainer_count / each.steps_per_second for each in runs])
    scale = rows.max(axis=0)
    scale[scale == 0] = 1.0
    factors, _ = optimize.nnls(rows / scale, seconds)
    step = float(np.array(terms(of), dtype=float) @ (factors / scale))
    return of.trainer_count / max(step, 1e-9)
