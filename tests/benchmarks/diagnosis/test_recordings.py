"""Real runs that rules were fitted to: each is judged right, and all of them are small."""

from __future__ import annotations

import pytest

from benchmarks.diagnosis import labels, scores
from benchmarks.diagnosis.labels import Label

LABELS = labels.read(scores.FOLDER)
FIT = [label for label in LABELS.values() if label.split == labels.FIT]
MOST_BYTES = 10_000_000


@pytest.mark.parametrize("label", FIT, ids=lambda label: label.name)
def test_the_cause_of_a_real_run_is_told(label: Label) -> None:
    row = scores.judged(label)
    assert scores.is_right(row), f"it is {row['cause']}; said is {row['said']}, told are {row['told']}"


def test_every_label_has_a_recording_and_all_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in scores.FOLDER.glob("*.parquet")}
    assert set(sizes) == {label.file for label in LABELS.values()}
    assert sum(sizes.values()) <= MOST_BYTES
