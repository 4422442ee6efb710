"""The simulator: how fast it is, and how near to what was measured of the layouts of ``prediction``."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support.prerequisites import NotHere

from benchmarks import plots
from benchmarks.prediction import runs
from benchmarks.protocols import Bench, Check, Result, Row, interval, written_rows
from paceline.model.roles import ReplicaId, Role
from paceline.modelling import calibrations, costs, simulations
from paceline.modelling.calibrations import Calibration, MeasuredRun
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers

WORKERS, SERVERS, STEPS, LIMIT_SECONDS = 200, 20, 1000, 10.0
#: Of each layout so many seconds are simulated, as many as were measured; their first are not counted.
_SECONDS, _SETTLE_SECONDS = 60.0, 10.0
NEAR = 0.15
_LARGE, _LAYOUT = "large", "layout"
#: What a step costs is taken from measured runs; how much steps differ is the simulator's own default.
_VARIATION = 0.5
_COSTS = Costs(
    trainer_seconds=0.02,
    trainer_visit_seconds=2e-4,
    server_visit_seconds=2e-4,
    server_byte_seconds=2e-9,
    server_row_seconds=3e-7,
    own_seconds=5e-4,
    trainer_background_cores=0.015,
    server_background_cores=0.015,
)


def run(bench: Bench) -> list[Check]:
    """Simulate a large job several times, and every layout that was measured once."""
    rows = written_rows("prediction")
    if not rows:
        raise NotHere("the layouts were not measured: python -m benchmarks prediction")
    learnt = [runs.measured(row) for row in rows if row["learnt"]]
    others = [(row["layout"], runs.measured(row)) for row in rows if not row["learnt"]]
    others = others[: 10 if bench.quick else None]
    repeats = 2 if bench.quick else 5
    bench.plan(repeats + len(others))
    for number in range(repeats):
        bench.repeat(f"{_LARGE} {number}", functools.partial(_large, number))
    calibration = calibrations.calibrated(learnt)
    for key, each in others:
        bench.repeat(key, functools.partial(_simulated, calibration, each))
    return list(_checks(bench.rows))


def _large(seed: int) -> dict[str, Any]:
    """Simulate so many steps of each trainer of a large job."""
    workers = tuple(ReplicaId(Role.WORKER, index) for index in range(WORKERS))
    layout = ModelLayout(
        servers=(ParameterServer(cores=4.0, host=None, step_bytes=2e5),) * SERVERS,
        trainers=(Trainers(replicas=workers, cores=1.0, host=None),),
        hosts=(),
        machine_cores=None,
        batch_size=512,
    )
    start = time.process_time()
    simulations.simulate(
        *costs.network(layout, _COSTS), seed=seed, steps=WORKERS * STEPS, variation=_VARIATION
    )
    return {"kind": _LARGE, "cpu_seconds": time.process_time() - start}


def _simulated(calibration: Calibration, measured: MeasuredRun) -> dict[str, Any]:
    """Simulate a layout that was measured."""
    network = costs.network(measured.layout, calibration.costs)
    done = simulations.simulate(*network, seed=0, seconds=_SECONDS, variation=_VARIATION)
    return {
        "kind": _LAYOUT,
        "measured": measured.steps_per_second,
        "simulated": done.steps_per_second(after_seconds=_SETTLE_SECONDS),
    }


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    value, low, high = interval([row["cpu_seconds"] for row in rows if row["kind"] == _LARGE])
    yield Check(
        name=f"CPU seconds for {WORKERS} workers x {SERVERS} PS x {STEPS:,} steps", value=value, low=low,
        high=high, target=f"<= {LIMIT_SECONDS:g}", holds=high <= LIMIT_SECONDS,
    )  # fmt: skip
    errors = sorted(_errors(rows))
    median = statistics.median(errors)
    yield Check(
        name=f"error over {len(errors)} measured layouts, median", value=median, low=errors[0],
        high=errors[-1], target=f"<= {NEAR:g}", holds=median <= NEAR,
    )  # fmt: skip
    share = sum(each <= NEAR for each in errors) / len(errors)
    yield Check(
        name=f"share of layouts within {NEAR:.0%}", value=share, low=None, high=None,
        target="reported", holds=True,
    )  # fmt: skip


def _errors(rows: Sequence[Row]) -> list[float]:
    return [abs(row["simulated"] / row["measured"] - 1) for row in rows if row["kind"] == _LAYOUT]


def draw(result: Result, path: Path) -> None:
    """Draw how far each layout is from what was measured."""
    groups = {"simulated over measured": _errors(result.rows)}
    plots.strips(path, groups, label="error of steps/s", title="Layouts simulated")
