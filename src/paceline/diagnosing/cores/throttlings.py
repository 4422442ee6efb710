"""A CPU quota cuts the bursts of a replica whose average use is clearly below its limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from paceline.diagnosing import headrooms, needs, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role
from paceline.model.words import listed

MOST_USE = Threshold(
    "throttlings.most-use", 0.8, Unit.SHARE,
    means="A replica that uses more of its limit than this computes at its limit, and is throttled as a "
    "matter of course: that is another cause.",
    source="DLRover plans for a use of 0.8",
)  # fmt: skip
LEAST_THROTTLED = Threshold(
    "throttlings.least-throttled", 0.15, Unit.TIMES,
    means="Bursts of a replica are cut again and again if it is throttled for this many seconds in each "
    "second, with the seconds of all its cores added up.",
    source="more than a quarter of the kernel's periods cut is often called severe; a cut takes half a "
    "period or more, on each core that was used (scheduler/sched-bwc)",
)  # fmt: skip
_MOST_LOST = Threshold(
    "throttlings.most-lost", 0.8, Unit.SHARE,
    means="As far as gains go, no replica is throttled for a larger share of its time than this.",
    below=1.0,
)  # fmt: skip
_LEAST_RAISE = Threshold(
    "throttlings.least-raise", 1.5, Unit.TIMES,
    means="A proposed CPU limit is at least this many times the present one.",
    above=1.0,
)  # fmt: skip

TOPIC = Topic(
    code="CPU002",
    name="throttled",
    title="A CPU quota cuts bursts",
    severity=Severity.WARNING,
    why="The kernel gives a quota anew every 100 ms. A replica that computes in bursts, with several threads "
    "at once, uses it up in a part of that time, and then stands still for the rest, though on average it "
    "uses much less than its limit. The step that was cut waits, and so does each replica that waits for "
    "it.",
    fix="A higher cpu, or whole cores of its own (cpu_policy: exclusive), which need no quota; and no more "
    "threads than cores.",
    risk="More CPU asked for means fewer replicas on a host. What is used on average stays the same.",
)


class _Cut(NamedTuple):
    """A replica whose bursts are cut.

    Attributes:
        replica: the replica.
        limit: its limit in cores.
        throttled: throttled seconds in each second, summed over cores.
        least_lost: the share of its time for which it stood still, at least.
        most_lost: the share of its time for which it stood still, at most.
    """

    replica: ReplicaSnapshot
    limit: float
    throttled: float
    least_lost: float
    most_lost: float


@rule(TOPIC, needs=(needs.CPU,), explains=("ps-cpu-bound", "slow-host", "slow-decoding", "waiting-for-ps"))
def throttled(case: Case) -> Iterator[Hit]:
    """Roles whose replicas are throttled far below their limit."""
    for role in (Role.PS, Role.CHIEF, Role.WORKER) if silences.trains(case) else ():
        cuts = [cut for replica in case.of_role(role) if (cut := _cut(case, replica))]
        gain = _gain(case, role, cuts)
        if not headrooms.matters(gain, case):
            continue
        worst = max(cuts, key=lambda cut: cut.throttled)
        names = [str(cut.replica.replica) for cut in cuts]
        used = worst.replica.cpu_cores or 0.0
        spec = case.spec.role(role)
        higher_limit = _wanted(case, cuts)
        yield Hit(
            what=f"The CPU quota cuts bursts of {listed(names)}: {worst.throttled:.2f} s throttled in each "
            f"second, at {used / worst.limit:.0%} of the limit.",
            subjects=tuple(names),
            evidence=(
                Evidence(
                    text=f"{worst.replica.replica} uses {used:.2f} of {worst.limit:.2f} cores on average",
                    sources=(case.source("cpu_cores", (worst.replica,)),),
                ),
                Evidence(
                    text=f"it stood still for {worst.least_lost:.0%} to {worst.most_lost:.0%} of the time "
                    "(the kernel adds up cores)",
                    sources=(case.source("throttled_seconds", (worst.replica,)),),
                ),
            ),
            changes=(FieldChange(path=("spec", "roles", str(role), "cpu"), value=higher_limit),)
            if spec is not None and spec.cpu_cores is not None
            else (),
            gain=gain,
        )


def _cut(case: Case, replica: ReplicaSnapshot) -> _Cut | None:
    """Return how much a quota cuts the bursts of a replica; None: it does not, or it was not measured.

    Samples in which the replica computed at its limit do not count as throttled.
    """
    limit, used, most_use = replica.cpu_limit_cores, replica.cpu_cores, case.value(MOST_USE)
    measured = case.samples_by_replica.get(replica.replica, ())
    own = [each for each in measured if each.throttled_seconds is not None and each.cpu_cores is not None]
    if not limit or used is None or len(own) < case.value(needs.LEAST_SAMPLES) or used > most_use * limit:
        return None
    seconds = sum(each.interval_seconds for each in own)
    below = (each.throttled_seconds or 0.0 for each in own if (each.cpu_cores or 0.0) <= most_use * limit)
    share = sum(below) / seconds if seconds > 0 else 0.0
    if share < case.value(LEAST_THROTTLED):
        return None
    at_once = float(len(replica.row.cores)) or case.machine_cores
    # A replica that stands still uses no cores.
    most = min(share, 1 - used / at_once if at_once else 1.0, case.value(_MOST_LOST))
    return _Cut(replica, limit, share, min(most, share / at_once) if at_once else 0.0, most)


def _gain(case: Case, role: Role, cuts: list[_Cut]) -> Gain | None:
    """Return the gain if no replica is throttled: a trainer loses its own time, a server that of all."""
    if not cuts:
        return None
    least, most = max(cut.least_lost for cut in cuts), max(cut.most_lost for cut in cuts)
    if role is Role.PS:
        computing = mean(case.trainers, lambda each: usages.cpu(case, each))
        reading = mean(case.trainers, lambda each: each.input_wait_share) or 0.0
        if computing is None:
            return None
        waits = max(0.0, 1 - min(1.0, computing) - reading)
        return Gain(low=1 / (1 - min(least, waits)), high=1 / (1 - min(most, waits)))
    share = len(cuts) / len(case.trainers)
    return Gain(low=1 + share * (1 / (1 - least) - 1), high=1 + share * (1 / (1 - most) - 1))


def _wanted(case: Case, cuts: list[_Cut]) -> float | str:
    """Return the CPU limit that does not cut bursts: the cores in use plus those that were throttled.

    It is at least `_LEAST_RAISE` times the present limit, rounded up to a tenth of a core.
    """
    least = case.value(_LEAST_RAISE)
    cores = max(max(least * cut.limit, (cut.replica.cpu_cores or 0.0) + cut.throttled) for cut in cuts)
    rounded = math.ceil(cores * 10 - 1e-9) / 10
    return int(rounded) if quantities.is_whole(rounded) else quantities.quantity_cores(rounded)
