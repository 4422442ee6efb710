"""Pages of runs, in each kind of database: what `model.jobs.run_queries` says of runs that are at hand."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import SHARED_FIXTURES, examples

from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.run_queries import Cursor, Order, RunQuery, page
from paceline.model.jobs.selectors import parse
from paceline.model.jobs.statuses import JobPhase

LABELS = ({}, {"team": "ads"}, {"team": "search", "stage": "test"}, {"stage": "Ads_1"})
WORDS = ("", "a", "ADS", "job-1", "_", "%", "ads_", "train", "ps1", "busy", "1 Net")
MODELS = ("", "train-9fbe4685", "train")
CODES = ("", "PS101", "PS1", "NET1", "101")
SELECTORS = ("", "team=ads", "team!=ads", "stage", "!stage", "team in (ads, search),stage notin (test)")
FLOATS = st.none() | st.sampled_from([0.0, 0.1, 1.5, 1e300])

queries = st.builds(
    RunQuery,
    phases=st.none() | st.lists(st.sampled_from(JobPhase), max_size=2).map(tuple),
    search=st.sampled_from(WORDS),
    model=st.sampled_from(MODELS),
    finding=st.sampled_from(CODES),
    selector=st.sampled_from(SELECTORS).map(parse),
    since=FLOATS,
    until=FLOATS,
    order=st.sampled_from(Order),
    descending=st.booleans(),
    limit=st.integers(1, 4),
)


@pytest.fixture
def listed(store, make_run):
    """A store with a dozen runs that differ in all that a list may ask for."""
    for number in range(12):
        name = ("job", "Job", "ads", "jöb")[number % 4] + f"-{number}"
        run, state = make_run(name, ps=1, workers=1, at=(0.0, 0.1, 1.5)[number % 3])
        command = ("python", ("train.py", "other.py")[number % 2])
        spec = dataclasses.replace(run.spec, labels=LABELS[number % 4], command=command)
        phase = (JobPhase.RUNNING, JobPhase.SUCCEEDED)[number % 2]
        store.create_run(dataclasses.replace(run, spec=spec), state)
        store.save_state(name, dataclasses.replace(state, phase=phase, spec=spec), at=float(number // 5))
        if number % 3:
            summary = DiagnosisSummary(
                at=1.0, examples_per_second=float(number // 4), trend=(1.0, None),
                codes=("PS101", "NET1")[: number % 3], finding="ps-0 is busy" if number % 2 else None,
            )  # fmt: skip
            store.save_diagnosis(name, summary)
    return store


@settings(max_examples=examples(150), suppress_health_check=SHARED_FIXTURES)
@given(query=queries)
def test_a_page_is_what_the_model_says(listed, query):
    everything = [
        dataclasses.replace(run, diagnosis=listed.diagnosis(run.name)) for run in listed.list_runs()
    ]
    after: Cursor | None = None
    for _ in range(15):
        wanted = dataclasses.replace(query, after=after)
        found = listed.run_page(wanted)
        assert found == page(everything, wanted)
        after = found.after
        if after is None:
            return
    raise AssertionError("pages do not end")


def test_a_page_is_of_one_engine(listed):
    assert listed.run_page(RunQuery(), engine="local").total == 12
    assert listed.run_page(RunQuery(), engine="kubernetes").total == 0


def test_the_last_diagnosis_counts(filled):
    assert filled.diagnosis("demo") is None
    filled.save_diagnosis("demo", DiagnosisSummary(at=1.0, progress=0.5))
    last = DiagnosisSummary(
        at=2.0, examples_per_second=10.5, trend=(1.0, None, 2.5), progress=0.5, eta_seconds=60.0,
        imbalance=2.5, code="PS001", severity=Severity.ERROR, finding="ps-0 is full", used_cores=3.5,
        auc=0.75, log_loss=float("inf"), codes=("PS001", "NET002"),
    )  # fmt: skip
    filled.save_diagnosis("demo", last)
    assert filled.diagnosis("demo") == last
    assert filled.run_page(RunQuery()).runs[0].diagnosis == last
