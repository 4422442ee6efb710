"""Real runs of which a part is missing: less is said then, and nothing wrong."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import pytest
from support import cases

from benchmarks.diagnosis import labels, scores
from benchmarks.diagnosis.labels import HEALTHY, Label
from paceline.diagnosing import diagnoses
from paceline.diagnosing.progress.limits import at_limit
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording
from paceline.services.observing import recordings as services
from paceline.stores import recordings

FIT = [label for label in labels.read(scores.FOLDER).values() if label.split == labels.FIT]
#: What one source measures, or does not.
FIELDS = (
    ("cpu_limit_cores", "throttled_seconds"), ("memory_bytes", "memory_limit_bytes"), ("threads",),
    ("network_received_bytes", "network_sent_bytes", "sent_segments", "retransmitted_segments"),
    ("voluntary_switches", "involuntary_switches", "run_delay_seconds"), ("neighbours_cpu_cores",),
    ("input_wait_seconds",), ("examples",),
)  # fmt: skip


def _each(recording: Recording, change: Callable[[Any], Any]) -> Recording:
    made = cases.edited(recording, samples=change, steps=change)
    samples, steps = (sorted(some, key=lambda each: each.at) for some in (made.samples, made.steps))
    return dataclasses.replace(made, samples=samples, steps=steps)


def without(fields: tuple[str, ...]) -> Callable[[Recording], Recording]:
    def change(each: Any) -> Any:
        own = [field for field in fields if hasattr(each, field)]
        return dataclasses.replace(each, **dict.fromkeys(own))

    return lambda recording: _each(recording, change)


def unmeasured(replica: str) -> Callable[[Recording], Recording]:
    return lambda recording: _each(recording, lambda each: None if str(each.replica) == replica else each)


def thinned(share: float) -> Callable[[Recording], Recording]:
    def change(recording: Recording) -> Recording:
        chance = random.Random(1)
        return _each(recording, lambda each: each if chance.random() < share else None)

    return change


def skewed(replica: str, seconds: float) -> Callable[[Recording], Recording]:
    def change(each: Any) -> Any:
        return dataclasses.replace(each, at=each.at + seconds) if str(each.replica) == replica else each

    return lambda recording: _each(recording, change)


def nothing(**fields: Any) -> Callable[[Recording], Recording]:
    return lambda recording: dataclasses.replace(recording, **fields)


LOSSES = {
    **{f"no {', '.join(fields)}": without(fields) for fields in FIELDS},
    **{f"nothing of {replica}": unmeasured(replica) for replica in ("ps-0", "ps-1", "worker-0", "worker-1")},
    "half of all": thinned(0.5),
    "an hour late": skewed("worker-1", -3600),
    "an hour early": skewed("ps-0", 3600),
    "no traces": nothing(traces=()),
    "no facts": nothing(facts=()),
    "no events": nothing(events=()),
    "no samples": nothing(samples=[]),
    "nothing at all": nothing(samples=[], steps=[], traces=(), plan=None, facts=(), events=()),
}


def serious(recording: Recording) -> list[str]:
    """Return the causes that are told first, without remarks."""
    answer = diagnoses.diagnose(recording, services.situation(recording))
    return [each.name for each in answer.causes if each.severity is not Severity.INFO and not each.is_past]


@pytest.mark.parametrize("label", FIT, ids=lambda label: label.name)
def test_less_evidence_makes_no_other_cause(label: Label) -> None:
    whole = recordings.read(scores.FOLDER / label.file)
    true = {label.cause, *label.accepted, *label.also, *serious(whole)} - {HEALTHY}
    if label.cause != HEALTHY:
        # That some replica is at its limit while others wait is so, whatever the reason is.
        true.add(at_limit.topic.name)
    wrong = {
        what: said[0]
        for what, lose in LOSSES.items()
        if (said := serious(lose(whole))) and said[0] not in true
    }
    assert not wrong
