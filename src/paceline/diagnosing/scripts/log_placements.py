"""Sessions that print where each operation is placed."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name
from paceline.model.words import listed

TOPIC = Topic(
    code="SCR103",
    name="log-device-placement",
    title="TensorFlow prints where it places each operation",
    severity=Severity.INFO,
    why="log_device_placement has TensorFlow print a line for each operation of the graph whenever a graph "
    "is placed. A model with some ten thousand operations prints megabytes at each start, and again for each "
    "kind of step that is new.",
    fix="Leave log_device_placement out once the placement is what it should be.",
)


@rule(TOPIC, needs=(), explains=("log-flood",))
def log_device_placement(case: Case) -> Iterator[Hit]:
    """Trainers whose sessions print the device of each operation."""
    found = [each for each in asked.of_trainers(case, Name.LOG_DEVICE_PLACEMENT) if each.value]
    if found:
        yield Hit(
            what=f"The script of {listed(each.replica for each in found)} has TensorFlow print the place of "
            "each operation.",
            subjects=tuple(str(each.replica) for each in found),
            evidence=(asked.evidence(Name.LOG_DEVICE_PLACEMENT, found),),
            next_steps=("in your script: tf.ConfigProto without log_device_placement=True",),
        )
