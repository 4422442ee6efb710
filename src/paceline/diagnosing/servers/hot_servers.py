"""One parameter server works while the others rest: a symptom, reported alone if its reason is not known."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import hot_loads
from paceline.diagnosing.servers.hot_loads import Hot, ServerResource
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.findings import Severity
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.words import listed

RESTING = Threshold(
    "hot-servers.resting", 0.25, Unit.SHARE,
    means="A server that uses a smaller share of its cores than this rests, however much less the other "
    "servers do. Its load is told only if it matters.",
)  # fmt: skip

TOPIC = Topic(
    code="PS004",
    name="hot-ps",
    title="One parameter server works while the others rest",
    severity=Severity.WARNING,
    why="Every step of every worker needs all parameter servers, so the busiest one sets the pace of all, "
    "and more of them, or more workers, bring nothing. Most often one variable is the reason.",
    fix="Find out which variable it is: paceline trace shows what each one moves.",
)


@rule(TOPIC, needs=(needs.CPU,), explains=("waiting-for-ps",), facts=(hot_loads,))
def hot_ps(case: Case) -> Iterator[Hit]:
    """A parameter server with a load far above the mean."""
    hot = hot_loads.find(case)
    if hot is None:
        return
    use = usages.busy(case, hot.server)
    if not hot.matters and use is not None and use < case.value(RESTING):
        return
    yield Hit(
        what=_what(case, hot),
        subjects=(str(hot.server.replica),),
        evidence=hot.evidence,
        next_steps=(f"paceline trace {case.recording.run.name} says which variables these are",),
        gain=hot.gain if headrooms.matters(hot.gain, case) else None,
        severity=hot.severity,
    )


def _what(case: Case, hot: Hot) -> str:
    name = str(hot.server.replica)
    resting = [each for each in hot.others if _rests(case, each, beside=hot.server)]
    if hot.resource is ServerResource.CPU and hot.is_full and resting:
        rest = listed(each.replica for each in resting)
        does = f"uses {hot.server.cpu_cores or 0.0:.2f} cores" if hot.is_unbounded else "is at its limit"
        return (
            f"{name} {does} while {rest} {'rests' if len(resting) == 1 else 'rest'}: the variables "
            f"on {name} are what to look at."
        )
    return f"{name} has {hot.max_over_mean:.1f} times the mean load of the PS."


def _rests(case: Case, server: ReplicaSnapshot, *, beside: ReplicaSnapshot) -> bool:
    """Return whether a server rests, relative to its limit, or without a limit relative to the hot server."""
    if hot_loads.is_unbounded(case, server):
        return (server.cpu_cores or 0.0) < case.value(RESTING) * (beside.cpu_cores or 0.0)
    return (usages.cpu(case, server) or 0.0) < case.value(RESTING)
