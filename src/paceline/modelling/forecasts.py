"""What another layout of a job brings, as a multiple of what was measured of it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from paceline.model.deviations import NORMAL_90
from paceline.modelling import predictions
from paceline.modelling.calibrations import ASSUMED, Calibration, MeasuredRun
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout
from paceline.modelling.predictions import Speed

#: Standard deviation of what the model itself misses of another layout, as a share: of the layouts of the
#: benchmark `prediction` nine tenths were missed by less than 0.17 to 0.23, whose larger is 1.64 of them.
MODEL_SPREAD = 0.14
#: What is less is within the noise of a run.
WORTH = 1.1
#: The interval has so much of what is likely.
CONFIDENCE = 0.9
_DRAWS = 100
_SEED = 0
#: By so much of its logarithm a cost is moved to see what the speed makes of it.
_MOVE = 0.05


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is to be expected of a layout.

    Attributes:
        now: the layout that was measured, as the model sees it.
        then: the other one.
        examples_per_second: measured of the first.
        times: how many times as fast the other is.
        low, high: between which that lies, with `CONFIDENCE`.
        cores_now, cores_then: that are asked for; None: some are not limited.
        untold: the costs that the run does not tell: what is assumed of them widens the interval.
    """

    now: Speed
    then: Speed
    examples_per_second: float
    times: float
    low: float
    high: float
    cores_now: float | None
    cores_then: float | None
    untold: tuple[str, ...]

    @property
    def then_examples_per_second(self) -> float:
        """Return the speed that is to be expected."""
        return self.examples_per_second * self.times

    @property
    def core_hours(self) -> float | None:
        """Return what a million examples take now of the cores that are asked for; None: not limited."""
        return _core_hours(self.cores_now, self.examples_per_second)

    @property
    def then_core_hours(self) -> float | None:
        """Return what they are to be expected to take then."""
        return _core_hours(self.cores_then, self.then_examples_per_second)


def _core_hours(cores: float | None, examples_per_second: float) -> float | None:
    return None if cores is None else cores / examples_per_second * 1e6 / 3600


def knee(forecasts: Sequence[Forecast]) -> int:
    """Return the place from which on no further one is faster by `WORTH`, of layouts that grow."""
    speeds = [each.times for each in forecasts]
    return next(place for place, speed in enumerate(speeds) if max(speeds[place:]) < WORTH * speed)


def forecast(measured: MeasuredRun, calibration: Calibration, layout: ModelLayout) -> Forecast:
    """Return what to expect of another layout of a job that was measured.

    The speed is what was measured, times what the model says of both: so what it misses of the first does not
    count. The interval comes from what the runs leave open of the costs, and from what the model misses.
    """
    now, then = (predictions.speed(each, calibration.costs) for each in (measured.layout, layout))
    likely = _likely(calibration, measured.layout)
    speeds = predictions.speeds([(layout, costs) for costs, _ in likely])
    logs = [math.log(speed.steps_per_second) - log for speed, (_, log) in zip(speeds, likely, strict=True)]
    if layout != measured.layout:
        missed = np.random.default_rng(_SEED).normal(0.0, MODEL_SPREAD, size=len(logs))
        logs = [log + miss for log, miss in zip(logs, missed, strict=True)]
    low, high = np.exp(np.quantile(logs, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    return _forecast(measured, calibration, layout, (now, then), (float(low), float(high)))


def sketch(measured: MeasuredRun, calibration: Calibration, layout: ModelLayout) -> Forecast:
    """Return what `forecast` does, ten times as quickly: for a point among many of a curve.

    The interval is that of a normal distribution, as if the logarithm of the speed depended on those of the
    costs as on a straight line.
    """
    now, then = (_speed(each, calibration.costs) for each in (measured.layout, layout))
    times = then.steps_per_second / now.steps_per_second
    slopes = np.array(_slopes(calibration, layout)) - np.array(_slopes(calibration, measured.layout))
    variance = float(slopes @ np.array(calibration.covariance) @ slopes)
    missed = MODEL_SPREAD if layout != measured.layout else 0.0
    spread = NORMAL_90 * math.hypot(math.sqrt(variance), missed)
    ends = times * math.exp(-spread), times * math.exp(spread)
    return _forecast(measured, calibration, layout, (now, then), ends)


def _forecast(
    measured: MeasuredRun,
    calibration: Calibration,
    layout: ModelLayout,
    speeds: tuple[Speed, Speed],
    ends: tuple[float, float],
) -> Forecast:
    now, then = speeds
    times = then.steps_per_second / now.steps_per_second
    return Forecast(
        now=now,
        then=then,
        examples_per_second=measured.examples_per_second,
        times=times,
        low=min(ends[0], times),
        high=max(ends[1], times),
        cores_now=measured.layout.asked_cores,
        cores_then=layout.asked_cores,
        untold=calibration.untold,
    )


@functools.lru_cache(maxsize=256)
def _speed(layout: ModelLayout, costs: Costs) -> Speed:
    return predictions.speed(layout, costs)


@functools.lru_cache(maxsize=256)
def _slopes(calibration: Calibration, layout: ModelLayout) -> tuple[float, ...]:
    """Return by how much the logarithm of a layout's speed moves with that of each cost.

    A caller that moves along a curve asks for the same points again.
    """
    costs = calibration.costs
    begin = math.log(_speed(layout, costs).steps_per_second)
    moved = (dataclasses.replace(costs, **{name: getattr(costs, name) * math.exp(_MOVE)}) for name in ASSUMED)
    speeds = predictions.speeds([(layout, each) for each in moved])
    return tuple((math.log(speed.steps_per_second) - begin) / _MOVE for speed in speeds)


@functools.lru_cache(maxsize=8)
def _likely(calibration: Calibration, layout: ModelLayout) -> list[tuple[Costs, float]]:
    """Return costs as likely as the runs leave them, each with the logarithm of a layout's speed.

    Many others are held against the same layout: so the last ones are kept.
    """
    drawn = calibration.draws(_DRAWS, seed=_SEED)
    speeds = predictions.speeds([(layout, each) for each in drawn])
    return [(each, math.log(speed.steps_per_second)) for each, speed in zip(drawn, speeds, strict=True)]
