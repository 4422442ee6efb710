"""A server whose process, database or disk fails while jobs are submitted to it; the benchmark has more."""

from __future__ import annotations

import random

import pytest
from support import server_faults
from support.prerequisites import NotHere


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("server", "database") else pytest.mark.nightly)
        for name in server_faults.SCENES
    ],
)
def test_no_submit_is_lost_and_none_made_twice(name: str) -> None:
    try:
        row = server_faults.SCENES[name](random.Random(4))
    except NotHere as error:
        pytest.skip(str(error))
    assert row["answered"] > 0
    assert row["wrong"] == []
    assert {row[each] for each in ("lost", "doubled", "unattended", "unaudited")} == {0}
