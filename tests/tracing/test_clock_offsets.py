from hypothesis import given
from hypothesis import strategies as st

from paceline.tracing import clock_offsets

TIMES = st.lists(st.integers(1, 5000), min_size=1, max_size=20)


@given(st.integers(-(10**6), 10**6), TIMES, TIMES)
def test_the_truth_lies_within_the_uncertainty(ahead, there, back):
    """Messages that take so long there and back, to a server whose clock is ahead."""
    found = clock_offsets.estimate(ahead - min(back), ahead + min(there))
    assert abs(found.microseconds - ahead) <= found.uncertainty


@given(TIMES, TIMES)
def test_one_machine_has_one_clock(there, back):
    assert clock_offsets.estimate(-min(back), min(there)).microseconds == 0
