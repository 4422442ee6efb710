"""The results of a probe in words for users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.model import quantities
from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import LEAST, Elasticity, PartVerdict, Probe, RateUnit
from paceline.model.words import counted, listed
from paceline.probing import raises

#: The share for which costs are stated, whatever cuts were made.
CUT = 0.7
#: The factor on a part for which speed-ups are predicted.
RAISE = 1.5
#: The words for a part that does not bind, but was cut to less than it uses.
SPARE = "it has more than it uses, so more brings nothing"
#: If the sum of elasticities exceeds 1 by more than this, parts hold back each other.
_MUCH = 0.2
LEFT = (
    "nothing that was cut binds, so more cores or bandwidth bring nothing: "
    "what is left is latency, locks, and where input and checkpoints come from and go to"
)


def conclusion(ends: Sequence[Elasticity]) -> str:
    """Return the conclusion of a probe in a sentence."""
    found = binding(ends)
    unclear = [each.part.name for each in ends if each.verdict is PartVerdict.UNCLEAR]
    if found:
        names = listed([each.part.name for each in found])
        is_one = len(found) == 1 and not found[0].part.is_plural
        return f"{names} {'binds' if is_one else 'bind'}"
    if unclear:
        return f"nothing is known to bind; too little is known of {listed(unclear)}"
    return LEFT if ends else "nothing was cut"


def binding(ends: Sequence[Elasticity]) -> list[Elasticity]:
    """Return the parts that bind, the strongest first."""
    return sorted((each for each in ends if each.verdict is PartVerdict.BINDS), key=lambda each: -each.value)


def foretold(ends: Sequence[Elasticity]) -> Iterator[str]:
    """Yield the predicted effect of more of each part that binds, and of all if they hold each other back."""
    found = [each for each in binding(ends) if each.part.knob in raises.KNOBS]
    for each in found:
        yield f"{each.part.name}: {_foretold([each], ends)}"
    if len(found) > 1 and raises.excess(ends) > _MUCH:
        yield f"all of them: {_foretold(found, ends)}: each holds back the others"


def _foretold(raised: Sequence[Elasticity], ends: Sequence[Elasticity]) -> str:
    middle, low, high = raises.times(raised, ends, RAISE)
    return (
        f"{RAISE:g} times as much is foretold to bring {middle:.2f} times the rate ({low:.2f} to {high:.2f})"
    )


def cost(elasticity: Elasticity) -> str:
    """Return the cost of a cut for users: ``costs 27% of the rate``."""
    match elasticity.part.knob:
        case Knob.PAUSE:
            return "one less"
        case Knob.WEIGHT:
            more = elasticity.times(2.0)[0] - 1
            return f"twice its share brings {more:.0%}"
    less = 1 - elasticity.times(CUT)[0]
    if elasticity.verdict is not PartVerdict.RESTS:
        return f"costs {less:.0%} of the rate"
    return (
        "costs nothing" if elasticity.at_limit or elasticity.value < LEAST else f"costs {less:.0%}: {SPARE}"
    )


def spent(probe: Probe) -> str:
    """Return for users how long a probe took, and what it cost."""
    took = quantities.format_seconds(None if probe.ended_at is None else probe.ended_at - probe.began_at)
    lost = "not measured"
    if probe.lost is not None and probe.share is not None:
        what = {RateUnit.EXAMPLES: "examples", RateUnit.STEPS: "steps", RateUnit.BYTES: "bytes on the wire"}[
            probe.unit
        ]
        lost = f"{probe.lost:,.0f} {what} ({probe.share:.1%} of what the job does in its time)"
    why = f"; it ended because {probe.ended}" if probe.ended else ""
    others = (
        "" if probe.unit is RateUnit.EXAMPLES else f"; no examples are seen, so {probe.unit} were counted"
    )
    return f"{counted(len(probe.cuts), 'cut')} in {took}, which cost {lost}{others}{why}"
