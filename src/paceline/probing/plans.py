"""The plan of a probe: what it cuts next, and when it has seen enough.

Parts that are alike are cut together first. If that costs nothing, the part and all within it are done. If it
costs something, the part is divided: into single targets if they are few, else into halves, until the
replica that binds is known, or it is known that all of them bind evenly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Sequence

from paceline.model.measures.probes import LEAST, Cut, CutPart, Elasticity, PartVerdict
from paceline.probing.estimates import PartEstimates

#: Up to this many targets are cut one by one; more are halved.
FEW = 4
#: The fewest cuts of a part that binds, and the most cuts of any part.
LEAST_CUTS, MOST_CUTS = 2, 4
#: An elasticity is known well enough when its interval reaches no farther to either side.
HALF_WIDTH = 0.15
#: A cut is deep enough that it alone gives an elasticity with this standard deviation ...
_DEVIATION = 0.1
#: ... but within these factors: a shallower cut drowns in noise, a deeper one makes the job another one.
#: `FIRST` is used while the noise is not known.
SHALLOW, DEEP, FIRST = 0.85, 0.6, 0.75
#: A replica that uses a smaller share of its resources is not expected to bind.
USED = 0.5
#: The noise of the difference between a window and the mean of two others, over the noise of a window.
_BESIDE = math.sqrt(1.5)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The parts that a probe examines.

    Attributes:
        parts: the parts that are cut first, in any order.
        whole: the parts among these that are not divided: each target costs its own share of the rate.
        shuffled: a function that returns parts in random order.
        use: a function that returns the share of its resources that a part uses. Within a part that binds,
            parts that use little are cut first: these cuts cost little, and the rest belongs to the others.
    """

    parts: Sequence[CutPart]
    whole: Collection[CutPart] = ()
    shuffled: Callable[[Sequence[CutPart]], Sequence[CutPart]] = tuple
    use: Callable[[CutPart], float] = lambda _: 0.0


def apart(part: CutPart, felt: tuple[str, ...] | None = None) -> tuple[CutPart, ...]:
    """Return the parts into which a part is divided; empty: it has a single target.

    Args:
        part: the part.
        felt: the targets that its cuts held back; these and the others are the parts then. None: not seen.
    """
    targets = part.targets
    if felt and felt != targets:
        return CutPart(part.knob, felt), CutPart(
            part.knob, tuple(each for each in targets if each not in felt)
        )
    if len(targets) == 1:
        return ()
    if len(targets) <= FEW:
        return tuple(CutPart(part.knob, (each,)) for each in targets)
    middle = (len(targets) + 1) // 2
    return CutPart(part.knob, targets[:middle]), CutPart(part.knob, targets[middle:])


def factor(deviation: float, degrees: int) -> float:
    """Return the share to which a part is cut, from the noise of the rate (`estimates.noise`)."""
    if degrees < 1:
        return FIRST
    return min(SHALLOW, max(DEEP, math.exp(-deviation * _BESIDE / _DEVIATION)))


def expected_cost(part: CutPart, factor: float, cuts: Sequence[Cut], use: float) -> float:
    """Return the expected loss of rate while a part is cut; 0 if no cut so far contained the part.

    Args:
        part: the part that is to be cut.
        factor: the share to which it is cut.
        cuts: the cuts made so far; the cost is taken as proportional to the depth of a cut.
        use: the share of its resources that the part uses; if it is small, the first cut is expected to cost
            nothing.
    """
    costs = [
        (cut.base - cut.rate) * (1 - factor) / (1 - cut.factor)
        for cut in cuts
        if set(part.targets) <= set(cut.part.targets)
    ]
    is_fresh = not any(cut.part == part for cut in cuts)
    return 0.0 if not costs or (is_fresh and use < USED) else max(0.0, max(costs))


def following(scope: Scope, known: PartEstimates) -> list[CutPart]:
    """Return the parts that may be cut next, the best first; empty: enough is known."""
    wanted = list(_wanted(scope, known))
    fresh = scope.shuffled([part for part in wanted if part not in known.elasticities])
    again = [part for part in wanted if part in known.elasticities]
    return [
        *sorted(fresh, key=lambda part: part not in scope.parts and scope.use(part)),
        *sorted(again, key=lambda part: -_width(known, part)),  # The least well known part comes first.
    ]


def ends(scope: Scope, known: PartEstimates) -> Iterator[Elasticity]:
    """Yield the elasticities of the parts that were not divided: the answer of a probe."""
    for part in scope.parts:
        yield from _ends(scope, part, known)


def _ends(scope: Scope, part: CutPart, estimates: PartEstimates) -> Iterator[Elasticity]:
    elasticity = estimates.elasticities.get(part)
    if elasticity is None:
        return
    elasticities = estimates.elasticities
    below = apart(part, estimates.felt.get(part)) if _is_cut_apart(scope, part, estimates) else ()
    cut = [subpart for subpart in below if subpart in elasticities]
    if below and len(cut) == len(below):
        for subpart in below:
            yield from _ends(scope, subpart, estimates)
    elif (
        below
        and len(cut) == len(below) - 1
        and all(elasticities[subpart].verdict is PartVerdict.RESTS for subpart in cut)
    ):
        for subpart in cut:
            yield from _ends(scope, subpart, estimates)
        (left,) = set(below) - set(cut)
        yield estimates.inferred(elasticity, [elasticities[subpart] for subpart in cut], left)
    else:
        yield elasticity


def _wanted(scope: Scope, known: PartEstimates) -> Iterator[CutPart]:
    """Yield all parts that need more cuts."""
    pending = list(scope.parts)
    while pending:
        part = pending.pop()
        own = known.elasticities.get(part)
        if own is None:
            yield part
        elif _is_cut_apart(scope, part, known):
            pending.extend(apart(part, known.felt.get(part)))
        elif own.cuts < MOST_CUTS and not _is_known_well(own):
            yield part


def _width(known: PartEstimates, part: CutPart) -> float:
    own = known.elasticities[part]
    return own.high - own.low


def _is_known_well(own: Elasticity) -> bool:
    match own.verdict:
        case PartVerdict.RESTS:
            return True
        case PartVerdict.UNCLEAR:
            return False
    return own.cuts >= LEAST_CUTS and own.high - own.low <= 2 * HALF_WIDTH


def _is_cut_apart(scope: Scope, part: CutPart, known: PartEstimates) -> bool:
    """Whether a part that was cut is divided: it costs something, and not all its targets cost the same."""
    own = known.elasticities[part]
    below = apart(part, known.felt.get(part))
    if not below or part in scope.whole:
        return False
    if own.verdict is PartVerdict.RESTS or (own.verdict is PartVerdict.UNCLEAR and own.cuts < LEAST_CUTS):
        return False
    is_told_apart = bool(known.felt.get(part)) and known.felt[part] != part.targets
    return is_told_apart or len(part.targets) <= FEW or not _is_even(below, known)


def _is_even(below: Sequence[CutPart], known: PartEstimates) -> bool:
    """Whether both halves of a part cost something, and neither clearly costs more than the other."""
    first, second = (known.elasticities.get(each) for each in below)
    if first is None or second is None:
        return False
    both = min(first.value, second.value) >= LEAST / 2
    return both and first.low <= second.high and second.low <= first.high
