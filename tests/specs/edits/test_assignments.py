"""Changes as people write them on a command line."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.specs import DocumentError, parse_job
from paceline.specs.edits import assignments, edits

JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  roles: {worker: {replicas: 1}}
  training: {batch_size: 100}
"""


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("ps.replicas=4", ("spec", "roles", "ps", "replicas"), 4),
        ("worker.cpu=500m", ("spec", "roles", "worker", "cpu"), "500m"),
        ("spec.roles.ps.cpu=1.5", ("spec", "roles", "ps", "cpu"), 1.5),
        (
            "training.partitioning={strategy: none}",
            ("spec", "training", "partitioning"),
            {"strategy": "none"},
        ),
        (" placement.strategy = spread", ("spec", "placement", "strategy"), "spread"),
        ("worker.cpu=", ("spec", "roles", "worker", "cpu"), None),
        ("command=a=b", ("spec", "command"), "a=b"),
    ],
)
def test_a_field_is_a_path_below_the_spec(text: str, path: tuple[str, ...], value: object) -> None:
    assert assignments.change(text) == FieldChange(path=path, value=value)


@pytest.mark.parametrize("text", ["", "ps", "=4", "ps..cpu=1", "ps.cpu=[1", "ps.cpu=\x00"])
def test_what_is_none_says_how_to_write_one(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        assignments.change(text)
    assert "ps.replicas=4" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("worker.replicas=1..4", [1, 2, 3, 4]),
        ("worker.replicas=4..4", [4]),
        ("ps.cpu=500m,1,1.5", ["500m", 1, 1.5]),
        ("ps.cpu=2", [2]),
    ],
)
def test_a_sweep_is_a_range_or_a_list(text: str, values: list[object]) -> None:
    assert [each.value for each in assignments.several(text)] == values


@pytest.mark.parametrize("text", ["ps.replicas=4..1", "ps.replicas=1..999999", "ps", "=1..2"])
def test_a_sweep_of_nothing_or_of_too_many_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        assignments.several(text)


@pytest.mark.parametrize(
    "value", ["9" * 5_000, "9" * (1 << 20), "1:" * (1 << 19), "0x" + "f" * (1 << 20), "1." * (1 << 19)]
)
def test_a_number_without_end_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        assignments.change(f"ps.replicas={value}")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "value",
    ["[1, ~]", "{a: ~}", "[" * 1_500, "&a [*a]", "[.inf, 1e999]", "1e999", "!mine 3", "{1: a}",
     "&a {b: &b [1]}\n---\n1"],
)  # fmt: skip
def test_a_value_that_no_job_file_holds_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        assignments.change(f"ps.replicas={value}")
    assert "ps.replicas=4" in str(caught.value.hint)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    "value", ["2026-13-45", "2026-01-01", ".inf", "!!timestamp x", "!!int ''", "!!bool 3", "!!float x"]
)
def test_what_only_looks_like_another_type_is_text(value: str) -> None:
    """As in a job file: there is no date, and the field says what it wants."""
    found = assignments.change(f"training.seed={value}")
    assert found.value == value.rpartition(" ")[2].strip("'")
    with pytest.raises(DocumentError, match="seed"):
        parse_job(edits.edited(JOB, [found]))


def test_aliases_within_aliases_take_no_time() -> None:
    nested = ", ".join(f"&a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))
    with pytest.raises(InvalidInput, match="unfold to more than"):
        assignments.change(f"ps.replicas=[&a0 [1, 1], {nested}]")


def test_a_sweep_of_a_long_list_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 100"):
        assignments.several("ps.replicas=" + ",".join(map(str, range(101))))


@given(st.text())
def test_any_text_is_a_change_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert assignments.change(text).path[0] == "spec"
    with contextlib.suppress(InvalidInput):
        assert len(assignments.several(text)) >= 1


TOKENS = [
    "1", "a", ".", "-", ":", ": ", ", ", "~", "null", "!!int ", "!!bool ", "!!timestamp ", "!!set ", "<<",
    "!!binary ", "!!merge ", "&a ", "*a", "[", "]", "{", "}", "? ", "'", '"', "\\x00", "\n", "- ", "|", ">",
    "e", "_", "0x", "inf", "nan", "2026-01-01", "T", "#", "%", "@", "9" * 30,
]  # fmt: skip


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
def test_any_value_can_be_written_or_is_refused(value: str) -> None:
    with contextlib.suppress(InvalidInput):
        made = edits.edited(JOB, [assignments.change(f"training.seed={value}")])
        parse_job(made)
