"""Sessions that see every other worker, so that one that has ended holds up the start of all."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.topics import Topic
from paceline.model.findings import Severity
from paceline.model.script_facts import Name

TOPIC = Topic(
    code="SCR101",
    name="no-device-filters",
    title="Each worker needs every other worker to start",
    severity=Severity.INFO,
    why="A session without device filters connects to all tasks of the cluster before it does anything. In a "
    "job where each worker runs its own graph it needs the parameter servers and itself only; so one worker "
    "that has ended, or comes late, holds up every other one that starts or restarts.",
    fix="Give the session of each worker device filters with the parameter servers and the worker itself.",
    risk="A script whose one graph uses the devices of several workers cannot have them.",
)


@rule(TOPIC, needs=())
def no_device_filters(case: Case) -> Iterator[Hit]:
    """Several trainers of which each has a session of its own that sees all tasks."""
    found = [each for each in asked.of_trainers(case, Name.DEVICE_FILTERS) if not each.value]
    if len(found) < 2 or not case.servers:
        return
    yield Hit(
        what="Without device filters a worker that has ended holds up each one that starts.",
        subjects=tuple(str(each.replica) for each in found),
        evidence=(asked.evidence(Name.DEVICE_FILTERS, found),),
        next_steps=(
            'in your script: config=tf.ConfigProto(device_filters=["/job:ps", "/job:%s/task:%d" % (job_name, '
            "task_index)]) for the session",
        ),
    )
