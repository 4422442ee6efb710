"""The scores of diagnosis on unchanged scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import measured_runs

from benchmarks.diagnosis.labels import FIT, HEALTHY, UNSEEN, Label
from benchmarks.diagnosis_unchanged import scores
from paceline.stores import recordings


def _row(cause: str, said: str, *, alarm: bool = False, split: str = UNSEEN) -> dict[str, Any]:
    told = [said] if alarm else []
    return {
        "key": f"{cause}.gross.wide-deep", "cause": cause, "said": said, "told": told, "also": [],
        "accepted": [], "split": split, "script": "wide-deep", "version": "1.15.5",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "expected"), [("log-device-placement", True), ("dense-update", False), ("compute-bound", True)]
)
def test_a_cause_that_is_an_info_is_known_as_one(cause: str, *, expected: bool) -> None:
    assert scores.is_info(cause) is expected


def test_the_checks_count_unseen_scripts_alone() -> None:
    rows = [
        _row("hang", "hang", alarm=True),
        _row("killed", "hang", alarm=True),
        _row(HEALTHY, HEALTHY),
        _row(HEALTHY, "leak", alarm=True),
        _row(HEALTHY, "leak", alarm=True, split=FIT),
    ]
    found = {check.name: check.value for check in scores.checks(rows)}
    assert found["runs of unseen scripts"] == 4
    assert found["healthy runs among them"] == 2
    assert found["primary cause right"] == 0.5
    assert found["healthy runs with a false alarm"] == 0.5
    assert found["scripts that rules were tried on: right"] == 0


def test_the_details_have_what_was_said_of_each_cause_and_each_mistake() -> None:
    rows = [_row("hang", "hang", alarm=True), _row("killed", "hang", alarm=True)]
    lines = list(scores.details(rows))
    assert "| killed | 1 | 1 hang |" in lines
    assert [line for line in lines if "Wrong" in line] == ["\nWrong: `killed.gross.wide-deep`: hang"]


def test_a_recording_is_judged_with_what_is_true_of_it(tmp_path: Path) -> None:
    label = Label(
        name="healthy.live.wide-deep-1.15.5-plain", cause=HEALTHY, model="wide-deep", size="1.15.5", seed=0,
        kind="plain", split=UNSEEN, ending="live", began_at=measured_runs.START,
    )  # fmt: skip
    recordings.write(tmp_path / label.file, measured_runs.recording(seconds=20))
    row = scores.judged(label, tmp_path)
    assert (row["cause"], row["script"], row["version"]) == (HEALTHY, "wide-deep", "1.15.5")
    assert isinstance(row["said"], str)
