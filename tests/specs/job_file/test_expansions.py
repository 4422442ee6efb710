"""``$(NAME)`` as Kubernetes fills it in."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.specs.job_file import expansions

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


def test_variables_that_double_each_other_are_given_up():
    value = "x" * 100
    while len(value) * 2 <= expansions.MOST_CHARACTERS:
        value = expansions.expand("$(V)$(V)", {"V": value}).text
    with pytest.raises(expansions.TooLong, match="more than 1,048,576 characters"):
        expansions.expand("$(V)$(V)", {"V": value})


@given(st.lists(st.sampled_from(["$", "(", ")", "A", "$(A)", "$$", "B", " "]), max_size=30).map("".join))
def test_it_is_what_the_expression_of_a_reference_says(text):
    """The same by an expression, which takes the square of the length where nothing is closed."""
    reference = re.compile(r"\$(?:\$|\(([^)]*)\))")
    expected = reference.sub(lambda m: "$" if m[1] is None else KNOWN.get(m[1], m[0]), text)
    unknown = tuple(m[1] for m in reference.finditer(text) if m[1] is not None and m[1] not in KNOWN)
    assert expansions.expand(text, KNOWN) == (expected, unknown)
