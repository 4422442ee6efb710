"""The costs of a model's steps, fitted to runs of it, and the costs that the runs cannot determine.

All costs are fitted at once, so that the predictions for the layouts of the runs come nearest to the
measurements, in logarithms: the speed, the cores of trainers, the cores of each server. A cost that the runs
do not show keeps its assumed value and uncertainty (maximum a posteriori, with the covariance of Laplace's
approximation: the inverse of the Gauss-Newton matrix).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paceline.modelling import least_squares, predictions
from paceline.modelling.costs import WHOLE_BYTE_SECONDS, Costs
from paceline.modelling.layouts import ModelLayout

#: Standard deviations of measurements from the prediction of the likeliest costs, as shares. The first is how
#: much runs of one layout differ that follow each other soon. The second is for the cores of a step: these
#: few costs miss that a step takes fewer cores where much waits. The cores deviate by up to this share when
#: all layouts of the benchmark `prediction` are fitted at once.
SPEED_SPREAD, CORES_SPREAD = 0.04, 0.1
#: Runs do not determine a cost if more than this share of its assumed uncertainty is left after them.
UNTOLD = 0.7
#: How far apart two costs are whose predictions show the effect of a cost, as a share.
DIFFERENCE = 5e-3

_Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """A cost before anything is measured: its median, and the factor of one standard deviation."""

    median: float
    factor: float


#: A cost that matters only for jobs that update tables whole.
_WHOLE = "server_whole_byte_seconds"
#: The costs before anything is measured. Visits: bare TensorFlow takes 0.6 to 2.1 ms of a server and 0.4 to
#: 1.1 ms of a trainer if the server holds 1 to 6 variables (benchmark `visits`). Bytes: copied three times at
#: 3 GB/s. Rows: found, copied and updated with two slots, 100 ns each. Background: an idle server takes 0.002
#: of a core and its agent as much; while there are steps, 0.01 to 0.02 do not grow with them. Tables that are
#: updated whole: see `costs`; other cores may need half or twice as long. The other costs may be anything.
ASSUMED = {
    "trainer_seconds": Assumed(median=5e-3, factor=30.0),
    "trainer_visit_seconds": Assumed(median=8e-4, factor=1.5),
    "server_visit_seconds": Assumed(median=1.2e-3, factor=1.5),
    "server_byte_seconds": Assumed(median=1e-9, factor=3.0),
    "server_row_seconds": Assumed(median=3e-7, factor=3.0),
    "own_seconds": Assumed(median=5e-4, factor=4.0),
    "trainer_background_cores": Assumed(median=0.015, factor=2.0),
    "server_background_cores": Assumed(median=0.015, factor=2.0),
    _WHOLE: Assumed(median=WHOLE_BYTE_SECONDS, factor=2.0),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A run of a layout.

    Attributes:
        layout: the layout that ran.
        steps_per_second: steps of all trainers together.
        trainer_cores: cores used by all trainers together.
        server_cores: cores used by each parameter server.
        is_storage_shared: whether it is known that trainers take from each other what storage delivers.
    """

    layout: ModelLayout
    steps_per_second: float
    trainer_cores: float
    server_cores: tuple[float, ...]
    is_storage_shared: bool = False

    @property
    def examples_per_second(self) -> float:
        """Return the examples a second of all trainers together."""
        return self.steps_per_second * self.layout.batch_size


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """The result of a probe that cut one part of the layout of a run.

    Attributes:
        layout: the layout with that part cut.
        times: how many times as fast the job was with it.
        deviation: the standard deviation of the logarithm of ``times``.
    """

    layout: ModelLayout
    times: float
    deviation: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Costs fitted to runs.

    Attributes:
        costs: the likeliest costs.
        covariance: the covariance of the logarithms of the costs, in the order of `ASSUMED`.
        untold: the names of the costs that the runs do not determine.
    """

    costs: Costs
    covariance: tuple[tuple[float, ...], ...]
    untold: tuple[str, ...]

    def draws(self, count: int, *, seed: int) -> list[Costs]:
        """Return random costs from the distribution that the runs leave."""
        chance = np.random.default_rng(seed)
        means = np.log([getattr(self.costs, name) for name in ASSUMED])
        drawn = chance.multivariate_normal(means, np.array(self.covariance), size=count)
        return [_costs(each) for each in drawn]


def calibrated(runs: Sequence[MeasuredRun], probed: Sequence[Probed] = ()) -> Calibration:
    """Return the costs that runs of the same model show.

    Args:
        runs: runs of any layouts.
        probed: the results of a probe of the first run.

    Raises:
        ValueError: there is no run, or a run does not train.
    """
    if not runs or any(run.steps_per_second <= 0 or run.trainer_cores <= 0 for run in runs):
        raise ValueError("a calibration needs a run that trains")
    means = np.log([assumed.median for assumed in ASSUMED.values()])
    spreads = np.log([assumed.factor for assumed in ASSUMED.values()])

    def misses(logs: _Floats) -> _Floats:
        given = _costs(logs)
        missed = [miss for run in runs for miss in _misses(run, given)]
        missed += _misses_of_probe(runs[0].layout, probed, given)
        return np.concatenate([missed, (logs - means) / spreads])

    fit = least_squares.fit(misses, _first(runs, means), difference=DIFFERENCE)
    covariance = np.linalg.inv(fit.jacobian.T @ fit.jacobian)
    left = np.sqrt(np.diag(covariance)) / spreads
    return Calibration(
        costs=_costs(fit.parameters),
        covariance=tuple(tuple(float(element) for element in row) for row in covariance),
        untold=tuple(
            name
            for name, share in zip(ASSUMED, left, strict=True)
            if share > UNTOLD and (name != _WHOLE or _update_whole(runs))
        ),
    )


def _update_whole(runs: Sequence[MeasuredRun]) -> bool:
    return any(server.whole_bytes for run in runs for server in run.layout.servers)


def _costs(logs: _Floats) -> Costs:
    return Costs(**dict(zip(ASSUMED, (float(each) for each in np.exp(logs)), strict=True)))


def _first(runs: Sequence[MeasuredRun], means: _Floats) -> _Floats:
    """Return the costs to start from: the assumed ones, with a trainer's seconds estimated from the runs."""
    first = means.copy()
    first[0] = math.log(np.mean([each.trainer_cores / each.steps_per_second for each in runs]))
    return first


def _misses(run: MeasuredRun, given: Costs) -> list[float]:
    """Return by how many standard deviations the prediction misses each measurement of a run."""
    speed = predictions.speed(run.layout, given)

    def cores(measured: float, steps: float, foretold: float) -> float:
        measured_per_step, foretold_per_step = measured / steps, foretold / speed.steps_per_second
        return math.log(max(foretold_per_step, 1e-12) / max(measured_per_step, 1e-12)) / CORES_SPREAD

    steps = run.steps_per_second
    return [
        math.log(speed.steps_per_second / steps) / SPEED_SPREAD,
        cores(run.trainer_cores, steps, speed.trainer_cores),
        *(
            cores(measured, steps, foretold)
            for measured, foretold in zip(run.server_cores, speed.server_cores, strict=True)
        ),
    ]


def _misses_of_probe(layout: ModelLayout, probed: Sequence[Probed], given: Costs) -> list[float]:
    """Return by how many standard deviations the prediction misses the effect of each cut."""
    if not probed:
        return []
    now, *then = predictions.speeds([(each, given) for each in (layout, *(one.layout for one in probed))])
    return [
        (math.log(speed.steps_per_second / now.steps_per_second) - math.log(each.times))
        / math.hypot(each.deviation, SPEED_SPREAD)
        for each, speed in zip(probed, then, strict=True)
    ]
