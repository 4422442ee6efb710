"""A server whose process, database or disk fails while jobs are submitted to it; the benchmark has more."""

from __future__ import annotations

import random

import pytest
from support import nights, prerequisites, server_faults


@pytest.mark.slow
@pytest.mark.parametrize("name", nights.but(server_faults.SCENES, often=("server", "database")))
def test_no_submit_is_lost_and_none_made_twice(name: str) -> None:
    with prerequisites.skipping():
        row = server_faults.SCENES[name](random.Random(4))
    assert row["answered"] > 0
    assert row["wrong"] == []
    assert {row[each] for each in ("lost", "doubled", "unattended", "unaudited")} == {0}
