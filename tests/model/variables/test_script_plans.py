"""Where the variables of a script that is seen would be in another job."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from paceline.model.variables import script_plans
from paceline.model.variables.script_plans import PlacementRequest
from paceline.model.variables.variable_plans import CutStrategy, PlacementRule, Plan, RowPartitioning, plan
from paceline.model.variables.variables import Variable

FIXED = {"partitioning": {"strategy": "fixed"}}
GREEDY = {"variable_placement": "greedy"}
UNIQUE = {"unique_ids": True}
#: Of its rows the first quarter is hot; ids repeat ten times.
TABLE = Variable(
    name="ids", shape=(100_000, 8), sparse=True, slots=2, step_bytes=1000 * (64.0 + 4), rows_used=100.0,
    row_shares=(0.7, 0.1, 0.1, 0.1), devices=("/job:ps/task:0",),
)  # fmt: skip
KERNEL = Variable(name="kernel", shape=(8, 4), step_bytes=256.0, devices=("/job:ps/task:1",))
BIAS = Variable(name="bias", shape=(4,), step_bytes=32.0, devices=("/job:ps/task:0",))


def seen(*variables: Variable, servers: int = 2) -> Plan:
    """What a recording has: the plan that the job file would make, which the script does not obey."""
    return plan(variables, servers=servers, cut=RowPartitioning(), rule=PlacementRule.BALANCED)


def placed(found: Plan) -> list[tuple[str, int]]:
    return [(shard.name, shard.server) for shard in found.shards]


def moved(found: Plan, servers: int = 2, before: Any = None, **after: Any) -> Plan:
    return script_plans.moved(
        found,
        PlacementRequest(servers=found.servers, training=before or {}),
        PlacementRequest(servers=servers, training=after),
    )


def test_what_no_change_moves_stays_where_it_is() -> None:
    now = moved(seen(TABLE, KERNEL, BIAS))
    assert placed(now) == [("ids", 0), ("kernel", 1), ("bias", 0)]
    assert now.step_bytes() == (68_032.0, 256.0)
    # What no cure knows moves nothing either.
    assert moved(seen(TABLE, KERNEL, BIAS), variable_placement="round-robin") == now


def test_more_servers_get_them_in_turn() -> None:
    assert placed(moved(seen(TABLE, KERNEL, BIAS), servers=3)) == [("ids", 0), ("kernel", 1), ("bias", 2)]
    alone = [dataclasses.replace(each, devices=("/job:ps/task:0",)) for each in (TABLE, KERNEL, BIAS)]
    assert placed(moved(seen(*alone, servers=1), servers=2)) == [("ids", 0), ("kernel", 1), ("bias", 0)]


def test_a_variable_that_is_not_trained_may_have_its_place_between() -> None:
    later = dataclasses.replace(KERNEL, devices=("/job:ps/task:0",))
    bias = dataclasses.replace(BIAS, devices=("/job:ps/task:1",))
    assert placed(moved(seen(TABLE, later, bias), servers=4)) == [("ids", 0), ("kernel", 2), ("bias", 3)]


def test_a_way_of_its_own_is_not_foretold() -> None:
    all_on_one = [dataclasses.replace(each, devices=("/job:ps/task:0",)) for each in (TABLE, KERNEL, BIAS)]
    with pytest.raises(ValueError, match="not give its own to servers in turn"):
        moved(seen(*all_on_one), servers=3)
    # By size they go wherever the script had them.
    assert placed(moved(seen(*all_on_one), **GREEDY)) == [("ids", 0), ("kernel", 1), ("bias", 1)]


def test_a_table_is_cut_into_ranges_of_which_one_is_hot() -> None:
    cut = moved(seen(TABLE, KERNEL, BIAS), **FIXED)
    assert placed(cut) == [("ids/0", 0), ("ids/1", 1), ("kernel", 0), ("bias", 1)]
    assert cut.step_bytes() == pytest.approx((0.8 * 68_000 + 256, 0.2 * 68_000 + 32))
    # Small ones, and those that are no tables, stay whole; so does what the job that was measured had whole.
    assert placed(moved(seen(TABLE), before=FIXED, **FIXED, **GREEDY)) == [("ids", 0)]


def test_by_size_slots_do_not_count_and_a_saved_plan_goes_first() -> None:
    large = dataclasses.replace(KERNEL, shape=(1000, 700), devices=("/job:ps/task:1",))
    second = dataclasses.replace(BIAS, name="second")
    assert placed(moved(seen(TABLE, large, BIAS, second), **GREEDY)) == [
        ("ids", 0), ("kernel", 1), ("bias", 1), ("second", 1),
    ]  # fmt: skip
    asked = PlacementRequest(servers=2, planned={"ids": 1})
    found = script_plans.moved(seen(TABLE, KERNEL), PlacementRequest(servers=2), asked)
    assert placed(found) == [("ids", 1), ("kernel", 0)]


def test_what_the_script_cuts_itself_is_known_for_as_many_servers_alone() -> None:
    cut = dataclasses.replace(TABLE, devices=("/job:ps/task:0", "/job:ps/task:1"))
    assert placed(moved(seen(cut, BIAS), **GREEDY)) == [("ids/0", 0), ("ids/1", 1), ("bias", 0)]
    with pytest.raises(ValueError, match="the script cuts ids by itself"):
        moved(seen(cut, BIAS), servers=3)
    # What the cure cuts it cuts anew.
    three = moved(seen(cut, BIAS), servers=3, before=FIXED, **FIXED)
    assert [name for name, _ in placed(three)] == ["ids/0", "ids/1", "ids/2", "bias"]


def test_unique_ids_move_each_row_once() -> None:
    found = moved(seen(TABLE, KERNEL), **UNIQUE)
    assert found.step_bytes() == (100 * (64 + 8), 256.0)
    distinct = dataclasses.replace(TABLE, rows_used=1000.0)
    assert moved(seen(distinct, KERNEL), **UNIQUE).step_bytes() == (68_000.0, 256.0)
    unknown = dataclasses.replace(TABLE, rows_used=None)
    assert script_plans.kept_share(unknown) is None
    assert moved(seen(unknown, KERNEL), **UNIQUE).step_bytes() == (68_000.0, 256.0)


def test_what_was_not_counted_of_unique_ids_is_said() -> None:
    with pytest.raises(ValueError, match="distinct rows"):
        moved(seen(TABLE, KERNEL), **UNIQUE, **FIXED)
    with pytest.raises(ValueError, match="not seen while they are made unique"):
        moved(seen(TABLE, KERNEL), before=UNIQUE)


def test_variables_have_to_be_on_servers() -> None:
    lost = dataclasses.replace(TABLE, devices=("unplaced",))
    with pytest.raises(ValueError, match="no variable of the script is on a parameter server"):
        moved(seen(lost))
    with pytest.raises(ValueError, match="not known where TensorFlow has"):
        moved(seen(TABLE, dataclasses.replace(BIAS, devices=())))
    whole = plan(
        (lost, BIAS), servers=2, cut=RowPartitioning(strategy=CutStrategy.NONE), rule=PlacementRule.GREEDY
    )
    assert placed(moved(whole)) == [("bias", 0)]
