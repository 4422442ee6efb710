"""Probes of running jobs: the cuts that they made, and the elasticities that follow from these.

A probe takes resources away from one part of a job for a few seconds, measures what that costs, and gives
them back. The elasticity of the rate to the part, d ln(rate) / d ln(share), is 1 if the part alone decides
how fast the job is, and 0 if it decides nothing. This is causal evidence, which needs no rule and no model.
(Virtual speed-ups of a part, measured as slow-downs of the others, are due to Curtsinger and Berger, "Coz:
finding code that counts with causal profiling", SOSP 2015; here the part itself is slowed down.)
"""

from __future__ import annotations

import dataclasses
import enum
import math

from paceline.model.instants import UnixSeconds
from paceline.model.jobs.adjustments import Knob

#: The least elasticity that a user would notice: twice the share brings a fifth more.
LEAST = 0.25


#: The names of what is cut.
_NAMES = {
    Knob.CPU: "cores",
    Knob.MEMORY: "memory",
    Knob.LINK: "link",
    Knob.WEIGHT: "share of cores",
}


class RateUnit(enum.StrEnum):
    """The unit of the rate of a job."""

    EXAMPLES = "examples"
    STEPS = "steps"
    BYTES = "bytes"  # sent by its replicas, if no step is seen


class PartVerdict(enum.StrEnum):
    """Whether a part binds."""

    BINDS = "binds"
    RESTS = "rests"
    UNCLEAR = "unclear"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class CutPart:
    """A part of a job that is cut as a whole: the same resource of one or more replicas, or of hosts.

    Attributes:
        targets: names of replicas, or of emulated hosts; at least one.
    """

    knob: Knob
    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name for users: ``cores of ps-0``, ``link of a``, ``number of workers``."""
        if self.knob is Knob.PAUSE:
            return f"number of {self.targets[0].partition('-')[0]}s"
        what = _NAMES[self.knob]
        plural = "s" if self.knob is Knob.LINK and len(self.targets) > 1 else ""
        return f"{what}{plural} of {self._whose}"

    @property
    def is_plural(self) -> bool:
        """Whether its name is plural."""
        return self.knob is Knob.CPU or (self.knob is Knob.LINK and len(self.targets) > 1)

    @property
    def doing(self) -> str:
        """Return for users what a probe does to the part: ``cores of ps-0, ps-1 are cut``."""
        match self.knob:
            case Knob.PAUSE:
                return f"{self._whose} stands still"
            case Knob.WEIGHT:
                return f"{self.name} is raised"
        return f"{self.name} {'are' if self.is_plural else 'is'} cut"

    @property
    def _whose(self) -> str:
        if len(self.targets) <= MOST_NAMED:
            return ", ".join(self.targets)
        return f"{self.targets[0]} to {self.targets[-1]} ({len(self.targets)})"


#: The most targets that are named one by one.
MOST_NAMED = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A change of the share of a part for a few seconds.

    Attributes:
        factor: the share of its resources that the part had.
        since, until: the time in which it had this share and the rate was measured.
        rate: the rate of the job in that time, a second.
        before, after: the rate before and after the cut, when the part had all its resources.
        felt: the targets that the cut held back; the others used less than the cut left them, so it did not
            affect them. None: that cannot be seen.
        at_limit: the targets that used all their resources before and after the cut; the others would not
            use more. None: that cannot be seen.
    """

    part: CutPart
    factor: float
    since: UnixSeconds
    until: UnixSeconds
    rate: float
    before: float
    after: float
    felt: tuple[str, ...] | None = None
    at_limit: tuple[str, ...] | None = None

    @property
    def base(self) -> float:
        """Return the rate expected without the cut: the geometric mean of the rates before and after."""
        return math.sqrt(self.before * self.after)

    @property
    def elasticity(self) -> float:
        """Return the elasticity that follows from this cut alone."""
        return math.log(self.rate / self.base) / math.log(self.factor)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Elasticity:
    """The elasticity of the rate to the resources of a part, from all cuts of the part.

    Attributes:
        value: the likeliest elasticity.
        low, high: its interval, with 95 %.
        cuts: the number of cuts of the part.
        at_limit: whether the part uses all its resources. If not, more brings nothing, whatever less costs.
    """

    part: CutPart
    value: float
    low: float
    high: float
    cuts: int
    at_limit: bool = True

    @property
    def verdict(self) -> PartVerdict:
        """Return whether the part binds, rests, or is unclear."""
        if self.low > 0 and self.value >= LEAST:
            return PartVerdict.BINDS if self.at_limit else PartVerdict.RESTS
        return PartVerdict.RESTS if self.high < LEAST else PartVerdict.UNCLEAR

    def times(self, factor: float) -> tuple[float, float, float]:
        """Return the predicted speed-up with ``factor`` times the share, and its interval of 95 %.

        The prediction holds as long as the part still binds.
        """
        if factor > 1 and not self.at_limit:
            return 1.0, 1.0, 1.0
        low, high = sorted((factor**self.low, factor**self.high))
        return factor**self.value, low, high


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe and its results so far.

    Attributes:
        run: the name of the run.
        unit: the unit of the rate.
        cuts: the cuts, in the order in which they were made.
        elasticities: the elasticities of the parts that were cut; a part comes before the parts within it.
        lost: the number of units that the job would have done in addition without the probe.
        share: this loss as a share of what the job would have done in that time.
        ended: why the probe ended, in a sentence; None: it goes on, or was killed.
        input_wait_share: the share of their time that trainers waited for input before it; None: unmeasured.
    """

    run: str
    began_at: UnixSeconds
    unit: RateUnit
    cuts: tuple[Cut, ...] = ()
    elasticities: tuple[Elasticity, ...] = ()
    ended_at: UnixSeconds | None = None
    lost: float | None = None
    share: float | None = None
    ended: str | None = None
    input_wait_share: float | None = None
