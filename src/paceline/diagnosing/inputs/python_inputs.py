"""A script whose own Python code makes each batch between two steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing import headrooms, needs, outlooks, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.inputs import between_steps, readings
from paceline.diagnosing.inputs.between_steps import BetweenStepsActivity
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name
from paceline.model.measures.snapshots import ReplicaSnapshot

TOPIC = Topic(
    code="INP003",
    name="python-input",
    title="The script makes its batches in Python between its steps",
    severity=Severity.WARNING,
    why="A script that makes a batch, feeds it and only then makes the next one uses its time twice: while "
    "Python works no step runs, and while a step runs Python waits. One thread does that work, so more cores "
    "do not make it faster.",
    fix="Make batches ahead: with tf.data and prefetch, or in a thread or process of their own.",
    risk="Batches that are made ahead take memory and cores while steps run.",
)


@rule(TOPIC, needs=(needs.STEPS, needs.INPUT_WAIT))
def python_input(case: Case) -> Iterator[Hit]:
    """Most trainers run no step for much of their time, because their own thread computes."""
    reading = readings.find(case, case.value(readings.DECODING))
    found = between_steps.most(case, reading, BetweenStepsActivity.COMPUTING) if reading else []
    if reading is None or not found:
        return
    share = mean(found, lambda each: asked.amount(case, each.replica, Name.PYTHON_SHARE)) or 0.0
    fed = mean(found, lambda each: asked.amount(case, each.replica, Name.FEEDS_BYTES_PER_STEP))
    gain = _gain(case, found, reading.share)
    yield Hit(
        what=f"Between its steps the script makes its batches in Python: {reading.share:.0%} of the time of "
        "the trainers no step runs.",
        subjects=tuple(str(each.replica) for each in found),
        evidence=(
            reading.evidence,
            Evidence(
                text=f"the thread that makes the steps computes itself for {share:.0%} of the time, and "
                f"feeds {quantities.format_bytes(fed)} for a step"
            ),
        ),
        next_steps=(
            "in your script: tf.data.Dataset.from_generator(...).prefetch(2) in place of feed_dict, or a "
            "thread that fills a queue.Queue with batches",
            "make a whole batch by NumPy, not row by row in Python",
        ),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def _gain(case: Case, found: Sequence[ReplicaSnapshot], share: float) -> Gain | None:
    """Return the gain if batches are made while steps run; None: it is not known that a core is free.

    A step then takes as long as the longer of the two activities.
    """
    busy = mean(found, lambda each: usages.busy(case, each))
    if busy is None or busy >= case.value(usages.AT_LIMIT):
        return None
    times = min(1 / max(share, 1 - share), 1 / busy if busy > 0 else case.value(headrooms.MOST_TIMES))
    return headrooms.within(case, outlooks.limited(case, max(1.0, times)))
