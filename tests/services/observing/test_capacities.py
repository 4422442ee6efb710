"""What there is where jobs run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from support import filled_homes

from paceline.engines.local import machines
from paceline.engines.local.machines import Machine
from paceline.errors import Conflict
from paceline.model.jobs.job_specs import CpuPolicy, Host, JobSpec
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.services.life_cycles import LifeCycle
from paceline.services.local import jobs
from paceline.services.observing import capacities
from paceline.services.observing.look_cache import LookCache

GIB = 1 << 30


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """One with four cores."""
    made = Machine(
        cores=(0, 1, 2, 3), memory_bytes=8 * GIB, cgroups=None, lacks_cgroups="", lacks_namespaces="no"
    )
    monkeypatch.setattr(machines, "read", lambda: made)
    return made


@pytest.fixture
def look_cache(api: jobs.Jobs) -> LookCache:
    return LookCache(api, lambda: 0.0)


Spec = Callable[..., JobSpec]


def spec_of(name: str, *, workers: int = 2, policy: CpuPolicy = CpuPolicy.SHARED) -> JobSpec:
    spec = filled_homes.spec_of(name, ps=1, workers=workers)
    roles = tuple(dataclasses.replace(each, cpu_policy=policy) for each in spec.roles)
    return dataclasses.replace(spec, roles=roles)


def test_who_holds_what_of_this_machine(api: jobs.Jobs, look_cache: LookCache) -> None:
    filled_homes.fill(api.home, "runs", phase=JobPhase.RUNNING, spec=spec_of("runs"))
    filled_homes.fill(api.home, "ended", spec=spec_of("ended"))
    found = capacities.capacity(api, look_cache)
    (node,) = found.nodes
    assert node.allocatable.millicores == 4000
    assert node.used.memory_bytes == 3 * GIB
    assert round(node.used.millicores, -1) == 3000
    assert found.holdings == found.of(node.name) == ()  # It has no host: it was never launched.
    assert found.waiting == ()
    hidden = capacities.capacity(api, look_cache, with_jobs=False)
    assert (hidden.nodes, hidden.holdings, hidden.waiting) == (found.nodes, (), ())


def test_jobs_that_wait_stand_in_the_order_in_which_they_are_served(
    api: jobs.Jobs, look_cache: LookCache
) -> None:
    for name, priority in (("young", 0), ("urgent", 5)):
        spec = spec_of(name)
        spec = dataclasses.replace(spec, scheduling=dataclasses.replace(spec.scheduling, priority=priority))
        filled_homes.fill(api.home, name, phase=JobPhase.PENDING, spec=spec)
    found = capacities.capacity(api, look_cache)
    assert [each.job for each in found.waiting] == ["urgent", "young"]
    assert all(each.cause is not None for each in found.waiting)


def test_what_has_a_place_on_this_machine(api: jobs.Jobs) -> None:
    shared = api.fit(spec_of("shared", workers=20))
    assert (shared.fits, shared.most_workers, len(shared.places)) == (True, 20, 21)
    alone = api.fit(spec_of("alone", workers=7, policy=CpuPolicy.EXCLUSIVE))
    assert (alone.fits, alone.most_workers) == (False, 3)
    assert "8 exclusive cores, but 4 are free" in alone.blockers[0].reason
    assert "ask for fewer" in alone.blockers[0].reason


def test_what_is_too_large_has_none_with_however_few_workers(api: jobs.Jobs) -> None:
    spec = spec_of("large")
    roles = tuple(
        dataclasses.replace(each, memory_bytes=16 * GIB) if each.role is Role.PS else each
        for each in spec.roles
    )
    found = api.fit(dataclasses.replace(spec, roles=roles))
    assert (found.fits, found.most_workers, found.places) == (False, None, {})
    hosts = (Host(name="small", cpu_cores=0.5),)
    assert "host small has 500m" in api.fit(dataclasses.replace(spec, hosts=hosts)).blockers[0].reason


def test_where_nodes_cannot_be_seen(api: jobs.Jobs) -> None:
    with pytest.raises(Conflict, match="cannot see its nodes"):
        LifeCycle.nodes(api)
