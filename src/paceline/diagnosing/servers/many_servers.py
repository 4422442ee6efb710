"""There are far more parameter servers than needed: all are idle, and each step pays messages to each."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs, trainings, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import saturations
from paceline.diagnosing.topics import Topic
from paceline.model import rates
from paceline.model.causes import Evidence
from paceline.model.findings import Severity

#: A server that uses less of its cores is idle.
IDLE = 0.1
#: With fewer servers there is little to save.
LEAST_SERVERS = 3
#: So many servers for each trainer are many: clusters that people write down have a tenth to a half.
LEAST_PER_TRAINER = 1.0
#: Told when so large a part of the servers is enough.
ENOUGH = 0.5
#: Of its memory limit one server may use so much, what is on those that leave included.
MOST_MEMORY = 0.7

TOPIC = Topic(
    code="PS201",
    name="too-many-ps",
    title="More parameter servers than needed",
    severity=Severity.INFO,
    why="Each step sends messages to every server that has a part of a variable and waits for all of them. "
    "Servers that have nearly nothing to do make steps no faster, and hold cores and memory.",
    fix="Have fewer of them.",
    risk="Each of those that stay holds more in memory. A checkpoint of paceline.training is read back under "
    "any number of servers; one of another script may not be.",
)


@rule(TOPIC, needs=(needs.CPU, needs.MEMORY, needs.STEPS))
def too_many_ps(case: Case) -> Iterator[Hit]:
    """Servers that all do next to nothing, and of which half would do for trainers at full speed."""
    now, trainers = len(case.servers), len(case.trainers)
    uses = [use for each in case.servers if (use := usages.cpu(case, each)) is not None]
    if now < max(LEAST_SERVERS, LEAST_PER_TRAINER * trainers) or len(uses) < now or max(uses) >= IDLE:
        return
    needed = _needed(case, sum(uses))
    if needed is None or needed > ENOUGH * now:
        return
    used = rates.total(each.cpu_cores for each in case.servers) or 0.0
    yield Hit(
        what=f"{now} PS have next to nothing to do: {needed} would do for {trainers} trainers.",
        subjects=tuple(str(each.replica) for each in case.servers),
        evidence=(
            Evidence(
                text=f"all {now} PS together use {used:.2f} cores, the busiest {max(uses):.0%} of its own",
                sources=(case.source("cpu_cores", case.servers),),
            ),
        ),
        changes=trainings.servers(case, needed),
    )


def _needed(case: Case, uses: float) -> int | None:
    """Return how many servers are enough for trainers at full speed; None: not known."""
    times = headrooms.most_times_fed(case)
    if times is None or not any(each.steps_per_second for each in case.trainers):
        return None
    links = usages.links(case)
    moved = sum(links.get(each.row.host or "", 0.0) for each in case.servers)
    wanted = (
        uses * times / saturations.TARGET,
        moved * times / saturations.TARGET,
        _memory(case) / MOST_MEMORY,
    )
    return max(1, *(math.ceil(each - 1e-6) for each in wanted))


def _memory(case: Case) -> float:
    """Return how many servers' limits all hold together; 0: there is no limit."""
    found = 0.0
    for each in case.servers:
        role = case.role(each)
        limit = each.memory_limit_bytes or each.row.memory_bytes or (role.memory_bytes if role else None)
        if limit and each.memory_bytes is not None:
            found += each.memory_bytes / limit
    return found
