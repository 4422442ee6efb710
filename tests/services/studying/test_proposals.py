"""What is proposed for real jobs that were recorded."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

import pytest

from paceline import specs
from paceline.diagnosing.headrooms import LEAST_GAIN
from paceline.model.explanations.causes import Gain
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures.recordings import Recording
from paceline.model.roles import Role
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.tunings import Goal, Objective
from paceline.services.studying import predictions, proposals
from paceline.specs.edits import edits
from paceline.stores import recordings

RECORDINGS = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "recordings"


@functools.cache
def recorded(name: str) -> Recording:
    return recordings.read(RECORDINGS / f"{name}.parquet")


@functools.cache
def proposed(name: str, objective: Objective) -> Sequence[Proposal]:
    """What is proposed takes seconds to compute, so tests with the same question share the answer."""
    return proposals.proposals(recorded(name), objective)


def edited(recording: Recording, changes: tuple[object, ...]) -> JobSpec:
    return specs.parse_job(edits.edited(recording.run.source, changes)).spec  # type: ignore[arg-type]


DENSE = "dense-update.medium.wide-deep-middle-plain-4"


@pytest.fixture
def dense() -> Recording:
    return recorded(DENSE)


def test_the_primary_cause_is_proposed_with_its_gain_and_its_risk(dense: Recording) -> None:
    first, *others = proposed(DENSE, Objective(most_cores=dense.run.spec.asked_cores))
    assert first.name == "dense-update"
    assert first.relearns
    assert first.basis.startswith("OPT001")
    assert "Look at the AUC" in first.risk
    assert edited(dense, first.changes).training["optimizer"]["name"] == "lazy-adam"  # type: ignore[index]
    assert [each.expected for each in others] == sorted((each.expected for each in others), reverse=True)


def test_of_causes_and_shapes_the_model_tells_the_gains_where_it_knows_the_effect() -> None:
    changed = "compute-bound.gross.wide-deep-middle-plain-4"
    found = {each.name: each for each in proposed(changed, Objective())}
    cores, shape = found["compute-bound"], found["layout"]
    assert cores.basis == f"WRK001, from {shape.basis}"
    foretold = predictions.forecast(predictions.model(recorded(changed)), cores.changes)
    assert cores.gain == Gain(low=foretold.low, high=foretold.high)


def test_a_site_says_which_gain_is_worth_a_trial(dense: Recording) -> None:
    strict = dataclasses.replace(dense, thresholds={LEAST_GAIN.name: 1.7})
    before, after = proposed(DENSE, Objective()), proposals.proposals(strict, Objective())
    assert any(each.expected < 1.7 for each in before)
    assert after
    assert all(each.expected >= 1.7 for each in after)


def test_what_is_beyond_the_limits_is_not_proposed(dense: Recording) -> None:
    for cores in (1.0, 2.5, 4.0):
        for each in proposed(DENSE, Objective(most_cores=cores)):
            asked = edited(dense, each.changes).asked_cores
            assert asked is not None
            assert asked <= cores + 1e-9


def test_nothing_by_which_it_would_learn_otherwise_is_proposed_where_that_is_not_allowed() -> None:
    found = proposed(DENSE, Objective(relearning=False))
    assert found
    assert not [each for each in found if each.relearns]


def test_the_batch_size_changes_only_where_that_is_allowed() -> None:
    def names(objective: Objective) -> set[str]:
        return {each.name for each in proposed(DENSE, objective)}

    assert "larger-batch" not in names(Objective())
    assert "larger-batch" in names(Objective(batch_size=True))


def test_the_cheapest_job_has_no_servers_that_do_nothing() -> None:
    name = "too-many-ps.mild.dlrm-small-whole-4"
    recording = recorded(name)
    before = recording.run.spec
    first = proposed(name, Objective(goal=Goal.CHEAPEST))[0]
    after = edited(recording, first.changes)
    assert after.role(Role.PS).replicas < before.role(Role.PS).replicas  # type: ignore[union-attr]
    assert (after.asked_cores or 0) < (before.asked_cores or 0)
    assert first.expected > 2


def test_servers_keep_room_for_the_variables(dense: Recording) -> None:
    plan = dense.plan
    assert plan is not None
    # Each holds what it holds now, and no more.
    limit = round(max(plan.memory_bytes()) / 0.75)
    roles = tuple(
        dataclasses.replace(each, memory_bytes=limit) if each.role is Role.PS else each
        for each in dense.run.spec.roles
    )
    spec = dataclasses.replace(dense.run.spec, roles=roles)
    small = dataclasses.replace(
        dense, run=dataclasses.replace(dense.run, spec=spec, source=specs.dump_job(spec))
    )
    of_small = proposals.proposals(small, Objective())
    for recording, changed, fewer in ((dense, proposed(DENSE, Objective()), True), (small, of_small, False)):
        found = [edited(recording, each.changes) for each in changed]
        assert any(each.role(Role.PS).replicas < 2 for each in found) is fewer  # type: ignore[union-attr]


def test_of_a_job_that_was_not_measured_nothing_is_proposed_by_the_model(dense: Recording) -> None:
    found = proposals.proposals(dataclasses.replace(dense, samples=(), plan=None), Objective())
    assert not [each for each in found if each.name == "layout"]


def test_switches_promise_what_the_model_leaves_of_them() -> None:
    def gains(name: str) -> dict[str, float]:
        return {each.name: each.expected for each in proposed(name, Objective())}

    # Where links bind, half the bytes are worth a trial; where trainers compute all the time, they are not.
    assert gains("ps-network-bound.gross.deepfm-small-plain-4")["short-transfers"] > 1.3
    busy = gains("compute-bound.gross.wide-deep-middle-plain-4")
    assert not {"short-transfers", "overlapping-steps"} & set(busy)
