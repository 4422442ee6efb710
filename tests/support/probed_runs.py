"""Probes as they are kept, of runs that were never probed."""

from __future__ import annotations

from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import Cut, CutPart, Elasticity, Probe, RateUnit

BOTH = CutPart(Knob.CPU, ("ps-0", "ps-1"))
PS = CutPart(Knob.CPU, ("ps-0",))
WORKERS = CutPart(Knob.CPU, ("worker-0", "worker-1"))


def probe(name: str, *, began_at: float = 1e9, ended: str | None = "all that matters is known") -> Probe:
    """Return a probe by which the cores of ps-0 bind, and those of workers rest."""
    return Probe(
        run=name,
        began_at=began_at,
        unit=RateUnit.EXAMPLES,
        cuts=(
            _cut(WORKERS, began_at, rate=998.0, held=()),
            _cut(BOTH, began_at + 15.0, rate=700.0, held=("ps-0",)),
        ),
        elasticities=(
            Elasticity(part=PS, value=0.98, low=0.81, high=1.15, cuts=2),
            Elasticity(part=WORKERS, value=0.01, low=-0.05, high=0.07, cuts=1),
        ),
        ended_at=None if ended is None else began_at + 61.5,
        lost=1500.0,
        share=0.0125,
        ended=ended,
    )


def _cut(part: CutPart, at: float, *, rate: float, held: tuple[str, ...]) -> Cut:
    return Cut(
        part=part, factor=0.7, since=at, until=at + 5.0, rate=rate, before=1000.0, after=1002.0, felt=held,
        at_limit=held,
    )  # fmt: skip
