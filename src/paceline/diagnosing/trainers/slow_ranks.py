"""A straggler among ranks that wait for each other in each step.

All ranks make the same steps, so their rates are equal and do not show the straggler. The time in all-reduce
does: a rank that is late waits least there, and all others wait for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from paceline.diagnosing import headrooms, needs, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import paces, slow_hosts
from paceline.diagnosing.trainers.slow_hosts import HostReason
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.words import listed

WAITING = Threshold(
    "slow-ranks.waiting", 0.2, Unit.SHARE,
    means="A rank makes the others wait if the others wait in all-reduce for more of their time than this "
    "rank does, by at least this share. Gradients of all ranks take the same way, so without a straggler all "
    "wait alike.",
    source='TensorFlow\'s profiler calls a fifth of a step "highly" bound',
)  # fmt: skip
LITTLE = Threshold(
    "slow-ranks.little", 0.5, Unit.SHARE,
    means="A rank that makes the others wait spends at most this share of the time in all-reduce that the "
    "others spend there. It may spend more if something else shows why it is late.",
)  # fmt: skip
MOST_OF_IT = Threshold(
    "slow-ranks.most-of-it", 0.5, Unit.SHARE,
    means="A rank is late because of its input if its longer wait for input explains at least this share of "
    "the time that the others wait more in all-reduce.",
)  # fmt: skip

TOPIC = Topic(
    code="WRK104",
    name="slow-rank",
    title="One rank makes all others wait in all-reduce",
    severity=Severity.WARNING,
    why="Ranks that train data-parallel add up their gradients in each step (all-reduce), so all begin the "
    "next one together. A rank that comes late finds the others waiting: it spends least time in all-reduce, "
    "and the job is as slow as this rank. It has fewer cores than the others, more to compute, or waits for "
    "its input.",
    fix="Give it what the others have: cores, a processor for itself, batches of the same size; or let it do "
    "no more than they do.",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SlowRank:
    """A rank that others wait for.

    Attributes:
        trainer: the slow rank.
        others: the other ranks.
        waits: the share of its time that the slow rank spends in all-reduce.
        usual: the median share of the other ranks.
    """

    trainer: ReplicaSnapshot
    others: tuple[ReplicaSnapshot, ...]
    waits: float
    usual: float


@rule(TOPIC, needs=(needs.STEPS, needs.ALL_REDUCE), explains=("compute-bound",))
def slow_rank(case: Case) -> Iterator[Hit]:
    """Ranks that wait far less in all-reduce than the others, because the others wait for them."""
    ranks = slow_ranks(case)
    if not ranks:
        return
    first, trainers, one = ranks[0], [rank.trainer for rank in ranks], len(ranks) == 1
    reasons = [reason for rank in ranks if (reason := _reason(case, rank)) is not None]
    gain = _gain(case, ranks)
    usual = f"{first.usual:.0%} of their time in all-reduce"
    yield Hit(
        what=f"{listed(trainer.replica for trainer in trainers)} {'makes' if one else 'make'} other ranks "
        f"wait: they spend {usual}, {'it' if one else 'these'} {_waits(ranks):.0%}.",
        subjects=paces.subjects(trainers),
        evidence=(
            Evidence(
                text="time in all-reduce: "
                + ", ".join(f"{rank.trainer.replica} {rank.waits:.0%}" for rank in ranks[:4])
                + f"; the median of the others {first.usual:.0%}",
                sources=(case.source("all_reduce_seconds", (*trainers, *first.others), steps=True),),
            ),
            *_seen(case, ranks, reasons),
        ),
        next_steps=tuple(dict.fromkeys(reason.next_step for reason in reasons)) or _ways(case, trainers),
        changes=tuple(dict.fromkeys(change for reason in reasons for change in reason.changes)),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def slow_ranks(case: Case) -> tuple[SlowRank, ...]:
    """Return the ranks that others wait for; the rank that waits least comes first."""
    known = [each for each in case.active_trainers if each.all_reduce_share is not None]
    made = [
        rank
        for each in known
        if (rank := _rank(each, [other for other in known if other is not each])) is not None
        if _is_late(case, rank) and not _are_full(case, rank)
    ]
    return tuple(sorted(made, key=lambda each: each.waits))


def _rank(trainer: ReplicaSnapshot, others: Sequence[ReplicaSnapshot]) -> SlowRank | None:
    """Return a rank compared with the others; None: there are no others."""
    usual = slow_hosts.median([_share(other) for other in others])
    if usual is None:
        return None
    return SlowRank(trainer=trainer, others=tuple(others), waits=_share(trainer), usual=usual)


def _is_late(case: Case, rank: SlowRank) -> bool:
    if rank.usual - rank.waits < case.value(WAITING):
        return False
    return rank.waits <= case.value(LITTLE) * rank.usual or _reason(case, rank) is not None


def _are_full(case: Case, rank: SlowRank) -> bool:
    """Return whether a waiting rank uses all its cores, so that a faster late rank would bring no more steps.

    If a quota throttles all ranks, they wait for each other in the order in which their periods end.
    """
    waiting = case.value(WAITING)
    at_limit = case.value(usages.AT_LIMIT)
    return any(
        (usages.cpu(case, each) or 0.0) >= at_limit
        for each in rank.others
        if _share(each) - rank.waits >= waiting
    )


def _share(trainer: ReplicaSnapshot) -> float:
    return min(1.0, trainer.all_reduce_share or 0.0)


def _waits(found: Sequence[SlowRank]) -> float:
    return sum(each.waits for each in found) / len(found)


def _gain(case: Case, found: Sequence[SlowRank]) -> Gain:
    """Return the gain if the slow ranks become as fast as the others.

    It is at least that of the next slowest rank as the new bottleneck, and at most that of the median rank.
    """
    slow = {each.trainer.replica for each in found}
    others = [_share(each) for each in found[0].others if each.replica not in slow]
    own = _waits(found)
    most = 1 / case.value(headrooms.MOST_TIMES)
    times = [1 / max(1 - max(0.0, each - own), most) for each in (min(others), found[0].usual)]
    return Gain(low=min(times), high=max(times))


def _reason(case: Case, rank: SlowRank) -> HostReason | None:
    """Return why a rank is late; None: no reason was seen."""
    own, others = rank.trainer, rank.others
    return (
        slow_hosts.fewer_cores(case, own, others)
        or _late_input(case, rank)
        or _more_computing(case, rank)
        or slow_hosts.shared_cores(case, own, others)
        or slow_hosts.stolen_cores(case, own, others)
    )


def _late_input(case: Case, rank: SlowRank) -> HostReason | None:
    usual = slow_hosts.median(each.input_wait_share for each in rank.others)
    waits = readings.waits(rank.trainer)
    if usual is None or waits - usual < case.value(MOST_OF_IT) * (rank.usual - rank.waits):
        return None
    return HostReason(
        text=f"{rank.trainer.replica} waits for its input {waits:.0%} of the time, the others {usual:.0%}",
        field="input_wait_seconds",
        next_step=f"see how fast {slow_hosts.place(rank.trainer)} reads, and whether its examples are larger",
    )


def _more_computing(case: Case, rank: SlowRank) -> HostReason | None:
    """Return the reason that a step costs a rank more CPU time than the others; or None.

    The rank does more in a step, or its cores are slower.
    """
    own = _cpu_seconds(rank.trainer)
    usual = slow_hosts.median(_cpu_seconds(each) for each in rank.others)
    if own is None or not usual or own < case.value(slow_hosts.MORE_TIME) * usual:
        return None
    return HostReason(
        text=f"a step takes {rank.trainer.replica} {own / usual:.1f} times as much CPU time as the others",
        field="cpu_cores",
        next_step=f"see what {rank.trainer.replica} does in a step and the others do not (larger batches, "
        "longer examples, evaluations, summaries), and what is different about its processor",
    )


def _cpu_seconds(trainer: ReplicaSnapshot) -> float | None:
    if trainer.cpu_cores is None or not trainer.steps_per_second:
        return None
    return rates.quotient(trainer.cpu_cores, trainer.steps_per_second)


def _seen(case: Case, found: Sequence[SlowRank], reasons: Iterable[HostReason]) -> Iterator[Evidence]:
    who = tuple(dict.fromkeys(one for each in found for one in (each.trainer, *each.others)))
    for reason in reasons:
        in_steps = reason.field == "input_wait_seconds"
        sources = (case.source(reason.field, who, steps=in_steps),) if reason.field else ()
        yield Evidence(text=reason.text, sources=sources)


def _ways(case: Case, trainers: Sequence[ReplicaSnapshot]) -> tuple[str, ...]:
    role, index = trainers[0].replica.role, trainers[0].replica.index
    return (
        f"see what {trainers[0].replica} does between its steps: py-spy dump --pid PID",
        f"paceline logs {case.recording.run.name} --role {role} --index {index} --tail 20",
    )
