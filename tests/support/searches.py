"""A search for a better job file that has ended, and an experiment that has not, as values."""

from __future__ import annotations

import math

from paceline.model.explanations.causes import FieldChange, Gain
from paceline.model.studies.experiments import Experiment, Repeat, Variant
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.studies import Loss, TrialOutcome, TrialPair
from paceline.model.studies.tunings import Judgement, Objective, Quality, Trial, Tuning

SOURCE = "spec:\n  training:\n    optimizer: {name: adam}\n    batch_size: 512\n"
TUNED = SOURCE.replace("adam", "lazy-adam")
LAZY = Proposal(
    name="dense-update",
    what="Adam updates all rows.",
    changes=(FieldChange(path=("spec", "training", "optimizer", "name"), value="lazy-adam"),),
    gain=Gain(low=5.0, high=9.0),
    basis="OPT001, from what was measured of the job as it is",
    risk="Rare rows learn a little otherwise.",
)
SHORT = Proposal(
    name="short-layers",
    what="Compute in bfloat16.",
    changes=(FieldChange(path=("spec", "training", "compute_precision"), value="bfloat16"),),
    gain=Gain(low=0.95, high=1.3),
    basis="the ladder",
)


def outcome(speed: float) -> TrialOutcome:
    """Return what was measured of a trial of such a speed."""
    return TrialOutcome(
        examples_per_second=(0.99 * speed, speed, 1.01 * speed), asked_cores=4.0, used_cores=1.5
    )


ENDED = Tuning(
    name="clicks-trial",
    job="clicks",
    objective=Objective(most_cores=4.0),
    most_trials=4,
    source=SOURCE,
    base="/jobs",
    trials=(
        Trial(number=0, run="clicks-trial-0", source=SOURCE, outcome=outcome(1_500.0)),
        Trial(
            number=1, run="clicks-trial-1", source=TUNED, base=0, proposals=(LAZY,),
            outcome=outcome(12_000.0),
            judgement=Judgement(kept=True, times=8.0, low=7.2, high=8.9, why="8.00 times as good"),
        ),
        Trial(
            number=2, run="clicks-trial-2", source=TUNED, base=1, proposals=(SHORT,),
            outcome=outcome(12_100.0),
            judgement=Judgement(kept=False, times=1.01, low=0.9, high=1.1, why="no difference"),
        ),
        Trial(
            number=3, run="clicks-trial-3", source=TUNED, base=1, proposals=(SHORT,),
            outcome=TrialOutcome(failure="ps-0 was killed: out of memory"),
            judgement=Judgement(
                kept=False, times=0.0, low=0.0, high=0.0, why="ps-0 was killed: out of memory"
            ),
        ),
    ),
    ended="all trials are made",
    pairs=(TrialPair(before=outcome(1_500.0), after=outcome(12_300.0)),),
    quality=Quality(examples=45_000, auc_before=0.7012, auc_after=0.7010),
)  # fmt: skip

HOSTILE = "<script>alert(1)</script>"


def _repeat(variant: str, number: int, speed: float) -> Repeat:
    made = TrialOutcome(
        examples_per_second=(speed,) * 5, used_cores=1.5, losses=(Loss(examples=512, value=math.nan),)
    )
    return Repeat(variant=variant, number=number, run=f"sizes-{number}", outcome=made, cause="ps-cpu-bound")


#: Of it a run is still to be made.
COMPARED = Experiment(
    name="sizes", source=SOURCE, base="/jobs", baseline="small", repeats=2, seconds=10.0,
    variants=(
        Variant(name="small", changes=()),
        Variant(name=HOSTILE, changes=(FieldChange(path=("spec", "training", "batch_size"), value=1024),)),
    ),
    facts=(("cores", "2"),),
    done=(_repeat("small", 0, 100.0), _repeat(HOSTILE, 0, 300.0), _repeat(HOSTILE, 1, 310.0)),
)  # fmt: skip
