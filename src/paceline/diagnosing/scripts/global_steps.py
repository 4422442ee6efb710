"""A busy parameter server that holds the global step, and no variable that would explain its load."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.servers import blames, hot_loads
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.script_facts import Name
from paceline.model.roles import ReplicaId, Role

_DEVICE = re.compile(r"^/job:ps(?:/replica:0)?/task:(\d+)(?:/|$)")

TOPIC = Topic(
    code="SCR109",
    name="global-step-server",
    title="The busiest parameter server is the one with the global step",
    severity=Severity.INFO,
    why="Each step of each trainer changes the global step, and hooks read it once more. It is the first "
    "variable of a script as a rule, so it lies on PS 0 beside whatever else is there. With many trainers "
    "and short steps these calls are a good part of what that server does, though they move hardly a byte.",
    fix="Place the global step on a parameter server that rests, and have fewer hooks ask for it.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS, needs.TRAFFIC))
def global_step_server(case: Case) -> Iterator[Hit]:
    """A hot server that holds the global step and whose load no variable explains."""
    hot = hot_loads.find(case)
    if hot is None or blames.blame(case) is not None:
        return
    facts = [
        fact
        for fact in asked.of_trainers(case, Name.GLOBAL_STEP_DEVICE)
        if _server(str(fact.value)) == hot.server.replica
    ]
    steps = rates.total(trainer.steps_per_second for trainer in case.active_trainers)
    if not facts or not steps:
        return
    name = str(hot.server.replica)
    resting = min(hot.others, key=lambda server: server.cpu_cores or 0.0)
    yield Hit(
        what=f"{name} is the busiest PS, has the global step, and no variable explains its load.",
        subjects=(name,),
        evidence=(
            *hot.evidence,
            asked.evidence(Name.GLOBAL_STEP_DEVICE, facts),
            Evidence(
                text=f"{len(case.active_trainers)} trainers change it {steps:,.0f} times a second",
                sources=(case.source("steps", case.active_trainers, steps=True),),
            ),
        ),
        next_steps=(
            f'in your script: with tf.device("/job:ps/task:{resting.replica.index}"): '
            "tf.train.get_or_create_global_step()",
        ),
    )


def _server(device: str) -> ReplicaId | None:
    """Return the parameter server of a device such as ``/job:ps/task:0``; None: the device is not on one."""
    found = _DEVICE.search(device)
    return ReplicaId(Role.PS, int(found[1])) if found else None
