"""Pages of lists of runs, from runs that are at hand."""

from __future__ import annotations

import base64
import contextlib
import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.jobs.run_queries import MOST_RUNS, Cursor, Order, RunQuery, page
from paceline.model.jobs.runs import RunSummary
from paceline.model.jobs.selectors import parse
from paceline.model.jobs.statuses import JobPhase


def summary(name: str, at: float, speed: float | None = None, **labels: str) -> RunSummary:
    return RunSummary(
        name=name, phase=JobPhase.RUNNING, message="", engine="local", directory="/runs", submitted_at=at,
        started_at=None, finished_at=None, ttl_after_finished_seconds=None, replicas="", labels=labels,
        diagnosis=None if speed is None else DiagnosisSummary(at=at, examples_per_second=speed),
    )  # fmt: skip


RUNS = [
    summary("clicks", 3.0, 20.0, team="ads"),
    summary("census", 1.0, team="search"),
    summary("clicks-2", 2.0, 30.0, team="ads", stage="test"),
    summary("wide", 2.0),
]


def names(query: RunQuery) -> list[str]:
    return [run.name for run in page(RUNS, query).runs]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (RunQuery(), ["clicks", "wide", "clicks-2", "census"]),
        (RunQuery(descending=False), ["census", "clicks-2", "wide", "clicks"]),
        (RunQuery(order=Order.NAME, descending=False), ["census", "clicks", "clicks-2", "wide"]),
        (RunQuery(order=Order.SPEED), ["clicks-2", "clicks", "wide", "census"]),
        (RunQuery(order=Order.SPEED, descending=False), ["clicks", "clicks-2", "census", "wide"]),
        (RunQuery(search="CLICK"), ["clicks", "clicks-2"]),
        (RunQuery(search="sear"), ["census"]),
        (RunQuery(selector=parse("team=ads,!stage")), ["clicks"]),
        (RunQuery(since=2.0, until=3.0), ["wide", "clicks-2"]),
        (RunQuery(phases=(JobPhase.FAILED,)), []),
    ],
)
def test_runs_are_chosen_and_sorted(query: RunQuery, expected: list[str]) -> None:
    assert names(query) == expected


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("descending", [True, False])
def test_pages_together_are_the_whole_list(order: Order, descending: bool) -> None:
    query = RunQuery(order=order, descending=descending)
    found: list[RunSummary] = []
    after = None
    while True:
        part = page(RUNS, dataclasses.replace(query, limit=1, after=after))
        assert part.total == len(RUNS)
        found += part.runs
        if part.after is None:
            break
        after = Cursor.parse(str(part.after))
    assert tuple(found) == page(RUNS, query).runs


def test_a_page_goes_on_though_its_last_run_is_gone() -> None:
    after = page(RUNS, RunQuery(limit=2)).after
    rest = page([run for run in RUNS if run.name != "wide"], RunQuery(after=after))
    assert [run.name for run in rest.runs] == ["clicks-2", "census"]


@given(st.none() | st.text() | st.floats(allow_nan=False, allow_infinity=False), st.text())
def test_a_cursor_is_read_as_it_was_written(value: float | str | None, name: str) -> None:
    assert Cursor.parse(str(Cursor(value, name))) == Cursor(value, name)


@given(st.text() | st.text(alphabet="WzEuMCwieCJdbnVs0"))
@example(base64.urlsafe_b64encode(b'[1%s,"a"]' % (b"0" * 400)).decode())
@example(base64.urlsafe_b64encode(b'[1%s,"a"]' % (b"0" * 9_000)).decode())
@example(base64.urlsafe_b64encode(b"[" * 100_000).decode())
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(Cursor.parse(text).name, str)


@pytest.mark.parametrize("limit", [0, -1, MOST_RUNS + 1])
def test_a_page_has_a_size(limit: int) -> None:
    with pytest.raises(ValueError, match="a page has 1 to 500 jobs"):
        RunQuery(limit=limit)


def test_a_page_follows_one_that_was_sorted_alike() -> None:
    with pytest.raises(ValueError, match="not sorted by name"):
        RunQuery(order=Order.NAME, after=Cursor(1.0, "clicks"))
