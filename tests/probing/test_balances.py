"""Cores moved to what binds: within limits, never below what is used, and only where it is worth it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.job_specs import Autoscale, CoreRange, JobSpec, Override, RoleSpec
from paceline.model.measures.probes import CutPart, Elasticity
from paceline.model.roles import ReplicaId, Role
from paceline.probing import balances
from paceline.probing.balances import Balance

PS0, PS1, W0, W1 = (ReplicaId.parse(name) for name in ("ps-0", "ps-1", "worker-0", "worker-1"))
JOB = JobSpec(
    name="job",
    roles=(
        RoleSpec(role=Role.PS, replicas=2, cpu_cores=1.0),
        RoleSpec(role=Role.WORKER, replicas=2, cpu_cores=1.0),
    ),
)
SCALE = Autoscale(ranges={Role.PS: CoreRange(0.25, 4.0), Role.WORKER: CoreRange(0.25, 2.0)})
USED = {PS0: 1.0, PS1: 0.2, W0: 0.4, W1: 0.4}


def elasticity(*targets: str, value: float) -> Elasticity:
    return Elasticity(
        part=CutPart(Knob.CPU, targets), value=value, low=value - 0.05, high=value + 0.05, cuts=2
    )


HOT = (
    elasticity("ps-0", value=0.95),
    elasticity("ps-1", value=0.0),
    elasticity("worker-0", "worker-1", value=0.0),
)


def after(found: Balance) -> dict[str, float]:
    return {str(move.replica): move.after for move in found.moves}


def test_the_one_that_binds_gets_what_the_others_do_not_need() -> None:
    found = balances.balance(JOB, SCALE, HOT, USED)
    assert after(found)["ps-0"] == pytest.approx(1.5)
    assert sum(move.after - move.before for move in found.moves) <= 1e-9, "the job asks for as many as before"
    assert found.times is not None
    assert found.times[1] < 1.5**0.95 < found.times[2]
    assert [move.text for move in found.moves][-1] == "ps-0: 1 -> 1500m CPU (it binds)"


def test_cores_that_the_job_may_have_besides_are_given_first() -> None:
    scale = Autoscale(ranges=SCALE.ranges, most_cores=10.0)
    assert after(balances.balance(JOB, scale, HOT, USED)) == {"ps-0": 1.5}


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ((elasticity("ps-0", "ps-1", value=0.02),), "nothing that may be scaled binds"),
        ((), "nothing that may be scaled binds"),
    ],
)
def test_where_nothing_binds_all_stays(found: tuple[Elasticity, ...], why: str) -> None:
    assert balances.balance(JOB, SCALE, found, USED) == Balance(moves=(), why=why)


def test_what_has_as_much_as_it_may_have_stays() -> None:
    scale = Autoscale(ranges={Role.PS: CoreRange(0.25, 1.0), Role.WORKER: CoreRange(0.25, 2.0)})
    assert "as much as it may have" in balances.balance(JOB, scale, HOT, USED).why


def test_where_the_others_need_theirs_too_little_is_left() -> None:
    full = dict.fromkeys((PS0, PS1, W0, W1), 0.98)
    assert "too few cores" in balances.balance(JOB, SCALE, HOT, full).why


@pytest.mark.parametrize(
    ("cores", "least"), [(1.1, 1.0), (0.64, 0.5), (0.84, 0.7), (1.07, 1.0), (1.28, 1.0), (0.58, 0.505)]
)
def test_one_that_rests_keeps_the_cores_that_its_job_file_names(cores: float, least: float) -> None:
    spec = JobSpec(name="job", roles=JOB.roles, overrides={PS1: Override(cpu_cores=cores)})
    scale = Autoscale(ranges={Role.PS: CoreRange(least, 4.0)})
    found = after(balances.balance(spec, scale, HOT, {PS1: 0.1}))
    assert least <= found["ps-1"] < least + balances.STEP_CORES
    assert found["ps-0"] + found["ps-1"] <= 1.0 + cores


def test_one_of_which_nothing_is_known_gives_nothing() -> None:
    found = balances.balance(JOB, SCALE, HOT, {PS0: 1.0, W0: 0.2})
    assert set(after(found)) == {"ps-0", "worker-0"}


CORES = st.floats(0.1, 8.0).map(lambda cores: round(cores, 2))
VALUES = st.floats(-0.5, 1.5)


@given(
    st.fixed_dictionaries({PS0: CORES, PS1: CORES, W0: CORES, W1: CORES}),
    st.fixed_dictionaries({PS0: CORES, PS1: CORES, W0: CORES, W1: CORES}),
    st.lists(VALUES, min_size=4, max_size=4),
    st.none() | st.floats(1.0, 40.0),
)
def test_whatever_is_found_limits_are_kept(
    cores: dict[ReplicaId, float], used: dict[ReplicaId, float], values: list[float], most: float | None
) -> None:
    spec = JobSpec(
        name="job",
        roles=JOB.roles,
        overrides={replica: Override(cpu_cores=each) for replica, each in cores.items()},
    )
    ranges = {Role.PS: CoreRange(0.1, 8.0), Role.WORKER: CoreRange(0.1, 8.0)}
    scale = Autoscale(ranges=ranges, most_cores=most)
    found = [elasticity(str(replica), value=value) for replica, value in zip(cores, values, strict=True)]
    balance = balances.balance(spec, scale, found, used)
    total = sum(cores.values())
    moved = sum(move.after - move.before for move in balance.moves)
    assert total + moved <= max(total, most or 0.0) + 1e-6
    for move in balance.moves:
        limits = ranges[move.replica.role]
        assert limits.low <= move.after <= limits.high
        if move.after < move.before:
            assert move.after >= used[move.replica] * balances.SPARE - 1e-6
        else:
            assert move.after <= move.before * balances.MOST_RAISE + 1e-6


def test_rounds_come_to_rest() -> None:
    # One replica's cores bind until it has enough.
    spec, needed = JOB, {PS0: 3.0, PS1: 0.2, W0: 0.5, W1: 0.5}
    scale = Autoscale(ranges=SCALE.ranges, most_cores=6.0)
    rounds = 0
    while rounds < 10:
        binds = spec.role_of(PS0).cpu_cores < needed[PS0]
        found = (elasticity("ps-0", value=0.95 if binds else 0.0), *HOT[1:])
        used = {each: min(cores, spec.role_of(each).cpu_cores) for each, cores in needed.items()}
        balance = balances.balance(spec, scale, found, used)
        if not balance.moves:
            break
        rounds += 1
        overrides = {move.replica: Override(cpu_cores=move.after) for move in balance.moves}
        spec = JobSpec(name="job", roles=JOB.roles, overrides={**spec.overrides, **overrides})
    assert 1 < rounds < 6
    assert spec.role_of(PS0).cpu_cores >= needed[PS0]
