"""Studies, in each kind of database."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.errors import Conflict, NotFound
from paceline.model.explanations.causes import FieldChange, Gain
from paceline.model.studies.experiments import Experiment, Repeat, Variant
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.studies import Loss, TrialOutcome
from paceline.model.studies.tunings import Goal, Judgement, Objective, Trial, Tuning

PROPOSAL = Proposal(
    name="layout",
    what="Have 4 PS.",
    changes=(
        FieldChange(path=("spec", "roles", "ps", "replicas"), value=4),
        FieldChange(path=("spec",), value=None),
    ),
    gain=Gain(low=1.0, high=2.0),
    basis="the model",
)
TUNING = Tuning(
    name="clicks-trial",
    job="clicks",
    objective=Objective(goal=Goal.CHEAPEST, most_cores=4.0),
    most_trials=6,
    source="spec: {}\n",
    base="/jobs",
    trials=(
        Trial(
            number=0, run="clicks-trial-0", source="spec: {}\n",
            outcome=TrialOutcome(examples_per_second=(1.5, 2.0), losses=(Loss(examples=10, value=0.5),)),
        ),
        Trial(
            number=1, run="clicks-trial-1", source="spec: {a: 1}\n", base=0, proposals=(PROPOSAL,),
            judgement=Judgement(kept=True, times=2.0, low=1.5, high=2.5, why="2.00 times as good"),
        ),
    ),
)  # fmt: skip


def test_a_search_comes_back_as_it_was(store):
    store.save_study(TUNING, at=1.0)
    assert store.tuning(TUNING.name) == TUNING


def test_the_last_that_was_saved_counts(store):
    store.save_study(TUNING, at=1.0)
    ended = dataclasses.replace(TUNING, ended="all trials are made")
    store.save_study(ended, at=2.0)
    assert store.tuning(TUNING.name) == ended


def test_what_was_never_saved_is_not_there(store):
    with pytest.raises(NotFound, match="there is no tuning 'clicks-trial'"):
        store.tuning(TUNING.name)


EXPERIMENT = Experiment(
    name="scenes",
    source="spec: {}\n",
    base="/jobs",
    variants=(Variant(name="together", changes=PROPOSAL.changes), Variant(name="apart", changes=())),
    baseline="apart",
    repeats=2,
    seconds=20.0,
    done=(
        Repeat(
            variant="apart",
            number=0,
            run="scenes-1-0",
            outcome=TrialOutcome(failure="no room"),
            cause="hot-ps",
        ),
    ),
    facts=(("cores", "2"),),
)


def test_an_experiment_comes_back_as_it_was(store):
    store.save_study(EXPERIMENT, at=1.0)
    assert store.experiment("scenes") == EXPERIMENT
    store.save_study(dataclasses.replace(EXPERIMENT, done=()), at=2.0)
    assert store.experiment("scenes").done == ()


def test_a_name_is_for_one_kind_of_study(store):
    store.save_study(EXPERIMENT, at=1.0)
    with pytest.raises(NotFound, match="there is no tuning 'scenes'"):
        store.tuning("scenes")
    with pytest.raises(Conflict, match="the name of another kind of study: experiment"):
        store.save_study(dataclasses.replace(TUNING, name="scenes"), at=2.0)
    assert store.experiment("scenes") == EXPERIMENT
