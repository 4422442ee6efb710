"""Measurements on a grid: nothing is lost, nothing is made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.measured_runs import START, recording, replica, report, sample

from paceline.model import grids
from paceline.model.measures.recordings import Recording
from paceline.model.roles import Role
from paceline.surfaces.reports import series, texts

WORKER = replica(Role.WORKER, 0)
GRID = grids.Grid(START, 1.0, 4)


def test_a_count_is_spread_over_the_cells_of_its_interval() -> None:
    reports = [report(WORKER, 2.5, interval_seconds=2.0, examples=200)]
    assert series.mean_over(GRID, reports, lambda r: r.examples, rate=True) == (100, 100, 100, None)


def test_a_level_is_weighted_by_time() -> None:
    samples = [
        sample(WORKER, 0.25, interval_seconds=0.25, cpu_cores=4.0),
        sample(WORKER, 1.0, interval_seconds=0.75, cpu_cores=0.0),
        sample(WORKER, 2.0),
    ]
    assert series.mean_over(GRID, samples, lambda s: s.cpu_cores) == (1.0, None, None, None)


def test_an_instant_without_an_interval_is_a_level_but_no_rate() -> None:
    reports = [report(WORKER, 1.5, interval_seconds=None, loss=0.5, examples=10)]
    assert series.mean_over(GRID, reports, lambda r: r.loss) == (None, 0.5, None, None)
    assert series.mean_over(GRID, reports, lambda r: r.examples, rate=True) == (None,) * 4


def test_a_grid_has_no_more_cells_than_measurements_or_the_limit() -> None:
    short, long = series.grid(recording(seconds=10)), series.grid(recording(seconds=500))
    assert short is not None
    assert long is not None
    assert (short.cells, short.cell_seconds) == (29, 1.0)
    assert long.cells == series.MAX_CELLS
    assert long.seconds == pytest.approx(519)
    assert series.grid(Recording(run=recording().run, at=START)) is None


def test_few_lines_stay_lines_and_many_become_bands() -> None:
    lines = [series.ReplicaSeries(replica=replica(Role.PS, i), values=(1.0,)) for i in range(2)]
    lines += [
        series.ReplicaSeries(replica=replica(Role.WORKER, i), values=(float(i), None)) for i in range(9)
    ]
    picture = series.picture(lines)
    assert picture.lines == tuple(lines[:2])
    (band,) = picture.bands
    assert (band.role, band.count, band.highest.replica.index) == (Role.WORKER, 9, 8)
    assert (band.low[0], band.median[0], band.high[0]) == (0, 4, 8)
    assert band.low[1] is None
    assert series.picture(lines[:8]).bands == ()


@given(st.lists(st.tuples(st.floats(0, 4), st.floats(0.01, 4), st.integers(0, 10**6)), max_size=8))
def test_rates_lie_between_the_lowest_and_the_highest(items: list[tuple[float, float, int]]) -> None:
    reports = [report(WORKER, at, interval_seconds=span, examples=count) for at, span, count in items]
    rates = [count / span for _, span, count in items]
    for value in series.known_values(series.mean_over(GRID, reports, lambda r: r.examples, rate=True)):
        assert min(rates) * (1 - 1e-6) <= value <= max(rates) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (34412.3, "34 400"), (12.34, "12.3"), (0.0421, "0.0421"), (0, "0"), (None, "not measured"),
        (1, "1.00"), (999.7, "1 000"), (float("nan"), "not measured"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits_that_count(value: float | None, text: str) -> None:
    assert texts.number(value) == text
