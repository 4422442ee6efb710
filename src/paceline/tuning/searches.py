"""What a search tries next and when it stops, given the proposals for the best trial so far."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paceline.model.studies.proposals import Proposal
from paceline.model.studies.tunings import Tuning

NOTHING = "nothing that is left promises more than the noise of a run"
SPENT = "all trials are made"


def worth(found: Sequence[Proposal], least_gain: float) -> list[Proposal]:
    """Return the proposals expected to bring at least this gain, the largest first.

    Args:
        found: the proposals.
        least_gain: a smaller gain is within the noise of a run (`headrooms.LEAST_GAIN`).
    """
    kept = (each for each in found if each.expected >= least_gain)
    return sorted(kept, key=lambda each: -each.expected)


def untried(tuning: Tuning, found: Sequence[Proposal]) -> list[Proposal]:
    """Return the proposals that were not undone."""
    failed = {_key(trial.proposals) for trial in tuning.undone}
    return [each for each in found if _key([each]) not in failed]


def chosen(tuning: Tuning, found: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """Return the proposals to try next on the best trial so far; empty: none is left.

    Several proposals are tried at once, so that the trials that are left suffice for all of them. A proposal
    with which a model may learn differently is tried alone, so that its effect can be attributed. A
    combination that was undone is not tried again, but a part of it is.

    Args:
        tuning: the search.
        found: the proposals that are `worth` a trial, the largest expected gain first.
    """
    failed = {_key(trial.proposals) for trial in tuning.undone}
    left = untried(tuning, found)
    if not left:
        return ()
    trials = max(1, tuning.most_trials - len(tuning.trials))
    together = [left[0]]
    for each in left[1:]:
        if len(together) >= math.ceil(len(left) / trials):
            break
        if not any(each.conflicts(other) or each.relearns for other in together) and not left[0].relearns:
            together.append(each)
    return tuple(together) if _key(together) not in failed else (left[0],)


def _key(proposals: Sequence[Proposal]) -> frozenset[tuple[tuple[str, ...], str]]:
    """Return the identity of the changes of proposals, whatever their order and reasons."""
    return frozenset((change.path, repr(change.value)) for each in proposals for change in each.changes)
