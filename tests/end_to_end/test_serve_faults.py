"""A server whose process, database or disk fails while jobs are submitted to it; the benchmark has more."""

from __future__ import annotations

import random

import pytest
from support import nights, server_faults
from support.prerequisites import NotHere


@pytest.mark.slow
@pytest.mark.parametrize("name", nights.but(server_faults.SCENES, often=("server", "database")))
def test_no_submit_is_lost_and_none_made_twice(name: str) -> None:
    try:
        row = server_faults.SCENES[name](random.Random(4))
    except NotHere as error:
        pytest.skip(str(error))
    assert row["answered"] > 0
    assert row["wrong"] == []
    assert {row[each] for each in ("lost", "doubled", "unattended", "unaudited")} == {0}
