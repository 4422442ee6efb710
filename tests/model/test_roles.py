import dataclasses

import pytest

from paceline.model import roles
from paceline.model.explanations import findings
from paceline.model.jobs import job_specs
from paceline.model.roles import ReplicaId, Role


@pytest.mark.parametrize("role", list(Role))
def test_names_of_replicas_come_back(role: Role) -> None:
    replica = ReplicaId(role, 12)
    assert str(replica) == f"{role}-12"
    assert ReplicaId.parse(str(replica)) == replica


@pytest.mark.parametrize(
    "text", ["", "ps", "ps-", "-1", "ps--1", "boss-0", "ps-x", "PS-0", "ps-0-", "ps 0", "ps-1.0"]
)
def test_what_names_no_replica(text: str) -> None:
    with pytest.raises(ValueError, match="does not name a replica"):
        ReplicaId.parse(text)


def test_who_trains() -> None:
    assert [role for role in Role if role.trains] == [Role.WORKER, Role.CHIEF]
    assert roles.Role("ps") is Role.PS


def test_replicas_sort_by_role_and_index() -> None:
    assert sorted([ReplicaId(Role.WORKER, 2), ReplicaId(Role.WORKER, 10)])[1].index == 10


def test_what_a_job_says_of_its_roles() -> None:
    ps = job_specs.RoleSpec(role=Role.PS, replicas=2, environment={"A": "2"})
    worker = job_specs.RoleSpec(role=Role.WORKER, command=("b",))
    spec = job_specs.JobSpec(name="x", command=("a",), environment={"A": "1", "B": "1"}, roles=(ps, worker))
    assert [str(replica) for replica in spec.replicas()] == ["ps-0", "ps-1", "worker-0"]
    assert spec.role(Role.CHIEF) is None
    assert spec.command_of(Role.PS) == ("a",)
    assert spec.command_of(Role.WORKER) == ("b",)
    assert spec.environment_of(Role.PS) == {"A": "2", "B": "1"}
    assert spec.environment_of(Role.CHIEF) == {"A": "1", "B": "1"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.name = "y"  # type: ignore[misc]


def test_severities_are_ordered() -> None:
    ranks = [
        severity.rank
        for severity in (findings.Severity.INFO, findings.Severity.WARNING, findings.Severity.ERROR)
    ]
    assert ranks == sorted(ranks)
    assert str(findings.TextPosition(file="a", line=1, column=2)) == "a:1:2"
