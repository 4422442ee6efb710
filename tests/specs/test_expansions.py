"""``$(NAME)`` as Kubernetes fills it in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.specs import expansions

KNOWN = {"A": "1", "DOLLAR": "$(A)", "": "empty"}


@pytest.mark.parametrize(
    ("text", "seen", "unknown"),
    [
        ("$(A)$(A)", "11", ()),
        ("$$(A)", "$(A)", ()),
        ("$$$(A)", "$1", ()),
        ("$$$$", "$$", ()),
        ("$(DOLLAR)", "$(A)", ()),
        ("$(B) $(C) $(B)", "$(B) $(C) $(B)", ("B", "C", "B")),
        ("$A ${A} $(A", "$A ${A} $(A", ()),
        ("$((A))", "$((A))", ("(A",)),
        ("$(date\n-u)", "$(date\n-u)", ("date\n-u",)),
        ("$", "$", ()),
    ],
)
def test_references(text, seen, unknown):
    assert expansions.expand(text, KNOWN) == (seen, unknown)


@given(st.text())
def test_doubled_dollars_are_single_ones(text):
    assert expansions.expand(text.replace("$", "$$"), KNOWN) == (text, ())
