"""The costs of a model's steps, from runs of it: what they show, and what they cannot tell.

All costs are found at once, as those with which the layouts of the runs come nearest to what was measured of
them, in logarithms: the speed, the cores of trainers, the cores of each server. What the runs do not show
stays where it was assumed, and as uncertain (maximum a posteriori, with the covariance of Laplace's
approximation: the inverse of the Gauss-Newton matrix).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize

from paceline.modelling import predictions
from paceline.modelling.costs import WHOLE_BYTE_SECONDS, Costs
from paceline.modelling.layouts import ModelLayout

#: Standard deviations of what is measured from what the likeliest costs tell, as shares. Runs of one layout
#: that follow soon differ by the first. Cores of a step differ by up to the second, as these few costs miss
#: that they are less where much waits: so far off are they when all layouts of the benchmark `prediction` are
#: fitted at once.
SPEED_SPREAD, CORES_SPREAD = 0.04, 0.1
#: A cost of which the runs leave this share of what was assumed of its uncertainty is not told by them.
UNTOLD = 0.7

_Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What is assumed of a cost before anything is measured: its median, and a factor of one deviation."""

    median: float
    factor: float


#: A cost that only jobs have that update tables whole: of others it is no matter what it is.
_WHOLE = "server_whole_byte_seconds"
#: Before anything is measured. Visits: bare TensorFlow takes 0.6 to 2.1 ms of a server and 0.4 to 1.1 ms of a
#: trainer where 1 to 6 variables lie (benchmark `visits`); bytes: copied three times at 3 GB/s; rows: found,
#: copied and updated with two slots, 100 ns each. Background: an idle server takes 0.002 of a
#: core and its agent as much; while there are steps, 0.01 to 0.02 do not grow with them. Tables that are
#: updated whole: see `costs`; on other cores it may be half or twice that. The rest may be anything.
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
        layout: what ran.
        steps_per_second: of all trainers.
        trainer_cores: used by all trainers together.
        server_cores: used by each parameter server.
    """

    layout: ModelLayout
    steps_per_second: float
    trainer_cores: float
    server_cores: tuple[float, ...]

    @property
    def examples_per_second(self) -> float:
        """Return how many examples all trainers took."""
        return self.steps_per_second * self.layout.batch_size


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What a probe says of a run: with some part of its layout cut.

    Attributes:
        layout: with that part cut.
        times: how many times as fast that was.
        deviation: the standard deviation of the logarithm of that.
    """

    layout: ModelLayout
    times: float
    deviation: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What runs say of costs.

    Attributes:
        costs: the likeliest.
        covariance: of the logarithms of the costs, in the order of their fields.
        untold: names of the costs that the runs cannot tell.
    """

    costs: Costs
    covariance: tuple[tuple[float, ...], ...]
    untold: tuple[str, ...]

    def draws(self, count: int, *, seed: int) -> list[Costs]:
        """Return costs as likely as the runs leave them."""
        chance = np.random.default_rng(seed)
        means = np.log([getattr(self.costs, name) for name in ASSUMED])
        drawn = chance.multivariate_normal(means, np.array(self.covariance), size=count)
        return [_costs(each) for each in drawn]


def calibrated(runs: Sequence[MeasuredRun], probed: Sequence[Probed] = ()) -> Calibration:
    """Return the costs that runs of the same model show.

    Args:
        runs: of any layouts.
        probed: what a probe says of the first.

    Raises:
        ValueError: there is no run, or one that does not train.
    """
    if not runs or any(each.steps_per_second <= 0 or each.trainer_cores <= 0 for each in runs):
        raise ValueError("a calibration needs a run that trains")
    means = np.log([each.median for each in ASSUMED.values()])
    spreads = np.log([each.factor for each in ASSUMED.values()])

    def misses(logs: _Floats) -> _Floats:
        given = _costs(logs)
        missed = [miss for run in runs for miss in _misses(run, given)]
        missed += _misses_of_probe(runs[0].layout, probed, given)
        return np.concatenate([missed, (logs - means) / spreads])

    found = optimize.least_squares(misses, _first(runs, means), method="lm", diff_step=1e-3)
    covariance = np.linalg.inv(found.jac.T @ found.jac)
    left = np.sqrt(np.diag(covariance)) / spreads
    return Calibration(
        costs=_costs(found.x),
        covariance=tuple(tuple(float(each) for each in row) for row in covariance),
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
    """Return where to begin: a trainer's part can be seen at once."""
    first = means.copy()
    first[0] = math.log(np.mean([each.trainer_cores / each.steps_per_second for each in runs]))
    return first


def _misses(run: MeasuredRun, given: Costs) -> list[float]:
    """Return by how many deviations a run is missed."""
    found = predictions.speed(run.layout, given)

    def cores(measured: float, steps: float, foretold: float) -> float:
        per_step, told = measured / steps, foretold / found.steps_per_second
        return math.log(max(told, 1e-12) / max(per_step, 1e-12)) / CORES_SPREAD

    steps = run.steps_per_second
    return [
        math.log(found.steps_per_second / steps) / SPEED_SPREAD,
        cores(run.trainer_cores, steps, found.trainer_cores),
        *(
            cores(measured, steps, foretold)
            for measured, foretold in zip(run.server_cores, found.server_cores, strict=True)
        ),
    ]


def _misses_of_probe(layout: ModelLayout, probed: Sequence[Probed], given: Costs) -> list[float]:
    """Return by how many deviations what each cut did to a layout is missed."""
    if not probed:
        return []
    now, *then = predictions.speeds([(each, given) for each in (layout, *(one.layout for one in probed))])
    return [
        (math.log(speed.steps_per_second / now.steps_per_second) - math.log(each.times))
        / math.hypot(each.deviation, SPEED_SPREAD)
        for each, speed in zip(probed, then, strict=True)
    ]
