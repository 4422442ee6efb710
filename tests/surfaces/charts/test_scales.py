"""Where values stand on an axis, and which are written beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.surfaces.charts import scales


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.0, 12.0, ["0.0", "2.5", "5.0", "7.5", "10.0"]),
        (0.452, 0.541, ["0.46", "0.48", "0.50", "0.52", "0.54"]),
        (0.0, 41_000.0, ["0", "10\N{NO-BREAK SPACE}000", "20\N{NO-BREAK SPACE}000",
                         "30\N{NO-BREAK SPACE}000", "40\N{NO-BREAK SPACE}000"]),
        (-10.0, 10.0, ["-10", "-5", "0", "5", "10"]),
    ],
)  # fmt: skip
def test_ticks_are_round_and_told_apart(low: float, high: float, expected: list[str]) -> None:
    assert [text for _, text in scales.between(low, high).ticks] == expected


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_a_scale_of_any_values_has_ticks_within_and_no_two_alike(one: float, other: float) -> None:
    scale = scales.between(min(one, other), max(one, other))
    assert scale.low < scale.high
    room = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - room <= at <= scale.high + room for at, _ in scale.ticks)
    assert len(scale.ticks) <= 8
    assert len({text for _, text in scale.ticks}) == len(scale.ticks)


def test_rows_go_down_and_the_ends_hold_what_lies_beyond() -> None:
    rows = scales.rows(["first", "second"])
    assert [rows.part(at) for at, _ in rows.ticks] == [0.75, 0.25]
    assert (rows.part(-5.0), rows.part(7.0)) == (1.0, 0.0)


def test_axes_of_time_and_bytes_have_their_units() -> None:
    assert scales.since_start(600.0)[1].name == "Time since the start (s)"
    time, hours = scales.since_start(86_400.0)
    assert (time, hours.high, hours.name) == (3600.0, 24.0, "Time since the start (h)")
    assert scales.since_start(3_600.0)[1].high == 60.0
    assert [scales.of_bytes(each)[1] for each in (0.0, 2e3, 2e6, 3e9)] == ["B", "KiB", "MiB", "GiB"]
