"""Forecasts: the speed of another layout of a job, as a multiple of its measured speed."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from paceline.model.deviations import NORMAL_90
from paceline.modelling import predictions
from paceline.modelling.calibrations import ASSUMED, Calibration, MeasuredRun
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout
from paceline.modelling.predictions import Speed

#: Standard deviation of the model's own error for another layout, as a share. In the benchmark `prediction`
#: the error was below 0.17 to 0.23 for nine tenths of the layouts; 0.23 is 1.64 standard deviations.
MODEL_SPREAD = 0.14
#: A smaller factor is within the noise of a run.
WORTH = 1.1
#: The probability that the interval covers.
CONFIDENCE = 0.9
_DRAWS = 100
_SEED = 0
#: The change of a cost's logarithm by which the slope of the speed is found.
_MOVE = 0.05


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The expected speed of another layout.

    Attributes:
        now: the predicted speed of the measured layout.
        then: the predicted speed of the other layout.
        examples_per_second: the measured speed of the measured layout.
        times: how many times as fast the other layout is.
        low, high: the interval of ``times``, with `CONFIDENCE`.
        cores_now, cores_then: the cores that each layout asks for; None: some are not limited.
        untold: what the run does not determine, most of it costs; its uncertainty widens the interval.
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
        """Return the expected examples a second of the other layout."""
        return self.examples_per_second * self.times

    @property
    def core_hours(self) -> float | None:
        """Return the core hours for a million examples now; None: some cores are not limited."""
        return _core_hours(self.cores_now, self.examples_per_second)

    @property
    def then_core_hours(self) -> float | None:
        """Return the expected core hours for a million examples with the other layout."""
        return _core_hours(self.cores_then, self.then_examples_per_second)


def _core_hours(cores: float | None, examples_per_second: float) -> float | None:
    return None if cores is None else cores / examples_per_second * 1e6 / 3600


def knee(forecasts: Sequence[Forecast]) -> int:
    """Return the index of the first layout that no later one beats by `WORTH`; the layouts grow in size."""
    speeds = [each.times for each in forecasts]
    return next(place for place, speed in enumerate(speeds) if max(speeds[place:]) < WORTH * speed)


def forecast(measured: MeasuredRun, calibration: Calibration, layout: ModelLayout) -> Forecast:
    """Return the expected speed of another layout of a measured job.

    It is the measured speed times the ratio of the two predictions, so the model's error for the measured
    layout cancels. The interval comes from the uncertainty of the costs and from the error of the model. If
    trainers wait for storage, and no probe has shown whether more of them would get more from there, the
    interval covers both.
    """
    return _either(_forecast_known, measured, calibration, layout)


def _forecast_known(measured: MeasuredRun, calibration: Calibration, layout: ModelLayout) -> Forecast:
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
    """Return the same as `forecast` ten times as quickly, for one of many points of a curve.

    The interval is that of a normal distribution: it takes the logarithm of the speed as a linear function of
    the logarithms of the costs.
    """
    return _either(_sketch_known, measured, calibration, layout)


def _sketch_known(measured: MeasuredRun, calibration: Calibration, layout: ModelLayout) -> Forecast:
    now, then = (_speed(each, calibration.costs) for each in (measured.layout, layout))
    times = then.steps_per_second / now.steps_per_second
    slopes = np.array(_slopes(calibration, layout)) - np.array(_slopes(calibration, measured.layout))
    variance = float(slopes @ np.array(calibration.covariance) @ slopes)
    missed = MODEL_SPREAD if layout != measured.layout else 0.0
    spread = NORMAL_90 * math.hypot(math.sqrt(variance), missed)
    ends = times * math.exp(-spread), times * math.exp(spread)
    return _forecast(measured, calibration, layout, (now, then), ends)


def _either(
    known: Callable[[MeasuredRun, Calibration, ModelLayout], Forecast],
    measured: MeasuredRun,
    calibration: Calibration,
    layout: ModelLayout,
) -> Forecast:
    """Return the forecast if all trainers share what storage delivers now.

    If their number changes, the interval also covers that each trainer gets as much as one does now.
    """
    shared = known(measured, calibration, layout)
    total, before = layout.storage_steps_per_second, measured.layout.trainer_count
    if total is None or measured.is_storage_shared or layout.trainer_count == before:
        return shared
    own = dataclasses.replace(layout, storage_steps_per_second=None, input_steps_per_second=total / before)
    apart = known(measured, calibration, own)
    return dataclasses.replace(
        shared,
        low=min(shared.low, apart.low),
        high=max(shared.high, apart.high),
        untold=(*shared.untold, "storage_steps_per_second"),
    )


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
    """Return the derivative of the logarithm of a layout's speed by the logarithm of each cost.

    Results are cached, as a caller that moves along a curve asks for the same points again.
    """
    costs = calibration.costs
    begin = math.log(_speed(layout, costs).steps_per_second)
    moved = (dataclasses.replace(costs, **{name: getattr(costs, name) * math.exp(_MOVE)}) for name in ASSUMED)
    speeds = predictions.speeds([(layout, each) for each in moved])
    return tuple((math.log(speed.steps_per_second) - begin) / _MOVE for speed in speeds)


@functools.lru_cache(maxsize=8)
def _likely(calibration: Calibration, layout: ModelLayout) -> list[tuple[Costs, float]]:
    """Return random costs from the distribution that the runs leave, each with the log of a layout's speed.

    Results are cached, as many other layouts are compared with the same one.
    """
    drawn = calibration.draws(_DRAWS, seed=_SEED)
    speeds = predictions.speeds([(layout, each) for each in drawn])
    return [(each, math.log(speed.steps_per_second)) for each, speed in zip(drawn, speeds, strict=True)]
