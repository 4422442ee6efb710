"""For how long a guard goes on starting supervisors."""

from __future__ import annotations

from paceline.surfaces.supervisor import (
    LONG_LIFE_SECONDS,
    MAX_DEATHS,
    NOT_NOW_PAUSE_SECONDS,
    NOT_NOW_SECONDS,
    Troubles,
)

DAY = 86_400.0


def test_supervisors_that_die_at_once_are_given_up_after_some() -> None:
    troubles = Troubles()
    pauses = [troubles.pause_seconds(now, now + 1, not_now=False) for now in range(MAX_DEATHS)]
    assert pauses[-1] is None
    assert None not in pauses[:-1]


def test_deaths_of_long_ago_are_forgotten() -> None:
    troubles = Troubles()
    lives = [(week * 7 * DAY, week * 7 * DAY + LONG_LIFE_SECONDS) for week in range(2 * MAX_DEATHS)]
    assert None not in [troubles.pause_seconds(*life, not_now=False) for life in lives]


def test_a_day_of_patience_begins_with_the_trouble_and_not_with_the_job() -> None:
    troubles, late = Troubles(), 30 * DAY
    assert troubles.pause_seconds(0.0, late, not_now=True) == NOT_NOW_PAUSE_SECONDS
    for _ in range(2 * MAX_DEATHS):
        assert troubles.pause_seconds(late, late + 1.0, not_now=True) == NOT_NOW_PAUSE_SECONDS
    over = late + 1.0 + NOT_NOW_SECONDS
    pauses = [troubles.pause_seconds(over, over, not_now=True) for _ in range(MAX_DEATHS)]
    assert pauses[-1] is None
