"""Label selectors mean what they mean to kubectl."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.jobs import selectors
from paceline.model.jobs.selectors import Requirement, Selector

ADS = {"team": "ads", "paceline.dev/kind": "test", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("team", True),
        ("other", False),
        ("!team", False),
        ("! other", True),
        ("team=ads", True),
        ("team==ads", True),
        ("team = search", False),
        ("team!=search", True),
        ("other!=x", True),
        ("team!=ads", False),
        ("empty=", True),
        ("team in (ads, search)", True),
        ("team in (search)", False),
        ("team notin (search,x)", True),
        ("other notin (x)", True),
        ("team notin (ads)", False),
        ("empty in ()", True),
        ("paceline.dev/kind=test", True),
        ("team=ads,paceline.dev/kind", True),
        ("team in (ads,search) , !other, empty!=x", True),
        ("team=ads,other", False),
        ("in in (in)", False),
    ],
)
def test_what_is_selected(text: str, matches: bool) -> None:
    assert selectors.parse(text).matches(ADS) is matches


@pytest.mark.parametrize(
    "text",
    ["a,", ",a", "a b", "a=b c", "=b", "a in b", "a in (b", "a in (b c)", "-a", "a=-b", "a//b", "!", "a=b=c",
     "x" * 64, "é"],
)  # fmt: skip
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        selectors.parse(text)


NAMES = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?", fullmatch=True)
KEYS = NAMES | st.builds("{}/{}".format, st.from_regex(r"[a-z]{1,5}(\.io)?", fullmatch=True), NAMES)
VALUES = NAMES | st.just("")
REQUIREMENTS = st.builds(
    Requirement, KEYS, st.none() | st.frozensets(VALUES, min_size=1, max_size=3), st.booleans()
)
SELECTORS = st.lists(REQUIREMENTS, max_size=4).map(lambda found: Selector(tuple(found)))


@given(SELECTORS)
def test_what_is_written_is_read_again(selector: Selector) -> None:
    assert selectors.parse(str(selector)) == selector


@given(SELECTORS, st.dictionaries(KEYS, VALUES, max_size=4))
def test_a_selector_holds_when_each_requirement_does(selector: Selector, labels: dict[str, str]) -> None:
    alone = [selectors.parse(str(each)).matches(labels) for each in selector.requirements]
    assert selector.matches(labels) is all(alone)


@given(st.text(alphabet="a1=!,() in\t-./", max_size=16))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = selectors.parse(text)
    except ValueError:
        return
    assert selectors.parse(str(found)) == found
