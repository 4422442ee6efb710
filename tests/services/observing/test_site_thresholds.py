"""The file in which a site sets thresholds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.diagnosing import catalogues
from paceline.diagnosing.networks import links
from paceline.errors import InvalidInput
from paceline.services.observing import site_thresholds
from paceline.specs.yaml_text.problems import DocumentError

HEAD = "apiVersion: paceline.dev/v1alpha1\nkind: Thresholds\n"


def test_numbers_are_set_by_name(tmp_path: Path) -> None:
    assert site_thresholds.load_thresholds(tmp_path) == {}
    (tmp_path / "thresholds.yaml").write_text(HEAD + "spec: {links.full: 0.75, absences.least-seconds: 60}\n")
    assert site_thresholds.load_thresholds(tmp_path) == {"links.full": 0.75, "absences.least-seconds": 60.0}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{links.ful: 0.5}", "there is no threshold 'links.ful'; did you mean 'links.full'?"),
        ("{links.full: 1.5}", "a share is at most 1"),
        ("{losses.least-reports: 2.5}", "a whole number is needed"),
        ("{links.full: 0}", "a number above 0 is needed"),
        ("{headrooms.least-gain: 1}", "a number above 1 is needed"),
        ("{throttlings.most-lost: 1}", "a number above 0 and below 1 is needed"),
        ("{links.full: much}", "'much' is not a number"),
        ("{links.full: .nan}", "is not a number"),
        ("{links.full: -1}", "is out of range"),
        ("[links.full]", "a mapping"),
        ("{links.full: 0.5, links.full: 0.6}", "links.full"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(spec: str, message: str) -> None:
    with pytest.raises(DocumentError) as raised:
        site_thresholds.parse_thresholds(f"{HEAD}spec:\n  {spec}\n")
    (problem, *_) = raised.value.problems
    assert message in problem.message
    assert problem.position is not None
    assert problem.position.line == 4


@pytest.mark.parametrize("text", ["", "[]", "kind: TrainingJob\n", HEAD + "metadata: {name: x}\n", "{"])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        site_thresholds.parse_thresholds(text)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "thresholds.yaml").mkdir()
    with pytest.raises(InvalidInput, match="cannot be read"):
        site_thresholds.load_thresholds(tmp_path)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        thresholds = site_thresholds.parse_thresholds(f"{HEAD}spec:\n  {text}")
    except DocumentError:
        return
    assert thresholds.keys() <= catalogues.THRESHOLDS.keys()


@given(st.dictionaries(st.sampled_from(sorted(catalogues.THRESHOLDS)), st.floats(0, 1)))
def test_what_is_set_is_what_rules_compare_with(settings: dict[str, float]) -> None:
    allowed = {
        name: value for name, value in settings.items() if not catalogues.THRESHOLDS[name].refusal(value)
    }
    rows = "".join(f"  {name}: {value!r}\n" for name, value in allowed.items())
    text = HEAD + (f"spec:\n{rows}" if rows else "")
    found = site_thresholds.parse_thresholds(text)
    assert found == allowed
    assert links.FULL.value(found) == allowed.get("links.full", links.FULL.default)
