"""What codes of numbers stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.stores.precisions import Meaning

MEANINGS = st.builds(
    Meaning,
    decimals=st.none() | st.integers(0, 7),
    unit_bits=st.integers(0, 16),
    digits=st.integers(0, 20),
)


@given(MEANINGS, st.lists(st.integers(0, 1 << 24)) | st.lists(st.integers(-(1 << 30), 1 << 30)))
def test_many_codes_stand_for_what_each_does(meaning: Meaning, codes: list[int]) -> None:
    try:
        one_by_one = [meaning.number(code) for code in codes]
    except OverflowError:
        with pytest.raises(OverflowError):
            meaning.each(codes)
        return
    assert meaning.each(codes) == one_by_one
