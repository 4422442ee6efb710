"""Changes as people write them on a command line."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.specs.edits import assignments


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


def test_a_sweep_of_a_long_list_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 100"):
        assignments.several("ps.replicas=" + ",".join(map(str, range(101))))


@given(st.text())
def test_any_text_is_a_change_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert assignments.change(text).path[0] == "spec"
    with contextlib.suppress(InvalidInput):
        assert len(assignments.several(text)) >= 1
