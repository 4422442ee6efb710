"""When a trainer traces."""

import pytest

from paceline.model.traces import traced_steps
from paceline.training import settings
from paceline.training.tracing import trace_schedules

LONG = trace_schedules.WARM_UP_STEPS


@pytest.fixture
def schedule(tmp_path):
    return trace_schedules.TraceSchedule(
        settings.TraceSettings(every_seconds=60), tmp_path, "worker-0.1.parquet"
    )


def answer(folder, name, file="worker-0.1.parquet"):
    (folder / name).mkdir(exist_ok=True)
    (folder / name / file).touch()


def test_it_traces_once_in_each_interval_of_the_clock(schedule):
    found = [schedule.due(at / 10, LONG) for at in range(6000 * 10, 6300 * 10)]
    taken = [name for name in found if name]
    assert taken == [traced_steps.name_at(at) for at in (6000, 6060, 6120, 6180, 6240)]


def test_two_trainers_name_a_moment_alike(schedule, tmp_path):
    other = trace_schedules.TraceSchedule(
        settings.TraceSettings(every_seconds=60), tmp_path, "worker-1.1.parquet"
    )
    assert schedule.due(6001, LONG) == other.due(6059, LONG)


def test_the_first_steps_are_left_alone(schedule):
    assert schedule.due(6000, LONG - 1) is None
    assert schedule.due(6001, LONG) is not None


def test_a_request_is_answered_once(schedule, tmp_path):
    name = traced_steps.name_at(6000.123)
    (tmp_path / traced_steps.REQUEST).write_text(name + "\n")
    assert schedule.due(6000.2, 1) == name
    assert schedule.due(6001, 1) is None
    answer(tmp_path, name)
    again = trace_schedules.TraceSchedule(
        settings.TraceSettings(every_seconds=0), tmp_path, "worker-0.1.parquet"
    )
    assert again.due(6002, LONG) is None
    other = trace_schedules.TraceSchedule(
        settings.TraceSettings(every_seconds=0), tmp_path, "worker-1.1.parquet"
    )
    assert other.due(6002, LONG) == name


def test_without_a_schedule_it_traces_on_request_alone(tmp_path):
    asleep = trace_schedules.TraceSchedule(
        settings.TraceSettings(every_seconds=0), tmp_path, "worker-0.1.parquet"
    )
    assert [asleep.due(at, LONG) for at in range(6000, 6200)] == [None] * 200


@pytest.mark.parametrize("text", [b"", b"../../etc", b"2026-01-01", b"\xff\xfe"])
def test_a_request_that_names_no_trace_is_none(tmp_path, text):
    (tmp_path / traced_steps.REQUEST).write_bytes(text)
    asleep = trace_schedules.TraceSchedule(
        settings.TraceSettings(every_seconds=0), tmp_path, "worker-0.1.parquet"
    )
    assert asleep.due(6000, LONG) is None
