import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.variables.plan_comparisons import differences, fitted
from paceline.model.variables.row_layouts import RowOrder
from paceline.model.variables.variable_plans import CutStrategy, PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable

TABLE = Variable(name="table", shape=(60, 4), sparse=True, slots=1)
KERNEL = Variable(name="kernel", shape=(64, 32))


def made(*variables, servers, shards=None, order=RowOrder.HASHED, rule=PlacementRule.ROUND_ROBIN):
    cut = RowPartitioning(strategy=CutStrategy.FIXED, shards=shards, order=order)
    return plan(variables, servers=servers, cut=cut, rule=rule)


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.sampled_from(RowOrder))
def test_the_bytes_that_move_are_those_of_rows_on_another_server(servers, others, shards, cut, order):
    before, after = (
        made(TABLE, servers=n, shards=k, order=order) for n, k in ((servers, shards), (others, cut))
    )
    found = differences(before, after)
    rows = sum(
        before.of("table")[before.shards[0].layout.locate(row)[0]].server
        != after.of("table")[after.shards[0].layout.locate(row)[0]].server
        for row in range(TABLE.rows)
    )
    for each in found:
        all_bytes = TABLE.memory_bytes
        assert each.moved_bytes == (all_bytes if each.is_reordered else rows * TABLE.row_bytes * 2)
    if not found:
        assert rows == 0


def test_what_lies_as_before_is_no_difference():
    assert differences(made(TABLE, KERNEL, servers=2), made(TABLE, KERNEL, servers=2)) == ()
    (one,) = differences(made(KERNEL, TABLE, servers=2), made(TABLE, KERNEL, servers=2))
    assert one.variable == "table"
    assert one.moved_bytes == 60 * 4 * 4 * 2


def test_other_variables_are_told_without_bytes():
    bigger = dataclasses.replace(TABLE, shape=(120, 4))
    found = differences(made(TABLE, servers=1), made(bigger, KERNEL, servers=1))
    assert [(one.variable, len(one.before), len(one.after), one.moved_bytes) for one in found] == [
        ("table", 1, 1, None),
        ("kernel", 0, 1, None),
    ]


def test_a_plan_takes_the_variables_as_they_are_known_now():
    slotted = dataclasses.replace(TABLE, slots=2, step_bytes=10.0)
    again = fitted(made(KERNEL, TABLE, servers=2), [slotted, KERNEL], 2)
    assert again.variables == (slotted, KERNEL)
    assert [shard.server for shard in again.of("table")] == [1, 0]


@pytest.mark.parametrize(
    ("variables", "servers", "message"),
    [
        ([TABLE, KERNEL], 3, "it is for 2 ps, and there are 3"),
        ([TABLE], 2, "it has a variable 'kernel' that the model lacks"),
        ([TABLE, KERNEL, Variable(name="bias", shape=(3,))], 2, "it lacks the variable 'bias'"),
        (
            [dataclasses.replace(TABLE, shape=(9, 4)), KERNEL],
            2,
            r"'table' has the shape \[60, 4\] in it, not \[9, 4\]",
        ),
        ([dataclasses.replace(TABLE, sparse=False), KERNEL], 2, "'table' is a table in it"),
    ],
)
def test_a_plan_that_does_not_fit_says_why(variables, servers, message):
    with pytest.raises(ValueError, match=message):
        fitted(made(TABLE, KERNEL, servers=2), variables, servers)
