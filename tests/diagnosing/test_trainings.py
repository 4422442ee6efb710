"""What a training section says."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases

from paceline.diagnosing import trainings
from paceline.diagnosing.cases import Case


def case(training: Any) -> Case:
    return Case.of(cases.recording({"ps-0": {}}, spec={"training": training}))


@pytest.mark.parametrize(
    ("training", "optimizer", "wide"),
    [
        ({"optimizer": {"name": "adam"}}, "adam", "ftrl"),
        ({"optimizer": {}, "wide_optimizer": {"name": "adagrad"}}, "adagrad", "adagrad"),
        ({"optimizer": 5}, "adagrad", "ftrl"),
        ({}, "adagrad", "ftrl"),
        (None, None, None),
    ],
)
def test_optimizers_have_defaults_where_there_is_a_section(
    training: Any, optimizer: str | None, wide: str | None
) -> None:
    assert trainings.optimizer(case(training), "optimizer") == optimizer
    assert trainings.optimizer(case(training), "wide_optimizer") == wide
