"""Traces as columns and back."""

import dataclasses
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model import outside
from paceline.model.traces import trace_tables, traced_steps
from paceline.model.traces.traced_steps import Trace

PLAIN = st.floats(allow_nan=False, allow_infinity=False)
MOMENTS = st.floats(0, outside.LATEST, exclude_max=True)
KINDS = {
    str: st.text(max_size=9),
    int: st.integers(-(2**62), 2**62),
    float: PLAIN,
    traced_steps.Direction: st.sampled_from(traced_steps.Direction),
}


def values(kind):
    fields = {}
    for name, hint in typing.get_type_hints(kind).items():
        options = typing.get_args(hint) or (hint,)
        own = MOMENTS if name.endswith("_at") else KINDS[options[0]]
        fields[name] = own | (st.none() if len(options) == 2 else st.nothing())
    return st.lists(st.builds(kind, **fields), max_size=3).map(tuple)


TRACES = st.builds(
    Trace,
    trainer=st.text(max_size=9),
    attempt=st.integers(1, 99),
    at=MOMENTS,
    untraced_step_microseconds=st.none() | PLAIN,
    splits=values(traced_steps.Split),
    transfers=values(traced_steps.Transfer),
    operations=values(traced_steps.Operation),
    events=values(traced_steps.Event),
    clocks=values(traced_steps.ClockOffset),
)


@given(TRACES)
def test_a_trace_survives(trace):
    found, labels = trace_tables.columns(trace), trace_tables.labels(trace)
    assert len({len(column) for column in found.values()}) == 1
    assert trace_tables.trace(found, labels) == trace


def test_columns_say_their_units():
    fields = {field.name for field in dataclasses.fields(traced_steps.Split)} - {"step", "start_at"}
    assert all(name.endswith("_microseconds") for name in fields)


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(
    TRACES,
    st.sampled_from([*trace_tables.COLUMNS, None]),
    st.lists(ANYTHING, max_size=9),
    st.sampled_from(["version", "trainer", "attempt", "at", "untraced_step_microseconds", None]),
    st.text(max_size=4),
)
def test_what_is_corrupt_is_refused_as_such(trace, column, cells, label, text):
    found, labels = trace_tables.columns(trace), trace_tables.labels(trace)
    if column is not None:
        found[column] = cells
    if label is not None:
        labels[label] = text
    try:
        read = trace_tables.trace(found, labels)
    except ValueError:
        return
    assert trace_tables.trace(trace_tables.columns(read), trace_tables.labels(read)) == read


def test_another_version_is_refused_with_its_number():
    trace = Trace(trainer="worker-0", attempt=1, at=1.0)
    labels = trace_tables.labels(trace) | {"version": "2"}
    with pytest.raises(ValueError, match="version '2'"):
        trace_tables.trace(trace_tables.columns(trace), labels)


def test_names_sort_by_time_and_nothing_else_is_one():
    names = [traced_steps.name_at(at) for at in (0.0, 0.5, 59.999, 1e9, 1e9 + 0.001)]
    assert names == sorted(names)
    assert all(traced_steps.is_name(name) for name in names)
    assert not any(traced_steps.is_name(text) for text in ("", "request", "../x", names[0] + "/.."))


@pytest.mark.parametrize("at", ["nan", "inf", "-1.0", "1.8e12"])
def test_what_is_no_time_is_no_trace(at):
    trace = Trace(trainer="worker-0", attempt=1, at=1.0)
    labels = trace_tables.labels(trace) | {"at": at}
    with pytest.raises(ValueError, match="no time"):
        trace_tables.trace(trace_tables.columns(trace), labels)
