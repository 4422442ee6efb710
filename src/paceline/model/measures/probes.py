"""What a probe of a job that runs has tried, and what followed from it.

A probe takes something away from one part of a job for a few seconds, looks at what that costs, and gives it
back. The elasticity of the rate to it, d ln(rate) / d ln(share), is 1 where the part alone decides how fast
the job is, and 0 where it decides nothing. So it is causal: no rule and no model is needed for it. (Virtual
speed-ups of a part, measured as slow-downs of the others, are due to Curtsinger and Berger, "Coz: finding
code that counts with causal profiling", SOSP 2015; here a part is slowed down itself.)
"""

from __future__ import annotations

import dataclasses
import enum
import math

from paceline.model.jobs.adjustments import Knob

#: An elasticity above it is one that a user would notice: twice the share brings a fifth more.
LEAST = 0.25


#: What is cut, by the knob.
_NAMES = {
    Knob.CPU: "cores",
    Knob.MEMORY: "memory",
    Knob.LINK: "link",
    Knob.WEIGHT: "share of cores",
}


class RateUnit(enum.StrEnum):
    """What the rate of a job is counted in."""

    EXAMPLES = "examples"
    STEPS = "steps"
    BYTES = "bytes"  # that its replicas send: where no step is seen


class PartVerdict(enum.StrEnum):
    """What can be said of a part."""

    BINDS = "binds"
    RESTS = "rests"
    UNCLEAR = "unclear"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class CutPart:
    """What is cut at once: the same of one or more replicas, or of hosts.

    Attributes:
        targets: names of replicas, or of emulated hosts; at least one.
    """

    knob: Knob
    targets: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return what people call it: ``cores of ps-0``, ``link of host a``, ``number of workers``."""
        if self.knob is Knob.PAUSE:
            return f"number of {self.targets[0].partition('-')[0]}s"
        what = _NAMES[self.knob]
        plural = "s" if self.knob is Knob.LINK and len(self.targets) > 1 else ""
        return f"{what}{plural} of {self._whose}"

    @property
    def is_plural(self) -> bool:
        """Whether its name is that of several things."""
        return self.knob is Knob.CPU or (self.knob is Knob.LINK and len(self.targets) > 1)

    @property
    def doing(self) -> str:
        """Return what is done to it by a probe, for people: ``cores of ps-0, ps-1 are cut``."""
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


#: So many targets are named one by one.
MOST_NAMED = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A part that had another share for a while; times are Unix seconds.

    Attributes:
        factor: of what it had.
        since, until: when that held, and was measured.
        rate: what the job did in that time, a second.
        before, after: what it did before and after it, with all that it has.
        felt: the targets that were held back by it; the others use less than they had even then, so it was
            nothing to them. None: that cannot be seen.
        at_limit: the targets that used all that they have before it and after it; to the others more is
            nothing. None: that cannot be seen.
    """

    part: CutPart
    factor: float
    since: float
    until: float
    rate: float
    before: float
    after: float
    felt: tuple[str, ...] | None = None
    at_limit: tuple[str, ...] | None = None

    @property
    def base(self) -> float:
        """Return what the job would have done in that time: the geometric mean of before and after."""
        return math.sqrt(self.before * self.after)

    @property
    def elasticity(self) -> float:
        """Return the elasticity that this cut alone says."""
        return math.log(self.rate / self.base) / math.log(self.factor)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Elasticity:
    """That of the rate to what a part has, over all cuts of it.

    Attributes:
        low, high: between which it lies, with 95 %.
        at_limit: whether it uses all that it has. Else more brings nothing, whatever less of it costs.
    """

    part: CutPart
    value: float
    low: float
    high: float
    cuts: int
    at_limit: bool = True

    @property
    def verdict(self) -> PartVerdict:
        """Return what can be said of the part."""
        if self.low > 0 and self.value >= LEAST:
            return PartVerdict.BINDS if self.at_limit else PartVerdict.RESTS
        return PartVerdict.RESTS if self.high < LEAST else PartVerdict.UNCLEAR

    def times(self, factor: float) -> tuple[float, float, float]:
        """Return how many times as fast the job is foretold to be with ``factor`` times the share.

        Between the second and the third with 95 %. It holds for as long as the part goes on to bind.
        """
        if factor > 1 and not self.at_limit:
            return 1.0, 1.0, 1.0
        low, high = sorted((factor**self.low, factor**self.high))
        return factor**self.value, low, high


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe, as far as it is; times are Unix seconds.

    Attributes:
        run: the job's name.
        unit: what its rate is counted in.
        cuts: in the order in which they were made.
        elasticities: of the parts that were cut, those of parts within them after them.
        lost: of the unit, that the job would have done without the probe.
        share: that loss as a share of what it would have done in that time.
        ended: why it ended, in a sentence; None: it goes on, or was killed.
    """

    run: str
    began_at: float
    unit: RateUnit
    cuts: tuple[Cut, ...] = ()
    elasticities: tuple[Elasticity, ...] = ()
    ended_at: float | None = None
    lost: float | None = None
    share: float | None = None
    ended: str | None = None
