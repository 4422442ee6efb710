"""Scripts that neither compute nor read between their steps: they sleep, or wait for something."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.inputs import between_steps, readings
from paceline.diagnosing.inputs.between_steps import BetweenStepsActivity
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name

TOPIC = Topic(
    code="INP004",
    name="resting-script",
    title="The script rests between its steps",
    severity=Severity.INFO,
    why="Between two steps the script neither computes nor reads files. It sleeps because it is written so, "
    "or it waits for something that is not seen from outside: a lock, a queue, a service on the network.",
    fix="Look at what the script does between two steps. If it is to sleep there, all is well.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS, needs.INPUT_WAIT))
def resting_script(case: Case) -> Iterator[Hit]:
    """Most trainers run no step for much of their time, and do nothing else either."""
    reading = readings.find(case, case.value(readings.INPUT_BOUND))
    found = between_steps.most(case, reading, BetweenStepsActivity.RESTING) if reading else []
    if reading is None or not found:
        return
    read = mean(found, lambda each: asked.amount(case, each.replica, Name.READS_BYTES_PER_STEP))
    fed = mean(found, lambda each: asked.amount(case, each.replica, Name.FEEDS_BYTES_PER_STEP))
    yield Hit(
        what=f"Between its steps the script rests: {reading.share:.0%} of the time of the trainers no step "
        "runs, and it neither computes nor reads.",
        subjects=tuple(str(each.replica) for each in found),
        evidence=(
            reading.evidence,
            Evidence(
                text=f"for a step it reads {quantities.format_bytes(read)} and feeds "
                f"{quantities.format_bytes(fed)}"
            ),
        ),
        next_steps=("where it runs, py-spy dump --pid PID says what its thread does between two steps",),
    )
