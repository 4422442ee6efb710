"""Facts of scripts as texts, and which of them hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.jobs.runs import JobEvent, ReplicaRow
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures import script_facts
from paceline.model.measures.script_facts import Name
from paceline.model.roles import ReplicaId

WORKER = ReplicaId.parse("worker-0")


@given(value=st.booleans() | st.floats(0, 1e15))
def test_what_was_written_is_read_back(value: bool | float) -> None:
    name = Name.DEVICE_FILTERS if isinstance(value, bool) else Name.RECOVERY_WAIT_SECONDS
    text = script_facts.text(name, value)
    assert script_facts.of_text(text) == (name, pytest.approx(value, rel=1e-3))


@pytest.mark.parametrize(
    ("value", "text"),
    [(30, "30"), (29.75, "29.75"), (5.03539823009, "5.035"), (21504.0, "21504"), (123456789.6, "123456790")],
)
def test_an_amount_has_no_more_digits_than_a_reader_wants(value: float, text: str) -> None:
    assert script_facts.text(Name.FEEDS_BYTES_PER_STEP, value) == f"feeds_bytes_per_step: {text}"


@pytest.mark.parametrize("text", ["", "device_filters", "device_filters: maybe", "unknown: yes", "a: b: c"])
def test_what_is_no_fact_is_none(text: str) -> None:
    assert script_facts.of_text(text) is None


def test_every_fact_has_a_type() -> None:
    assert set(script_facts._TYPES) == set(Name)


def test_the_last_word_of_the_last_attempt_holds() -> None:
    row = ReplicaRow(replica=WORKER, phase=ReplicaPhase.RUNNING, attempt=2, restarts=1)
    said = [(2, "device_filters: yes"), (2, "device_filters: no"), (1, "recovery_wait_seconds: 30")]
    events = [
        JobEvent(at=number, kind="fact", message=text, replica=WORKER, attempt=attempt)
        for number, (attempt, text) in enumerate(said)
    ]
    found = script_facts.of_replicas(
        [row], [*events, JobEvent(at=9, kind="note", message="device_filters: yes")]
    )
    assert found == {WORKER: {Name.DEVICE_FILTERS: script_facts.Fact(value=False, at=1)}}
