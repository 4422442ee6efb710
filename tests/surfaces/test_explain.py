"""``paceline explain``: every code that Paceline names, and what it is about."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from paceline.surfaces import explanations

Paceline = Callable[..., Result]


def test_all_codes_are_listed(paceline: Paceline) -> None:
    lines = paceline("explain").stdout.splitlines()
    codes = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert codes == [entry.code for entry in explanations.entries()]
    assert {"JOB101", "K8S501", "LIFE202"} <= set(codes)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("word", ["life202", "no-room"])
def test_a_cause_is_explained_by_its_code_or_its_name(paceline: Paceline, word: str) -> None:
    shown = paceline("explain", word).stdout
    assert shown.startswith("warning LIFE202 (no-room) There is no room")
    assert "Why" in shown
    assert "paceline fit FILE" in shown
    (item,) = json.loads(paceline("explain", word, "-o", "json").stdout)["items"]
    assert (item["code"], item["name"], item["severity"]) == ("LIFE202", "no-room", "warning")


def test_a_lint_rule_is_explained(paceline: Paceline) -> None:
    assert paceline("explain", "job101").stdout.startswith("error JOB101 ")


def test_an_unknown_code_is_refused(paceline: Paceline) -> None:
    result = paceline("explain", "LIFE20A")
    assert result.exit_code == 3
    assert "did you mean 'LIFE20" in result.stderr
    assert "paceline explain lists all" in result.stderr
