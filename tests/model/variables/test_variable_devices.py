"""Where TensorFlow has the parts of variables."""

from __future__ import annotations

import pytest

from paceline.model.variables import variable_devices
from paceline.model.variables.variable_plans import PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("/job:ps/task:3", 3),
        ("/job:ps/replica:0/task:1/device:CPU:0", 1),
        ("/job:ps", 0),
        ("/job:worker/task:1", None),
        ("/job:psx/task:1", None),
        ("unplaced", None),
        ("", None),
    ],
)
def test_a_device_names_a_server_or_none(device: str, expected: int | None) -> None:
    assert variable_devices.server(device) == expected


def test_parts_are_where_their_devices_say() -> None:
    cut = Variable(
        name="ids", shape=(100, 4), sparse=True,
        devices=("/job:ps/task:1", "/job:ps/task:0", "/job:ps/task:1"),
    )  # fmt: skip
    lost = Variable(name="bias", shape=(), devices=("unplaced",))
    asked = plan((cut, lost), servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED)
    placed = variable_devices.placed(asked)
    assert [(shard.name, shard.server, shard.rows) for shard in placed.shards] == [
        ("ids/0", 1, 34), ("ids/1", 0, 33), ("ids/2", 1, 33),
    ]  # fmt: skip
    assert variable_devices.elsewhere(asked.variables) == (lost,)


def test_without_devices_the_plan_is_what_there_is() -> None:
    asked = plan(
        (Variable(name="a", shape=(4,)),), servers=2, cut=RowPartitioning(), rule=PlacementRule.BALANCED
    )
    assert variable_devices.placed(asked) is asked
