"""What a probe cuts next, and when it has seen enough.

Parts that are alike are cut together first. One that costs nothing is done, with all that is in it; one that
costs something is cut apart: into singles where there are few, else into halves, until the replica is known
that binds, or it is known that all of them do evenly.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Sequence

from paceline.model.measures.probes import LEAST, Cut, CutPart, Elasticity, PartVerdict
from paceline.probing.estimates import PartEstimates

#: So many are cut one by one; more are halved.
FEW = 4
#: Cuts of one part, at least where it binds, and at most.
LEAST_CUTS, MOST_CUTS = 2, 4
#: An elasticity is known well enough when its interval reaches so far to either side.
HALF_WIDTH = 0.15
#: A cut is as deep as it takes to know an elasticity to this standard deviation by it alone ...
_DEVIATION = 0.1
#: ... but within these: a shallower one drowns in noise, a deeper one is another job.
SHALLOW, DEEP, FIRST = 0.85, 0.6, 0.75
#: A replica that uses less than that of what it has is not expected to bind.
USED = 0.5
#: The noise of a window beside the mean of two others, over that of a window.
_BESIDE = math.sqrt(1.5)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a probe is about.

    Attributes:
        parts: what is cut first, in any order.
        whole: of these, those that are not cut apart: each of their targets costs its own share of the rate.
        shuffled: returns parts in an order that nothing depends on.
        use: how much of what it has a part uses. Of the parts of one that binds those that use little are cut
            first: they cost little, and what they leave is the others'.
    """

    parts: Sequence[CutPart]
    whole: Collection[CutPart] = ()
    shuffled: Callable[[Sequence[CutPart]], Sequence[CutPart]] = tuple
    use: Callable[[CutPart], float] = lambda _: 0.0


def apart(part: CutPart, felt: tuple[str, ...] | None = None) -> tuple[CutPart, ...]:
    """Return what a part is cut apart into; empty: it is a single one.

    Args:
        part: the part.
        felt: the targets that have felt the cuts of it: these and the others are parts then; None: not seen.
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
    """Return to what share a part is cut, by the noise of the rate (`estimates.noise`)."""
    if degrees < 1:
        return FIRST
    return min(SHALLOW, max(DEEP, math.exp(-deviation * _BESIDE / _DEVIATION)))


def expected_cost(part: CutPart, factor: float, cuts: Sequence[Cut], use: float) -> float:
    """Return by how much a rate is expected to be less while a part is cut: of one that was not cut, nothing.

    Args:
        part: that is to be cut.
        factor: to what share of what it has.
        cuts: that were made; a deeper one costs as much more.
        use: how much of what it has the part uses.
    """
    costs = [
        (cut.base - cut.rate) * (1 - factor) / (1 - cut.factor)
        for cut in cuts
        if set(part.targets) <= set(cut.part.targets)
    ]
    is_fresh = not any(cut.part == part for cut in cuts)
    return 0.0 if not costs or (is_fresh and use < USED) else max(0.0, max(costs))


def following(scope: Scope, known: PartEstimates) -> list[CutPart]:
    """Return what may be cut next, the first one best; empty: nothing more has to be known."""
    wanted = list(_wanted(scope, known))
    fresh = scope.shuffled([part for part in wanted if part not in known.elasticities])
    again = [part for part in wanted if part in known.elasticities]
    return [
        *sorted(fresh, key=lambda part: part not in scope.parts and scope.use(part)),
        *sorted(again, key=lambda part: -_width(known, part)),  # First what is least well known.
    ]


def ends(scope: Scope, known: PartEstimates) -> Iterator[Elasticity]:
    """Yield what is known of the parts that were not cut apart: the answer of a probe."""
    for part in scope.parts:
        yield from _ends(scope, part, known)


def _ends(scope: Scope, part: CutPart, known: PartEstimates) -> Iterator[Elasticity]:
    own = known.elasticities.get(part)
    if own is None:
        return
    elasticities = known.elasticities
    below = apart(part, known.felt.get(part)) if _is_cut_apart(scope, part, known) else ()
    cut = [each for each in below if each in elasticities]
    if below and len(cut) == len(below):
        for each in below:
            yield from _ends(scope, each, known)
    elif (
        below
        and len(cut) == len(below) - 1
        and all(elasticities[each].verdict is PartVerdict.RESTS for each in cut)
    ):
        for each in cut:
            yield from _ends(scope, each, known)
        (left,) = set(below) - set(cut)
        yield known.inferred(own, [elasticities[each] for each in cut], left)
    else:
        yield own


def _wanted(scope: Scope, known: PartEstimates) -> Iterator[CutPart]:
    """Yield all parts of which more has to be known."""
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
    """Whether a part that was cut is looked into: it costs something, and not all in it cost the same."""
    own = known.elasticities[part]
    below = apart(part, known.felt.get(part))
    if not below or part in scope.whole:
        return False
    if own.verdict is PartVerdict.RESTS or (own.verdict is PartVerdict.UNCLEAR and own.cuts < LEAST_CUTS):
        return False
    is_told_apart = bool(known.felt.get(part)) and known.felt[part] != part.targets
    return is_told_apart or len(part.targets) <= FEW or not _is_even(below, known)


def _is_even(below: Sequence[CutPart], known: PartEstimates) -> bool:
    """Whether both halves of a part cost something, and neither more than the other."""
    first, second = (known.elasticities.get(each) for each in below)
    if first is None or second is None:
        return False
    both = min(first.value, second.value) >= LEAST / 2
    return both and first.low <= second.high and second.low <= first.high
