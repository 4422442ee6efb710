"""Causes propose cures for scripts that the instrumentation sees, and only for those."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pytest
from support import cases
from support.cases import START, found, trace

from paceline.diagnosing import trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.optimizers.dense_updates import dense_update
from paceline.diagnosing.rules import Rule
from paceline.diagnosing.scripts.device_filters import no_device_filters
from paceline.diagnosing.scripts.missing_prefetches import no_prefetch
from paceline.diagnosing.scripts.recovery_waits import recovery_wait
from paceline.diagnosing.servers.giant_variables import giant_variable
from paceline.diagnosing.servers.uneven_placements import uneven_placement
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.runs import CURED, SEEN, JobEvent
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId
from paceline.model.studies.tunings import Objective
from paceline.model.variables import cures
from paceline.model.variables.cures import Cure
from paceline.model.variables.variable_plans import PlacementRule, Plan, RowPartitioning, plan
from paceline.model.variables.variables import Variable
from paceline.specs.edits import edits
from paceline.tuning import moves

FULL, RESTING = {"cpu_cores": 0.95, "cpu_limit_cores": 1.0}, {"cpu_cores": 0.05, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": FULL, "ps-1": FULL, "worker-0": {"cpu_cores": 0.2, "cpu_limit_cores": 1.0}}
#: As the graph of a script with `tf.train.AdamOptimizer` has them.
WHOLE, OF_ROWS = ("Assign", "AssignSub", "ScatterAdd"), ("ScatterAdd",)


def event(kind: str, message: str) -> JobEvent:
    return JobEvent(at=START, kind=kind, message=message, replica=ReplicaId.parse("worker-0"), attempt=1)


def seen(recording: Recording, *more: JobEvent) -> Recording:
    """The same job, of whose script the instrumentation sees the steps."""
    steps = event(SEEN, "its steps, made by sessions; loss: Mean:0; global step: not seen; batch: fed")
    return dataclasses.replace(recording, events=[*recording.events, steps, *more])


def planned(updates: tuple[str, ...], slots: int = 2) -> Plan:
    table = Variable(
        name="emb_user", shape=(2_000_000, 16), sparse=True, slots=slots, step_bytes=70_000.0,
        updates=updates, devices=("/job:ps/task:0",),
    )  # fmt: skip
    return plan((table,), servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)


def busy(**more: Any) -> Recording:
    steps = {"worker-0": cases.STEPS | {"steps": 10}}
    return cases.recording(LOADS, **{"steps": steps, "plan": planned(WHOLE), **more})


def test_adam_of_a_script_that_is_seen_can_be_lazy() -> None:
    (cause,) = found(dense_update, seen(busy()))
    assert cause.what == (
        "Adam updates all 2,000,000 rows of emb_user in each step; a batch uses 530 of them."
    )
    assert cause.changes == (FieldChange(path=("spec", "training", "optimizer", "name"), value="lazy-adam"),)
    assert cause.next_steps == ()


@pytest.mark.parametrize(
    ("recording", "proposed"),
    [
        pytest.param(busy(), False, id="not seen, so nothing can be changed"),
        pytest.param(seen(busy(plan=planned(WHOLE, slots=1))), False, id="another optimizer"),
        pytest.param(
            seen(busy(spec={"training": {"optimizer": {"name": "lazy-adam"}}})), False, id="asked for already"
        ),
    ],
)
def test_what_is_no_adam_or_cannot_be_changed_is_told_by_hand(recording: Recording, proposed: bool) -> None:
    (cause,) = found(dense_update, recording)
    assert bool(cause.changes) is proposed
    assert cause.next_steps[0].startswith("in your script: an optimizer that touches only rows")


def test_adam_that_is_lazy_is_blamed_no_more() -> None:
    outcome = cures.CureOutcome(cure="lazy-adam", version=1, is_applied=True, count=1, detail="emb_user")
    keras = busy(plan=planned(("Adam",)))
    assert found(dense_update, seen(keras))
    assert not found(dense_update, seen(keras, event(CURED, str(outcome))))
    assert not found(dense_update, seen(busy(plan=planned(OF_ROWS))))


def test_a_giant_variable_of_such_a_script_can_be_cut_and_placed() -> None:
    loads = {"ps-0": FULL, "ps-1": RESTING, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
    whole = trace({("ps-0", "ids"): 9_000_000, ("ps-1", "kernel"): 300_000})
    (cause,) = found(giant_variable, seen(cases.recording(loads, traces=(whole,))))
    assert cause.changes == (
        FieldChange(path=("spec", "training", "partitioning", "strategy"), value="fixed"),
        FieldChange(path=("spec", "training", "variable_placement"), value="greedy"),
    )
    misplaced = trace({("ps-0", "one"): 4_000_000, ("ps-0", "two"): 4_000_000, ("ps-1", "kernel"): 300_000})
    (cause,) = found(uneven_placement, seen(cases.recording(loads, traces=(misplaced,))))
    assert cause.changes == (FieldChange(path=("spec", "training", "variable_placement"), value="greedy"),)


def waiting_for_input() -> Recording:
    """A job whose traced step waits for its batch."""
    traced = trace({("ps-0", "table"): 1000})
    (split,) = traced.splits
    split = dataclasses.replace(split, input_wait_microseconds=split.total_microseconds)
    return cases.recording(LOADS, traces=(dataclasses.replace(traced, splits=(split,)),))


TWO = {"ps-0": FULL, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
UNFILTERED = {f"worker-{index}": {"device_filters": False} for index in (0, 1)}
#: A worker that asked again after 30 s, and the chief that was long ready.
SLEPT = cases.asking(
    cases.recording(TWO, trained={"worker-0": (6, 60), "worker-1": (34, 60)}, seconds=60),
    {"worker-1": {"session_wait_seconds": 30.5, "recovery_wait_seconds": 30}},
    at=START + 34,
)
ASKED = [
    (no_device_filters, cases.asking(cases.recording(TWO), UNFILTERED), cures.DEVICE_FILTERS),
    (no_prefetch, cases.asking(waiting_for_input(), {"worker-0": {"prefetches": False}}), cures.PREFETCH),
    (recovery_wait, SLEPT, cures.RECOVERY_WAIT),
]


@pytest.mark.parametrize(("rule", "recording", "cure"), ASKED, ids=lambda each: getattr(each, "name", ""))
def test_what_a_script_asks_of_tensorflow_can_be_changed(
    rule: Rule, recording: Recording, cure: Cure
) -> None:
    (cause,) = found(rule, recording)
    assert cause.changes == ()
    (cause,) = found(rule, seen(recording))
    assert cause.changes == (FieldChange(path=("spec", "training", *cure.path), value=cure.example),)
    asked = {"training": functools.reduce(lambda value, name: {name: value}, cure.path[::-1], cure.example)}
    done = dataclasses.replace(recording, run=cases.recording(TWO, spec=asked).run)
    (cause,) = found(rule, seen(done))
    assert cause.changes == ()


def test_changes_can_be_written_into_a_job_file_that_has_no_training_section() -> None:
    source = "kind: TrainingJob\nspec:\n  command: [python, train.py]\n"
    text = edits.edited(
        source, [FieldChange(path=("spec", "training", *cures.LAZY_ADAM.path), value="lazy-adam")]
    )
    assert text.endswith("  training:\n    optimizer:\n      name: lazy-adam\n")


def test_switches_of_the_training_library_are_not_proposed_to_such_a_script() -> None:
    recording = busy(spec={"training": {"optimizer": {"name": "adam"}, "batch_size": 64}})
    objective = Objective(batch_size=True, relearning=True)
    assert list(moves.proposals(Case.of(recording), recording.run.spec, objective))
    assert not list(moves.proposals(Case.of(seen(recording)), recording.run.spec, objective))


def test_who_obeys_the_training_section() -> None:
    asked = busy(spec={"training": {"batch_size": 64}})
    assert trainings.by_library(Case.of(asked))
    assert not trainings.by_library(Case.of(seen(asked)))
    assert not trainings.by_library(Case.of(busy()))


def test_a_script_whose_steps_are_not_seen_is_not_seen() -> None:
    said = event(SEEN, "its steps are not seen: python -I")
    recording = busy(spec={"training": {"batch_size": 64}})
    unseen = Case.of(dataclasses.replace(recording, events=[said]))
    assert not trainings.is_seen(unseen)
    assert trainings.by_library(unseen)
