"""The shape of a job, and those beside it."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.job_specs import job_specs

from paceline import specs
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import Autoscale, CoreRange, CpuPolicy, JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.model.studies.tunings import Objective
from paceline.specs.edits import edits
from paceline.tuning import shapes
from paceline.tuning.shapes import JobShape

SERVERS = RoleSpec(role=Role.PS, replicas=2, cpu_cores=1.0)
SPEC = JobSpec(
    name="clicks",
    command=("python", "train.py"),
    roles=(SERVERS, RoleSpec(role=Role.WORKER, replicas=4, cpu_cores=0.5)),
    training={"partitioning": {"strategy": "none"}, "batch_size": 512},
)
NOW = JobShape(servers=2, workers=4, server_cores=1.0, worker_cores=0.5, even=False)


def test_the_shape_of_a_job() -> None:
    assert shapes.shape(SPEC) == NOW
    assert shapes.shape(dataclasses.replace(SPEC, roles=SPEC.roles[:1])) is None


def test_shapes_are_within_the_cores_that_may_be_asked_for() -> None:
    found = list(shapes.beside(SPEC, Objective(most_cores=4.0)))
    assert NOW not in found
    assert JobShape(servers=1, workers=6, server_cores=1.0, worker_cores=0.5, even=True) in found
    for each in found:
        assert each.server_cores is not None
        assert each.worker_cores is not None
        assert each.servers * each.server_cores + each.workers * each.worker_cores <= 4.0 + 1e-9


def test_cores_that_are_not_limited_stay_so() -> None:
    roles = tuple(dataclasses.replace(each, cpu_cores=None) for each in SPEC.roles)
    found = list(shapes.beside(dataclasses.replace(SPEC, roles=roles), Objective(most_cores=1.0)))
    assert {(each.server_cores, each.worker_cores) for each in found} == {(None, None)}


def test_exclusive_cores_stay_whole() -> None:
    exclusive = dataclasses.replace(SERVERS, cpu_policy=CpuPolicy.EXCLUSIVE)
    spec = dataclasses.replace(SPEC, roles=(exclusive, SPEC.roles[1]))
    found = {each.server_cores for each in shapes.beside(spec, Objective())}
    assert found == {1.0, 2.0, 3.0, 4.0}


def test_cores_stay_within_what_autoscaling_may_give() -> None:
    spec = dataclasses.replace(SPEC, autoscale=Autoscale(ranges={Role.PS: CoreRange(0.6, 2.0)}))
    found = list(shapes.beside(spec, Objective()))
    assert {each.server_cores for each in found} == {0.75, 1.0, 1.5, 2.0}
    assert max(each.worker_cores or 0.0 for each in found) == 2.0


def test_workers_stay_within_the_most_that_the_job_file_allows() -> None:
    few = dataclasses.replace(SPEC.roles[1], max_replicas=6)
    spec = dataclasses.replace(SPEC, roles=(SERVERS, few))
    assert {each.workers for each in shapes.beside(spec, Objective())} == {1, 2, 3, 4, 6}


@pytest.mark.parametrize(("cores", "least", "most"), [(0.001, 0.001, 0.004), (4096.0, 1024.0, 4096.0)])
def test_cores_stay_within_what_a_job_file_can_ask_for(cores: float, least: float, most: float) -> None:
    spec = dataclasses.replace(SPEC, roles=(dataclasses.replace(SERVERS, cpu_cores=cores), SPEC.roles[1]))
    found = {each.server_cores or 0.0 for each in shapes.beside(spec, Objective())}
    assert (min(found), max(found)) == (least, most)


def test_changes_name_only_what_differs() -> None:
    wanted = dataclasses.replace(NOW, servers=4, server_cores=0.75, even=True)
    assert shapes.changes(SPEC, wanted) == (
        FieldChange(path=("spec", "roles", "ps", "replicas"), value=4),
        FieldChange(path=("spec", "roles", "ps", "cpu"), value="750m"),
        FieldChange(path=("spec", "training", "partitioning"), value=None),
    )
    assert shapes.words(NOW, wanted) == "4 PS (were 2), PS with 0.75 cores (had 1), variables cut over all PS"


def test_a_saved_plan_is_for_the_servers_that_it_was_made_for() -> None:
    spec = dataclasses.replace(SPEC, training={"variable_plan": "plan.yaml"})
    assert shapes.reshaped(spec, dataclasses.replace(NOW, workers=8)).training == spec.training
    assert shapes.reshaped(spec, dataclasses.replace(NOW, servers=4)).training == {}


@given(job_specs(), st.data())
def test_the_changes_of_the_file_make_the_job_that_was_looked_at(spec: JobSpec, data: st.DataObject) -> None:
    if shapes.shape(spec) is None:
        return
    wanted = data.draw(st.sampled_from(list(shapes.beside(spec, Objective()))))
    after = specs.parse_job(edits.edited(specs.dump_job(spec), shapes.changes(spec, wanted))).spec
    made = shapes.reshaped(spec, wanted)
    assert [(each.role, each.replicas, each.cpu_cores) for each in after.roles] == [
        (each.role, each.replicas, each.cpu_cores) for each in made.roles
    ]
    assert (after.training or {}) == (made.training or {})
