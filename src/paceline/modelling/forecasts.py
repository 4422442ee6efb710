"""What another layout of a job brings, as a multiple of what was measured of it."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from paceline.modelling import predictions
from paceline.modelling.calibrations import Calibration, Measured
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import Layout
from paceline.modelling.predictions import Speed

#: Standard deviation of what the model itself misses of another layout, as a share: of the layouts of the
#: benchmark `prediction` nine tenths are missed by less than 0.23, which is 1.64 of them.
MODEL_SPREAD = 0.14
#: What is less is within the noise of a run.
WORTH = 1.1
#: The interval has so much of what is likely.
CONFIDENCE = 0.9
_DRAWS = 100
_SEED = 0


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


def forecast(measured: Measured, calibration: Calibration, layout: Layout) -> Forecast:
    """Return what to expect of another layout of a job that was measured.

    The speed is what was measured, times what the model says of both: so what it misses of the first does not
    count. The interval comes from what the runs leave open of the costs, and from what the model misses.
    """
    now, then = (predictions.speed(each, calibration.costs) for each in (measured.layout, layout))
    logs = [
        math.log(predictions.speed(layout, each).steps_per_second) - log
        for each, log in _likely(calibration, measured.layout)
    ]
    if layout != measured.layout:
        missed = np.random.default_rng(_SEED).normal(0.0, MODEL_SPREAD, size=len(logs))
        logs = [log + miss for log, miss in zip(logs, missed, strict=True)]
    low, high = np.exp(np.quantile(logs, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    times = then.steps_per_second / now.steps_per_second
    return Forecast(
        now=now,
        then=then,
        examples_per_second=measured.steps_per_second * measured.layout.batch_size,
        times=times,
        low=min(float(low), times),
        high=max(float(high), times),
        cores_now=measured.layout.asked_cores,
        cores_then=layout.asked_cores,
        untold=calibration.untold,
    )


@functools.lru_cache(maxsize=1)
def _likely(calibration: Calibration, layout: Layout) -> list[tuple[Costs, float]]:
    """Return costs as likely as the runs leave them, each with the logarithm of a layout's speed.

    Many others are held against the same layout: so the last one is kept.
    """
    drawn = calibration.draws(_DRAWS, seed=_SEED)
    return [(each, math.log(predictions.speed(layout, each).steps_per_second)) for each in drawn]
