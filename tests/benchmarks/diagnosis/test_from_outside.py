"""Real runs of which only CPU, network and memory is known: what is busy is told, and no alarm is false."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.diagnosis import labels, scores
from benchmarks.diagnosis.labels import HEALTHY, Label
from paceline.diagnosing import diagnoses
from paceline.diagnosing.progress import silences
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording
from paceline.services.observing import recordings as services
from paceline.stores import recordings

#: By the cause of a run that fit the rules, what is to be seen of it from outside.
SEEN = {
    "giant-variable": "hot-ps",
    "skewed-shards": "hot-ps",
    "uneven-placement": "hot-ps",
    "ps-cpu-bound": "at-limit",
    "too-few-ps": "at-limit",
    "ps-network-bound": "at-limit",
}
LABELS = [
    label
    for label in labels.read(scores.FOLDER).values()
    if label.split == labels.FIT and label.cause in (*SEEN, HEALTHY)
]


LONG_AGO = {silences.STARTED_SECONDS.name: 0.001}


def unseen(recording: Recording) -> Recording:
    """Return the recording as if nothing had been seen in its scripts.

    The runs, of a minute or less, are taken for ones that began long ago.
    """
    spec = dataclasses.replace(recording.run.spec, training=None)
    run = dataclasses.replace(recording.run, spec=spec)
    return dataclasses.replace(
        recording, run=run, steps=(), traces=(), plan=None, conclusion=None, thresholds=LONG_AGO
    )


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.name)
def test_what_is_busy_is_told(label: Label) -> None:
    recording = unseen(recordings.read(scores.FOLDER / label.file))
    answer = diagnoses.diagnose(recording, services.situation(recording))
    told = [each.name for each in answer.causes if each.severity is not Severity.INFO]
    if label.cause == HEALTHY:
        assert told == []
    else:
        assert SEEN[label.cause] in told
        assert not answer.summary.startswith("nothing is wrong")
