"""There are too few parameter servers: all are at their CPU limit, which is not small."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs, trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import cpu_bound_servers, saturations
from paceline.diagnosing.servers.saturations import Saturation, words
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.findings import Severity

TOPIC = Topic(
    code="PS102",
    name="too-few-ps",
    title="Too few parameter servers for these workers",
    severity=Severity.WARNING,
    why="All parameter servers are busy, and as busy as each other, with as many cores as a worker has. What "
    "a step asks of them is more than they can do, so workers wait.",
    fix="Have more of them, so that each does less; variables have to be cut over all of them.",
    risk="Each server costs a step two messages more. A checkpoint of paceline.training is read back under "
    "any number of servers; one of another script may not be.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS), explains=("waiting-for-ps",))
def too_few_ps(case: Case) -> Iterator[Hit]:
    """Servers that all have and use up as many cores as trainers have, while trainers wait."""
    found = saturations.of_cores(case)
    if found is None or not saturations.are_waiting(case) or cpu_bound_servers.is_small(case, found):
        return
    needed = count(case, found)
    gain = saturations.gain(case, found, needed / len(case.servers))
    yield Hit(
        what=_what(case, found),
        subjects=found.names,
        evidence=saturations.seen(case, found),
        changes=trainings.servers(case, needed),
        next_steps=tuple(trainings.uncut(case)),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def _what(case: Case, found: Saturation) -> str:
    servers, trainers = len(case.servers), len(case.trainers)
    if servers == 1:
        return f"1 PS is too few for {trainers} trainers: it uses {found.use:.0%} of {words(found.cores)}."
    used = f"they use {found.use:.0%} of {words(found.cores)} each"
    return f"{servers} PS are too few for {trainers} trainers: {used}."


def count(case: Case, found: Saturation) -> int:
    """Return how many servers trainers at full speed need; more servers than trainers only add messages."""
    now = saturations.asked_servers(case)
    most = max(now + 1, len(case.trainers))
    return min(most, max(now + 1, math.ceil(now * saturations.planned_factor(case, found) - 1e-6)))
