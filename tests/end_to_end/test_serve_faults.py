"""A server whose process, database or disk fails while jobs are submitted to it; the benchmark has more."""

from __future__ import annotations

import random

import pytest

from benchmarks import serve_faults
from benchmarks.protocols import NotHere


@pytest.mark.slow
@pytest.mark.parametrize("name", serve_faults.SCENES)
def test_no_submit_is_lost_and_none_made_twice(name: str) -> None:
    try:
        row = serve_faults.SCENES[name](random.Random(4))
    except NotHere as error:
        pytest.skip(str(error))
    assert row["answered"] > 0
    assert row["wrong"] == []
    assert {row[each] for each in ("lost", "doubled", "unattended", "unaudited")} == {0}
