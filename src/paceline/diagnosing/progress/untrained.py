"""A job that succeeded, and trained nothing that could be seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing import sayings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model.findings import Severity
from paceline.model.runs import SEEN, JobEvent
from paceline.model.statuses import JobPhase
from paceline.model.words import listed

#: The first word of what the instrumentation says when it has seen a library that trains. What else it says
#: is of steps, or of what it could not look into.
HELLOS = ("TensorFlow ", "PyTorch ")

TOPIC = Topic(
    code="PRG005",
    name="nothing-trained",
    title="The job succeeded, and no step was seen",
    severity=Severity.WARNING,
    why="The script ended without an error and took no step: its roles are not those of the job, so that no "
    "replica did the work of the one that trains; or it found no example; or it only built the model.",
    fix="See what each replica did in its last log lines, and whether the script knows the roles ps, worker, "
    "chief and evaluator.",
)


@rule(TOPIC, needs=())
def nothing_trained(case: Case) -> Iterator[Hit]:
    """Jobs that have ended well and whose trainers, though they were looked into, made no step."""
    run = case.recording.run
    if run.phase is not JobPhase.SUCCEEDED or silences.steps_made(case.recording.steps):
        return
    said = [each for each in sayings.of(case, SEEN) if each.replica is not None and each.replica.role.trains]
    if not said or not all(each.message.startswith(HELLOS) for each in said):
        return
    names = sayings.names(said)
    yield Hit(
        what=f"{listed(names)} loaded {_libraries(said)} and made no step.",
        subjects=tuple(names),
        evidence=sayings.evidence(said),
        next_steps=(
            "compare the job names of the script with the roles of the job file",
            f"paceline logs {run.name}",
        ),
    )


def _libraries(said: Sequence[JobEvent]) -> str:
    """Return what was seen to be loaded."""
    return listed(dict.fromkeys(each.message.split(" ")[0] for each in said))
