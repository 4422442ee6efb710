"""The runs on unchanged scripts: healthy ones, and every fault on each script that it fits.

All runs that count are of scripts that no rule was tuned on (`bases.UNSEEN`); a few healthy ones of the
scripts that rules were tried on are there to compare with.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Iterator

from benchmarks.diagnosis import effects, labels
from benchmarks.diagnosis.bases import PLAIN, TRIO
from benchmarks.diagnosis.faults.faults import Fault, Severity
from benchmarks.diagnosis.items import Item
from benchmarks.diagnosis.trials import FELT_SECONDS, Ending, Outcome, Plan
from benchmarks.diagnosis_unchanged.bases import (
    EVALUATING,
    FACTORISATION,
    LATE,
    LOADING,
    RESTING,
    SAVING,
    SEQUENCE,
    SOLO,
    WIDE,
    WIDE_DEEP,
    ScriptBase,
)
from benchmarks.diagnosis_unchanged.faults import MAKERS
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

#: Faults take these TensorFlows in turn.
VERSIONS = {
    WIDE_DEEP: ("1.15.5", "2.21.0"),
    FACTORISATION: ("1.12.3", "2.21.0"),
    SEQUENCE: ("2.8.4", "2.21.0"),
}
#: Healthy runs that are no fault's twin: older and newer TensorFlows, other shapes, and traps.
MORE_HEALTHY = (
    (WIDE_DEEP, "1.4.1", PLAIN), (WIDE_DEEP, "1.8.0", LATE), (WIDE_DEEP, "2.11.1", PLAIN),
    (WIDE_DEEP, "1.15.5", RESTING), (WIDE_DEEP, "2.21.0", LATE), (WIDE_DEEP, "1.15.5", SAVING),
    (WIDE_DEEP, "2.21.0", EVALUATING), (WIDE_DEEP, "2.21.0", SOLO), (WIDE_DEEP, "1.15.5", WIDE),
    (FACTORISATION, "1.4.1", PLAIN), (FACTORISATION, "2.4.4", RESTING), (FACTORISATION, "1.12.3", LATE),
    (FACTORISATION, "2.21.0", SOLO), (FACTORISATION, "2.21.0", WIDE),
    (SEQUENCE, "2.11.1", PLAIN), (SEQUENCE, "2.15.1", RESTING), (SEQUENCE, "2.21.0", LATE),
    (SEQUENCE, "2.21.0", TRIO), (WIDE_DEEP, "1.15.5", LOADING), (SEQUENCE, "2.8.4", LOADING),
)  # fmt: skip
#: Healthy runs of scripts that rules were tried on.
FIT = (
    ("monitored", "1.15.5"), ("supervisor", "2.21.0"), ("dataset", "1.12.3"), ("loop-strategy", "2.21.0"),
)  # fmt: skip
#: A parameter server of a healthy job uses at most so much of its cores.
MOST_SERVER_CORES = 0.8
#: A script that loads is recorded so long after it was submitted.
LOADING_SECONDS = 45.0
#: And its slowest trainer makes at least so much of the median's steps.
LEAST_OF_MEDIAN = 0.75


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScriptItem(Item):
    """A run of an unchanged script."""

    base: ScriptBase

    def fault(self) -> Fault | None:
        """Return its fault; None if it is healthy."""
        if not self.makers:
            return None
        ((name, severity),) = self.makers
        fault = MAKERS[name].make(self.base, severity)
        assert isinstance(fault.base, ScriptBase), "makers keep the base"
        return dataclasses.replace(fault, steps_from=fault.steps_from or fault.base.trainers)

    def healthy_job(self) -> JobSpec:
        """Return the job of a healthy run."""
        return self.base.job()

    def healthy_plan(self) -> Plan:
        """Return how a healthy run is made."""
        if self.base.kind == LOADING:
            return Plan(starts=False, seconds=LOADING_SECONDS)
        return Plan(ending=self.ending, steps_from=self.base.trainers)

    @property
    def is_whole(self) -> bool:
        """Whether what was before limits held is kept of a healthy run, too: its start is what is judged."""
        return self.base.kind in (LATE, LOADING)

    def ailing(self, outcome: Outcome) -> str | None:
        """Return what is not healthy about a run that is to be; None: nothing."""
        if self.base.kind == LOADING:
            return None
        recording, since = outcome.recording, outcome.began_at + FELT_SECONDS
        used = max(effects.cpu_of_limit(recording, Role.PS, since), default=0.0)
        if used > MOST_SERVER_CORES:
            return f"a ps uses {used:.2f} of its cores"
        rates = effects.rates(recording, since)
        # Steps that a coordinator sees are those of its workers, and its own where it cannot tell which.
        alone = self.base.trainers or ()
        own = [rate for name, rate in rates.items() if name not in alone]
        own = own if any(own) else [rates[name] for name in alone if name in rates]
        if not any(own):
            return "no trainer reports steps"
        if min(own) < LEAST_OF_MEDIAN * statistics.median(own):
            return f"a trainer is slower than the others: {own}"
        return None


def every(speed: float = 1.0) -> list[Item]:
    """Return all runs, twins before what is compared with them.

    Args:
        speed: how fast the machine is, see `benchmarks.diagnosis.bases.Base`.
    """
    return [dataclasses.replace(item, base=dataclasses.replace(item.base, speed=speed)) for item in _all()]


def _all() -> list[ScriptItem]:
    faulty = list(_faulty())
    bases = {item.base.name: item.base for item in faulty}
    for script, version, kind in MORE_HEALTHY:
        base = ScriptBase(model=script, size=version, kind=kind)
        bases.setdefault(base.name, base)
    endings = itertools.cycle((Ending.LIVE, Ending.STOPPED))
    healthy = [
        ScriptItem(
            base=base,
            split=labels.UNSEEN,
            # A job that loads is judged while it does.
            ending=Ending.LIVE if base.kind == LOADING else next(endings),
        )
        for base in bases.values()
    ]
    healthy += [
        ScriptItem(base=ScriptBase(model=style, size=version), split=labels.FIT, ending=next(endings))
        for style, version in FIT
    ]
    return healthy + faulty


def _faulty() -> Iterator[ScriptItem]:
    severities, endings = tuple(Severity), (Ending.LIVE, Ending.STOPPED)
    for number, (name, entry) in enumerate(MAKERS.items()):
        for place, script in enumerate(entry.scripts):
            versions = entry.versions or VERSIONS[script]
            severity = severities[(number + place) % len(severities)]
            base = ScriptBase(model=script, size=versions[(number + place) % len(versions)])
            item = ScriptItem(
                base=base,
                makers=((name, severity),),
                split=labels.UNSEEN,
                ending=endings[(number + place) % 2],
            )
            fault = item.fault()
            assert fault is not None, "it has a maker"
            assert isinstance(fault.base, ScriptBase), "makers keep the base"
            ending = item.ending if item.ending in fault.endings else fault.endings[0]
            yield dataclasses.replace(item, base=fault.base, ending=ending)
