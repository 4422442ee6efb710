"""How a fault's effect is found out: against the healthy twin, or by its direct sign."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable

from benchmarks.diagnosis import effects
from benchmarks.diagnosis.knowns import Known
from benchmarks.diagnosis.trials import FELT_SECONDS, Outcome
from paceline.model.jobs.statuses import ExitKind
from paceline.model.roles import Role

LEAST_SLOWDOWN = 0.10
#: A straggler does at most so much of what the others do.
STRAGGLES = 0.75


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What was felt of a fault.

    Attributes:
        what: in words, with what was wanted.
        value: that was measured.
        holds: whether it is enough for the run to count.
        speed_ratio: examples a second over those of the twin; None: it did not train.
    """

    what: str
    value: float
    holds: bool
    speed_ratio: float | None = None


Check = Callable[[Known, Outcome], Effect]


def _ratio(known: Known, outcome: Outcome) -> float:
    since = outcome.began_at + FELT_SECONDS
    return effects.speed(outcome.recording, since) / known.speed if known.speed else 0.0


def _effect(known: Known, outcome: Outcome, what: str, value: float, holds: bool) -> Effect:
    return Effect(what=what, value=value, holds=holds, speed_ratio=round(_ratio(known, outcome), 3))


def slower(least: float = LEAST_SLOWDOWN) -> Check:
    """The job trains by at least so much slower than its twin."""

    def check(known: Known, outcome: Outcome) -> Effect:
        value = 1.0 - _ratio(known, outcome)
        return _effect(known, outcome, f"slower than its twin by >= {least:g}", value, value >= least)

    return check


def not_faster(most: float, *, per_worker: float) -> Check:
    """The job trains hardly faster than its twin, and each worker much slower than there."""

    def check(known: Known, outcome: Outcome) -> Effect:
        own = effects.rates(outcome.recording, outcome.began_at + FELT_SECONDS)
        value = statistics.fmean(own.values()) / known.rate
        what = f"a worker's speed over the twin's <= {per_worker:g}, and the job's <= {most:g}"
        return _effect(known, outcome, what, value, value <= per_worker and _ratio(known, outcome) <= most)

    return check


def straggles(replica: str) -> Check:
    """One trainer is much slower than the others."""

    def check(known: Known, outcome: Outcome) -> Effect:
        own = effects.rates(outcome.recording, outcome.began_at + FELT_SECONDS)
        others = statistics.median(rate for name, rate in own.items() if name != replica)
        value = own[replica] / others if others else 1.0
        what = f"{replica}'s speed over the others' median <= {STRAGGLES:g}"
        return _effect(known, outcome, what, value, value <= STRAGGLES)

    return check


def outlasts(replica: str, least: float) -> Check:
    """One trainer trains at least so many times as long as the others, which do not train any more."""

    def check(known: Known, outcome: Outcome) -> Effect:
        last = {str(each.replica): each.at - outcome.began_at for each in outcome.recording.steps}
        value = last[replica] / max(at for name, at in last.items() if name != replica)
        return _effect(known, outcome, f"{replica} trains >= {least:g} times as long", value, value >= least)

    return check


def idle(replica: str) -> Check:
    """One trainer has no steps while the others train."""

    def check(known: Known, outcome: Outcome) -> Effect:
        steps = sum(each.steps or 0 for each in outcome.recording.steps if str(each.replica) == replica)
        return _effect(known, outcome, f"steps of {replica}: 0", float(steps), steps == 0)

    return check


def busy(role: Role, least: float) -> Check:
    """Every replica of a role uses at least so much of its cores."""

    def check(known: Known, outcome: Outcome) -> Effect:
        value = min(
            effects.cpu_of_limit(outcome.recording, role, outcome.began_at + FELT_SECONDS), default=0.0
        )
        what = f"cores used of its limit by each {role} >= {least:g}"
        return _effect(known, outcome, what, value, value >= least)

    return check


def resting(role: Role, most: float) -> Check:
    """No replica of a role uses more than so much of its cores."""

    def check(known: Known, outcome: Outcome) -> Effect:
        value = max(
            effects.cpu_of_limit(outcome.recording, role, outcome.began_at + FELT_SECONDS), default=1.0
        )
        what = f"cores used of its limit by each {role} <= {most:g}"
        return _effect(known, outcome, what, value, value <= most)

    return check


def memory(role: Role, *, least: float = 0.0, most: float = math.inf) -> Check:
    """The replica of a role that needs most has used so much of its limit."""

    def check(known: Known, outcome: Outcome) -> Effect:
        shares = [
            each.memory_bytes / each.memory_limit_bytes
            for each in outcome.recording.samples
            if each.replica.role is role and each.memory_bytes and each.memory_limit_bytes
        ]
        value = max(shares, default=0.0)
        what = f"memory used of the limit of a {role} between {least:g} and {most:g}"
        return _effect(known, outcome, what, value, bool(shares) and least <= value <= most)

    return check


def stands_still(least_seconds: float) -> Check:
    """No trainer has reported a step for so long, and had before."""

    def check(known: Known, outcome: Outcome) -> Effect:
        last = max((each.at for each in outcome.recording.steps), default=math.inf)
        value = outcome.recording.at - last
        return _effect(
            known, outcome, f"seconds without a step >= {least_seconds:g}", value, value >= least_seconds
        )

    return check


def never_stepped() -> Check:
    """No trainer has ever reported a step."""

    def check(known: Known, outcome: Outcome) -> Effect:
        count = len(outcome.recording.steps)
        return Effect(what="step reports: 0", value=float(count), holds=count == 0)

    return check


def loses_its_loss() -> Check:
    """The last reports of all trainers have no finite loss."""

    def check(known: Known, outcome: Outcome) -> Effect:
        newest = {str(each.replica): each.loss for each in outcome.recording.steps}
        lost = [loss is None or not math.isfinite(loss) for loss in newest.values()]
        value = sum(lost) / len(lost) if lost else 0.0
        return _effect(known, outcome, "trainers whose loss is not finite: all", value, value == 1.0)

    return check


def ended(kind: ExitKind) -> Check:
    """A replica has ended in this way."""

    def check(known: Known, outcome: Outcome) -> Effect:
        count = sum(row.exit is not None and row.exit.kind is kind for row in outcome.recording.replicas)
        return Effect(what=f"replicas that ended as {kind}: >= 1", value=float(count), holds=count >= 1)

    return check


def ailing(outcome: Outcome) -> str | None:
    """Return what is not healthy about a run that is to be; None: nothing."""
    recording, since = outcome.recording, outcome.began_at + FELT_SECONDS
    for role, most in ((Role.PS, 0.8), (Role.WORKER, 0.9)):
        used = max(effects.cpu_of_limit(recording, role, since), default=0.0)
        if used > most:
            return f"a {role} uses {used:.2f} of its cores"
    full = max(effects.link_use(recording, since), default=0.0)
    if full > 0.55:
        return f"{full:.0%} of a link's bandwidth is used: a faster machine wants wider ones (--speed)"
    waits = max(effects.input_wait(recording, since).values(), default=0.0)
    if waits > 0.1:
        return f"a worker waits {waits:.0%} of its time for input"
    own = effects.rates(recording, since)
    if min(own.values()) < 0.8 * statistics.median(own.values()):
        return f"a worker is slower than the others: {own}"
    return None
