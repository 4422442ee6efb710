"""How long an answer is waited for."""

from paceline.training import deadlines


def test_who_finished_hardly_any_step_is_given_twice_the_time():
    assert deadlines.following(deadlines.FIRST_SECONDS, steps=0) == 2 * deadlines.FIRST_SECONDS
    assert deadlines.following(4 * deadlines.FIRST_SECONDS, steps=10) == 8 * deadlines.FIRST_SECONDS


def test_who_was_fast_before_is_given_the_first_deadline_again():
    assert deadlines.following(8 * deadlines.FIRST_SECONDS, steps=11) == deadlines.FIRST_SECONDS


def test_there_is_a_longest_deadline():
    assert deadlines.following(deadlines.LONGEST_SECONDS, steps=0) == deadlines.LONGEST_SECONDS
