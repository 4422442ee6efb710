"""What of a job decides its speed."""

from __future__ import annotations

import pytest

from paceline.model.jobs.job_specs import Host, JobSpec, RoleSpec
from paceline.model.roles import ReplicaId, Role
from paceline.model.variables.variable_plans import CutStrategy, PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable
from paceline.modelling.layouts import Trainers, layout

TABLE = Variable(name="table", shape=(100_000, 16), sparse=True, step_bytes=1e6)
WEIGHTS = Variable(name="weights", shape=(64, 8), step_bytes=4096.0)
WHOLE = RowPartitioning(strategy=CutStrategy.NONE)
SPEC = JobSpec(
    name="clicks",
    roles=(
        RoleSpec(role=Role.PS, replicas=2, cpu_cores=0.5),
        RoleSpec(role=Role.CHIEF, replicas=1, cpu_cores=1.0),
        RoleSpec(role=Role.WORKER, replicas=3, cpu_cores=1.0),
        RoleSpec(role=Role.EVALUATOR, replicas=1, cpu_cores=1.0),
    ),
    hosts=(Host(name="a", cpu_cores=2.0), Host(name="b")),
)


def test_trainers_of_a_host_are_one_group_and_servers_have_their_traffic() -> None:
    placed = plan([TABLE, WEIGHTS], servers=2, cut=WHOLE, rule=PlacementRule.ROUND_ROBIN)
    hosts = {each: "b" if each.index == 2 else "a" for each in SPEC.replicas()}
    found = layout(SPEC, placed, hosts, machine_cores=2.0, batch_size=128)
    assert [each.step_bytes for each in found.servers] == [1e6, 4096.0]
    # Of each row 64 bytes go either way, and 4 of its id.
    assert [each.step_rows for each in found.servers] == [pytest.approx(1e6 / 132), 0.0]
    first, second, third = (ReplicaId(Role.WORKER, index) for index in range(3))
    assert found.trainers == (
        Trainers(replicas=(ReplicaId(Role.CHIEF, 0), first, second), cores=1.0, host="a"),
        Trainers(replicas=(third,), cores=1.0, host="b"),
    )
    assert found.trainer_count == 4


def test_hosts_that_are_not_emulated_are_none() -> None:
    placed = plan([TABLE], servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)
    found = layout(SPEC, placed, {ReplicaId(Role.PS, 0): "node-7"}, machine_cores=None, batch_size=128)
    assert {each.host for each in (*found.servers, *found.trainers)} == {None}


def test_a_plan_for_other_servers_and_unknown_traffic_are_refused() -> None:
    three = plan([TABLE], servers=3, cut=RowPartitioning(), rule=PlacementRule.BALANCED)
    with pytest.raises(ValueError, match="for 3 parameter servers, the job has 2"):
        layout(SPEC, three, {}, machine_cores=None, batch_size=128)
    unknown = plan(
        [Variable(name="new", shape=(10, 10))], servers=2, cut=WHOLE, rule=PlacementRule.ROUND_ROBIN
    )
    with pytest.raises(ValueError, match="not measured"):
        layout(SPEC, unknown, {}, machine_cores=None, batch_size=128)
