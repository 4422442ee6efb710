"""What agents write is read to the last line, and nothing else is believed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from paceline.model.measures.samples import CURRENT_ATTEMPT, Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.sources import spools
from paceline.stores import blocks
from paceline.surfaces import documents

PS0 = ReplicaId(Role.PS, 0)


def line(**record: object) -> bytes:
    return json.dumps(record).encode() + b"\n"


def read(path: Path, offset: int = 0) -> spools.SpoolReading:
    return spools.read(path, replica=PS0, attempt=1, offset=offset)


def test_a_spool_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert read(tmp_path / "spool") == spools.SpoolReading(offset=0)


def test_reading_goes_on_where_it_stopped_and_takes_whole_lines_only(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    first = line(type="sample", at=1, interval_seconds=1, cpu_cores=0.5)
    spool.write_bytes(first + b'{"type": "sample", "at"')
    reading = read(spool)
    assert reading.offset == len(first)
    assert [sample.cpu_cores for sample in reading.samples] == [0.5]
    assert reading.samples[0].memory_bytes is None
    with spool.open("ab") as file:
        file.write(b': 2, "interval_seconds": 1}\n')
    assert [sample.at for sample in read(spool, reading.offset).samples] == [2.0]


def test_each_kind_of_record_arrives_as_its_value(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(
        line(type="started", at=1, threads=2, cpu_limit_cores=1.5, notes=["no GPU"])
        + line(type="step", at=2, step=10, steps=5, examples=640, loss=0.5, total_steps=100)
        + line(type="evaluation", at=3, step=10, auc=0.8)
        + line(type="exited", at=4, kind="completed")
    )
    reading = read(spool)
    assert reading.started
    assert reading.events[0].message == "started with 2 threads on a limit of 1.5 cores; no GPU"
    assert (reading.steps[0].step, reading.steps[0].total_steps) == (10, 100)
    assert reading.evaluations[0].auc == 0.8
    assert reading.broken == 0


def test_what_the_instrumentation_says_is_an_event(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(
        line(
            type="instrumentation",
            at=5,
            source="instrumentation",
            message="TensorFlow 1.15.5",
        )
        + line(type="instrumentation", at=6, source="instrumentation", message="x" * 10**6)
        + line(type="step", at=7, source="instrumentation", steps=5)
    )
    reading = read(spool)
    first, second = reading.events
    assert (first.kind, first.at, first.message) == (
        "instrumentation", 5.0, "TensorFlow 1.15.5",
    )  # fmt: skip
    assert len(second.message) == spools.MOST_CHARACTERS
    assert reading.steps[0].steps == 5
    assert reading.broken == 0


def test_facts_of_a_script_are_events_and_what_is_no_fact_is_counted(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    good = [("device_filters", False), ("recovery_wait_seconds", 30), ("session_wait_seconds", 29.75)]
    bad = [
        ("device_filters", 1), ("device_filters", "no"), ("recovery_wait_seconds", True),
        ("recovery_wait_seconds", -1), ("recovery_wait_seconds", 10**400), ("of a later version", 1),
        (None, 1), (["device_filters"], True), ("device_filters", None),
    ]  # fmt: skip
    spool.write_bytes(
        b"".join(line(type="fact", at=5, name=name, value=value) for name, value in [*good, *bad])
    )
    reading = read(spool)
    assert [event.message for event in reading.events] == [
        "device_filters: no", "recovery_wait_seconds: 30", "session_wait_seconds: 29.75",
    ]  # fmt: skip
    assert {(event.kind, event.at) for event in reading.events} == {("fact", 5.0)}
    assert reading.broken == len(bad)


def test_a_coordinator_tells_the_steps_of_its_workers(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(
        line(type="step", at=1, steps=5, replica="worker-3")
        + line(type="step", at=2, steps=6, replica="ps-0")
        + line(type="step", at=3, steps=7)
        + line(type="step", at=4, steps=8, replica="unknown-7")
        + line(type="step", at=5, steps=8, replica=["worker-0"])
    )
    reading = read(spool)
    told = [(str(each.replica), each.attempt, each.steps) for each in reading.steps]
    assert told == [("worker-3", CURRENT_ATTEMPT, 5), ("ps-0", 1, 6), ("ps-0", 1, 7)]
    assert reading.broken == 2


def test_lines_that_are_no_record_are_counted(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(
        b"\n[1]\nnonsense\n" + line(type="new") + line(type="sample", at="x") + line(type="step", at=True)
    )
    assert read(spool).broken == 5


def test_a_loss_that_is_not_a_number_is_not_measured(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(b'{"type": "step", "at": 1, "loss": NaN, "step": 3}\n')
    reading = read(spool)
    assert (reading.steps[0].loss, reading.steps[0].step, reading.broken) == (None, 3, 0)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    spools.parse(data, replica=PS0, attempt=1, offset=len(data))


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["sample", "step", "started"]),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)


@given(st.dictionaries(st.sampled_from(["type", "at", "step", "loss", "interval_seconds", "notes"]), values))
def test_any_object_is_a_record_or_broken(record: dict[str, object]) -> None:
    reading = spools.parse(json.dumps(record).encode(), replica=PS0, attempt=1, offset=0)
    kept = len(reading.samples) + len(reading.steps) + len(reading.evaluations) + len(reading.events)
    assert kept + reading.broken <= 1


@pytest.mark.parametrize("at", ["NaN", "Infinity", "-1", "1e400", "1800000000000", "true", '"12"', "1e10"])
@pytest.mark.parametrize("kind", ["sample", "step", "note", "started", "fact", "cure", "misread"])
def test_what_is_no_time_does_not_come_in(kind: str, at: str) -> None:
    whole = (
        '{"type": "%s", "at": %s, "interval_seconds": 1, "name": "feeds_bytes_per_step", "value": 3, '
        '"outcome": "applied"}'
    )
    reading = spools.parse((whole % (kind, at)).encode(), replica=PS0, attempt=1, offset=0)
    assert (reading.samples, reading.steps, reading.events, reading.broken) == ((), (), (), 1)
    good = spools.parse((whole % (kind, "1.8e9")).encode(), replica=PS0, attempt=1, offset=0)
    assert good.broken == 0
    assert {each.at for each in (*good.samples, *good.steps, *good.events)} == {1.8e9}


_MEASURED = {"sample": Sample, "step": StepReport}


@given(st.sampled_from(sorted(_MEASURED)), st.data())
def test_what_comes_in_is_kept_and_shown(kind: str, data: st.DataObject) -> None:
    """Whatever the door lets in, a block holds, an instant can be said of, and JSON has a number for."""
    names = [field.name for field in dataclasses.fields(_MEASURED[kind])][2:]
    number = st.floats() | st.integers() | st.sampled_from([2**62 - 1, 2**63, 7.2581184e9, 253402300800])
    record = data.draw(st.fixed_dictionaries(dict.fromkeys(names, number)))
    written = json.dumps({"type": kind, **record}).encode()
    reading = spools.parse(written, replica=PS0, attempt=1, offset=0)
    for each in (*reading.samples, *reading.steps):
        values = {name: getattr(each, name) for name in names}
        documents.instant(each.at)
        json.dumps(values, allow_nan=False)
        kept = blocks.unpack(blocks.pack({name: [value] * 3 for name, value in values.items()}))
        assert {name for name in kept if kept[name][0] is not None} == {
            name for name, value in values.items() if value is not None
        }
