"""More parameter servers than needed."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing import catalogues, chains
from paceline.diagnosing.servers.many_servers import too_many_ps
from paceline.diagnosing.trainers.compute_bounds import compute_bound
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Host

IDLE = {"cpu_cores": 0.03, "cpu_limit_cores": 1.0, "memory_bytes": 300 * 2**20,
        "memory_limit_bytes": 2 * 2**30}  # fmt: skip
TRAINER = cases.TRAINER | {"memory_bytes": 2**30}


def loads(servers: int, trainers: int, server: dict[str, Any] = IDLE) -> dict[str, dict[str, Any]]:
    return {f"ps-{each}": server for each in range(servers)} | {
        f"worker-{each}": TRAINER for each in range(trainers)
    }


def test_eight_idle_servers_of_two_workers_are_too_many() -> None:
    (cause,) = found(too_many_ps, cases.recording(loads(8, 2)))
    # Memory asks for most: 8 times 300 MiB over 0.7 of 2 GiB are 1.7.
    assert cause.what == "8 PS have next to nothing to do: 2 would do for 2 trainers."
    assert (cause.severity, cause.gain) == (Severity.INFO, None)
    assert cause.changes == (FieldChange(path=("spec", "roles", "ps", "replicas"), value=2),)
    assert [each.text for each in cause.evidence] == [
        "all 8 PS together use 0.24 cores, the busiest 3% of its own"
    ]


def test_workers_that_lack_cores_are_given_those_of_servers_that_leave() -> None:
    lacking = loads(8, 1) | {"worker-0": TRAINER | {"cpu_cores": 0.98}}
    roles = {"worker": {"cpu_cores": 1.0}, "ps": {"cpu_cores": 1.0}}
    recording = cases.recording(lacking, roles=roles)
    (cause,) = found(too_many_ps, recording)
    assert cause.what == "8 PS have next to nothing to do: 2 would do for 1 trainers, which lack cores."
    assert cause.severity is Severity.WARNING
    assert cause.gain is not None
    assert 1.5 < cause.gain.low <= cause.gain.high <= 4.0
    # All but two leave; a worker gets four times its cores at most, for which two servers have room.
    assert cause.changes == (
        FieldChange(path=("spec", "roles", "ps", "replicas"), value=2),
        FieldChange(path=("spec", "roles", "worker", "cpu"), value=4.0),
    )
    (root,) = chains.chained([*found(compute_bound, recording), cause], catalogues.EXPLAINS)
    assert [each.name for each in (root, *root.effects)] == ["too-many-ps", "compute-bound"]


def test_cores_of_hosts_are_not_given_away_by_roles() -> None:
    """A job file that says nothing of a worker's cores is not told to change them."""
    lacking = loads(8, 1) | {"worker-0": TRAINER | {"cpu_cores": 0.98}}
    free = {name: load | {"cpu_limit_cores": None} for name, load in lacking.items()}
    hosts = tuple(Host(name=f"on-{name}", cpu_cores=1.0) for name in free)
    rows = {name: {"host": f"on-{name}"} for name in free}
    (cause,) = found(too_many_ps, cases.recording(free, rows=rows, spec={"hosts": hosts}))
    assert (cause.severity, cause.gain) == (Severity.INFO, None)
    assert [change.path[2] for change in cause.changes] == ["ps"]


@pytest.mark.parametrize(
    ("servers", "trainers", "changed"),
    [
        pytest.param(2, 2, {}, id="only two"),
        pytest.param(4, 10, {}, id="few for each worker"),
        pytest.param(8, 2, {"cpu_cores": 0.12}, id="not quite idle"),
        pytest.param(8, 2, {"memory_bytes": 2 * 2**30}, id="they are there for their memory"),
        pytest.param(8, 2, {"cpu_limit_cores": None}, id="their limit is not known"),
    ],
)
def test_its_likes_are_not_it(servers: int, trainers: int, changed: dict[str, Any]) -> None:
    assert not found(too_many_ps, cases.recording(loads(servers, trainers, IDLE | changed)))


def test_servers_that_rest_because_trainers_wait_for_input_are_needed() -> None:
    steps = {f"worker-{each}": cases.STEPS | {"input_wait_seconds": 0.9} for each in range(3)}
    slow = loads(3, 3, IDLE | {"cpu_cores": 0.09}) | {
        f"worker-{each}": TRAINER | {"cpu_cores": 0.02} for each in range(3)
    }
    assert not found(too_many_ps, cases.recording(slow, steps=steps))


def test_a_job_that_makes_no_steps_is_not_judged_by_its_idleness() -> None:
    steps = {f"worker-{each}": cases.STEPS | {"steps": 0} for each in range(2)}
    assert not found(too_many_ps, cases.recording(loads(8, 2), steps=steps))
