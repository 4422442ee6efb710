"""Trainers wait for parameter servers: a symptom, reported alone if its reason is not known."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import needs, outlooks, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.traces import trace_summaries

WAITING = Threshold(
    "waiting-trainers.waiting", 0.2, Unit.SHARE,
    means="The rule tells of trainers that wait for parameter servers for at least this share of a step.",
    source='TensorFlow\'s profiler calls a fifth of a step "highly"',
)  # fmt: skip

TOPIC = Topic(
    code="WRK201",
    name="waiting-for-ps",
    title="Workers wait for parameter servers",
    severity=Severity.INFO,
    why="A step begins with pulling parameters and ends with pushing gradients. Where servers or links are "
    "busy this takes longer than the computing between them, and more workers only wait longer.",
    fix="Remove what makes the servers or links busy; see the other findings.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS))
def waiting_for_ps(case: Case) -> Iterator[Hit]:
    """Trainers that wait for much of their time while a server or link is busy."""
    share, seen = _share(case)
    network = outlooks.network(case)
    if share is None or seen is None or network is None or not network.stations:
        return
    if share < case.value(WAITING):
        return
    uses = {str(each.replica): usages.cpu(case, each) or 0.0 for each in case.servers}
    binding = case.value(outlooks.BINDING_USE)
    busy = tuple(name for name, use in uses.items() if use >= binding)
    if not busy and max(usages.links(case).values(), default=0.0) < binding:
        return
    yield Hit(
        what=f"Trainers wait for parameter servers {share:.0%} of their time.",
        subjects=busy,
        evidence=(seen,),
    )


def _share(case: Case) -> tuple[float | None, Evidence | None]:
    """Return the share of their time in which trainers neither compute nor wait for input, with evidence."""
    splits = [split for trace in case.recording.traces if (split := trace_summaries.mean_split(trace))]
    total = sum(split.total_microseconds for split in splits)
    if total > 0:
        waits = sum(split.pull_microseconds + split.push_microseconds for split in splits)
        return waits / total, Evidence(
            text=f"of their traced steps {waits / total:.0%} are pulling and pushing"
        )
    used = mean(case.trainers, lambda each: usages.cpu(case, each))
    reading = mean(case.trainers, lambda each: each.input_wait_share)
    if used is None:
        return None, None
    text = f"trainers use {used:.0%} of their cores, and wait for input {reading or 0.0:.0%} of the time"
    return max(0.0, 1 - used - (reading or 0.0)), Evidence(
        text=text, sources=(case.source("cpu_cores", case.trainers),)
    )
