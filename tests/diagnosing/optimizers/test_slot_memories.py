"""Slots of the optimizer that fill parameter servers."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.cases import Case
from paceline.diagnosing.optimizers.slot_memories import slots_memory
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording
from paceline.model.variables.variable_plans import CutStrategy, PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable

MIB = 2**20
SERVER = cases.SERVER | {"memory_bytes": 1800 * MIB, "memory_limit_bytes": 2048 * MIB}
WORKER = cases.TRAINER | {"memory_bytes": 500 * MIB, "memory_limit_bytes": 2048 * MIB}


def recording(
    server: dict[str, Any] | None = None, *, slots: int = 2, name: str = "deep/ids", **more: Any
) -> Recording:
    # Half a GiB on each of two servers, without slots.
    table = Variable(name=name, shape=(16 * MIB, 16), sparse=True, slots=slots)
    known = plan((table,), servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)
    own = SERVER | (server or {})
    given = {"spec": {"training": {"optimizer": {"name": "lazy-adam"}}}, "plan": known, **more}
    return cases.recording({"ps-0": own, "ps-1": own, "worker-0": WORKER}, **given)


def test_servers_near_their_limit_that_are_mostly_slots() -> None:
    (cause,) = found(slots_memory, recording())
    assert cause.what == "57% of the memory of ps-0 are slots of the optimizer: 1.0 GiB."
    assert (cause.severity, cause.gain) == (Severity.WARNING, None)
    assert cause.subjects == ("ps-0", "ps-1", "deep/ids")
    assert cause.changes == (FieldChange(path=("spec", "training", "optimizer", "name"), value="adagrad"),)
    assert cause.next_steps == ("or spec.roles.ps.memory: 2816Mi, or more PS",)
    assert [each.text for each in cause.evidence] == [
        "ps-0 uses 1.8 GiB, of a limit of 2.0 GiB",
        "of deep/ids there are 2.0 GiB of slots, 2 for each value",
    ]


def test_a_table_of_the_wide_part_has_its_own_optimizer() -> None:
    (cause,) = found(slots_memory, recording(name="wide/weights"))
    assert cause.changes[0].path == ("spec", "training", "wide_optimizer", "name")


def test_a_script_of_the_users_own_has_no_change_of_the_job_file() -> None:
    (cause,) = found(slots_memory, recording(spec={}))
    assert cause.changes == ()


def test_many_gib_with_room_are_worth_knowing() -> None:
    roomy = {"memory_bytes": 7000 * MIB, "memory_limit_bytes": None}
    table = Variable(name="ids", shape=(64 * MIB, 16), sparse=True, slots=2)
    known = plan((table,), servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)
    (cause,) = found(slots_memory, recording(roomy, plan=known))
    assert (cause.severity, cause.changes) == (Severity.INFO, ())
    assert cause.what == "59% of the memory of ps-0 are slots of the optimizer: 4.0 GiB."


def test_of_servers_with_room_the_one_with_the_most_slots_is_named() -> None:
    tables = [
        Variable(name=name, shape=(rows * MIB, 16), sparse=True, slots=2)
        for name, rows in (("few", 64), ("many", 128))
    ]
    whole = RowPartitioning(strategy=CutStrategy.FIXED, shards=1)
    known = plan(tuple(tables), servers=2, cut=whole, rule=PlacementRule.ROUND_ROBIN)
    servers = {
        "ps-0": SERVER | {"memory_bytes": 16_384 * MIB, "memory_limit_bytes": None},
        "ps-1": SERVER | {"memory_bytes": 32_768 * MIB, "memory_limit_bytes": 65_536 * MIB},
    }
    (cause,) = found(slots_memory, cases.recording({**servers, "worker-0": WORKER}, plan=known))
    assert cause.what == "50% of the memory of ps-1 are slots of the optimizer: 16.0 GiB."


def test_the_table_is_one_of_the_server_that_is_named() -> None:
    tables = [
        Variable(name=name, shape=(rows * MIB, 16), sparse=True, slots=2)
        for name, rows in (("large", 64), ("near", 8))
    ]
    whole = RowPartitioning(strategy=CutStrategy.FIXED, shards=1)
    known = plan(tuple(tables), servers=2, cut=whole, rule=PlacementRule.ROUND_ROBIN)
    servers = {
        "ps-0": SERVER | {"memory_bytes": 16_384 * MIB, "memory_limit_bytes": 65_536 * MIB},
        "ps-1": SERVER | {"memory_bytes": 1_900 * MIB, "memory_limit_bytes": 2_048 * MIB},
    }
    (cause,) = found(slots_memory, cases.recording({**servers, "worker-0": WORKER}, plan=known))
    assert cause.subjects == ("ps-1", "near")
    assert "of near there are 1.0 GiB of slots" in cause.evidence[1].text


@pytest.mark.parametrize(
    ("server", "slots"),
    [
        pytest.param({}, 0, id="no slots"),
        pytest.param({}, 1, id="as much is no slots"),
        pytest.param({"memory_limit_bytes": 4096 * MIB}, 2, id="there is room"),
        pytest.param({"memory_bytes": 2040 * MIB, "memory_limit_bytes": 2048 * MIB}, 1, id="something else"),
        pytest.param({"memory_limit_bytes": None}, 2, id="no limit"),
        pytest.param({"memory_bytes": 1638 * MIB - 16 * MIB}, 2, id="not quite near"),
    ],
)
def test_its_likes_are_not_it(server: dict[str, Any], slots: int) -> None:
    assert not found(slots_memory, recording(server, slots=slots))


def test_without_sizes_or_memory_it_is_not_judged() -> None:
    assert slots_memory.lacks(Case.of(recording(plan=None)))
    loads: dict[str, dict[str, Any]] = {"ps-0": {}, "worker-0": {}}
    assert slots_memory.lacks(Case.of(cases.recording(loads)))
