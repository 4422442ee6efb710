import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.variables import saved_plans
from paceline.model.variables.row_layouts import RowOrder
from paceline.model.variables.variable_plans import CutStrategy, PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable

VARIABLES = (
    Variable(name="t", shape=(100, 4), sparse=True, slots=2, step_bytes=1000.0, row_shares=(0.7, 0.3)),
    Variable(name="w", shape=(64, 32), step_bytes=16384.0),
    Variable(name="b", shape=()),
)
PLANS = st.builds(
    lambda servers, cut, rule: plan(VARIABLES, servers=servers, cut=cut, rule=rule),
    st.integers(1, 5),
    st.builds(
        RowPartitioning,
        strategy=st.sampled_from(CutStrategy),
        min_shard_bytes=st.none() | st.integers(1, 10_000),
        order=st.sampled_from(RowOrder),
    ),
    st.sampled_from([PlacementRule.ROUND_ROBIN, PlacementRule.GREEDY, PlacementRule.BALANCED]),
)
PLAN = plan(VARIABLES, servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)


@settings(deadline=None)
@given(PLANS)
def test_what_is_written_is_read_back(made):
    assert saved_plans.read(json.loads(json.dumps(saved_plans.write(made)))) == made


def test_what_a_replica_is_given_has_no_traffic():
    lean = saved_plans.write(PLAN, traffic=False)
    assert "step_bytes" not in json.dumps(lean)
    again = saved_plans.read(lean)
    assert [(s.name, s.server, s.rows) for s in again.shards] == [
        (s.name, s.server, s.rows) for s in PLAN.shards
    ]
    assert again.step_bytes() is None


def changed(key, value, variable=None):
    document = saved_plans.write(PLAN)
    where = document if variable is None else document["variables"][variable]
    if value is None:
        del where[key]
    else:
        where[key] = value
    return document


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "the plan: a mapping is wanted"),
        (changed("kind", "Other"), "apiVersion and kind are not"),
        (changed("kind", None), "the plan has no 'kind'"),
        (changed("servers", 0), "servers: a whole number of at least 1 is wanted, not 0"),
        (changed("servers", True), "servers: a whole number"),
        (changed("variables", {}), "variables: a list is wanted"),
        (changed("shape", [0], 1), r"variables\[1\].shape: a whole number of at least 1"),
        (changed("rows", "mixed", 0), r"variables\[0\].rows: one of contiguous, strided, hashed"),
        (changed("ps", [0, 2], 0), r"variables\[0\].ps: there is no ps 2, as the plan has 2"),
        (changed("ps", [], 0), r"variables\[0\].ps: 100 rows cannot be cut into 0 shards"),
        (changed("name", "t", 1), r"variables\[1\]: there is a variable 't' already"),
        (changed("nmae", "t", 1), r"variables\[1\] has an unknown key 'nmae'"),
        (changed("step_bytes", -1, 1), r"variables\[1\].step_bytes: a number of at least 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(document, message):
    with pytest.raises(ValueError, match=message):
        saved_plans.read(document)
