"""Real runs of unchanged scripts, as far as they are there: those that rules were tried on are judged."""

from __future__ import annotations

import pytest

from benchmarks.diagnosis import labels
from benchmarks.diagnosis import scores as corpus_scores
from benchmarks.diagnosis.labels import Label
from benchmarks.diagnosis_unchanged import items, scores

LABELS = labels.read(scores.FOLDER)
NAMES = {item.name for item in items.every()}
MOST_BYTES = 6_000_000


@pytest.mark.parametrize(
    "label", [each for each in LABELS.values() if each.split == labels.FIT], ids=lambda label: label.name
)
def test_the_cause_of_a_real_run_is_told(label: Label) -> None:
    row = scores.judged(label)
    assert corpus_scores.is_right(row), f"it is {row['cause']}; said is {row['said']}, told are {row['told']}"


def test_every_label_is_of_a_run_that_is_listed_and_has_a_small_recording() -> None:
    sizes = {path.name: path.stat().st_size for path in scores.FOLDER.glob("*.parquet")}
    assert set(sizes) == {label.file for label in LABELS.values()}
    assert set(LABELS) <= NAMES
    assert sum(sizes.values()) <= MOST_BYTES
