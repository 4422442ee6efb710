"""A straggler that has more to do: it goes on at the usual rate after the others have ended.

Trainers that take shards from a common queue end together, as those of paceline.training do. So this rule
finds jobs whose trainers each have files of their own.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from paceline.diagnosing import headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import histories, paces
from paceline.diagnosing.trainers.histories import History
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures import rates
from paceline.model.measures.samples import Sample
from paceline.model.words import listed

LEAST_BEATS = Threshold(
    "big-shards.least-beats", 5.0, Unit.TIMES,
    means="A trainer has no steps left if it has not reported for longer than this many of its reports' "
    "usual intervals, and for longer than `big-shards.least-seconds`.",
)  # fmt: skip
LEAST_SECONDS = Threshold(
    "big-shards.least-seconds", 5.0, Unit.SECONDS,
    means="A trainer has no steps left only if it has not reported for longer than this. Its use of cores "
    "after its last report is measured from half of this time on.",
)  # fmt: skip
RESTING = Threshold(
    "big-shards.resting", 0.3, Unit.SHARE,
    means="A silent trainer has ended its part if it uses less than this share of the cores that it used "
    "before. It still asks whether the training is all over, so it uses some.",
)  # fmt: skip
LEAST_BYTES = Threshold(
    "big-shards.least-bytes", 100.0, Unit.BYTES_PER_SECOND,
    means="A silent trainer that sends fewer bytes a second than this is stopped or stuck.",
)  # fmt: skip
LEAST_SWITCHES = Threshold(
    "big-shards.least-switches", 5.0, Unit.PER_SECOND,
    means="A silent trainer whose threads make fewer voluntary switches a second than this is stopped or "
    "stuck. The rule looks at switches where the bytes that are sent are not measured.",
)  # fmt: skip

TOPIC = Topic(
    code="WRK103",
    name="big-shard",
    title="A worker has more to do than the others",
    severity=Severity.WARNING,
    why="Each worker has its fixed share of the examples, and one share is bigger: that worker is as fast as "
    "the others, but goes on alone when they have ended, and the job ends with it.",
    fix="Let workers take small shards from a common queue, as paceline.training does, or cut the files "
    "evenly.",
)


@rule(TOPIC, needs=(needs.STEPS,))
def big_shard(case: Case) -> Iterator[Hit]:
    """Few trainers that go on at the usual rate after the others are done."""
    all_histories = histories.of(case)
    if len(all_histories) < 2:
        return
    end = max(history.until for history in all_histories)
    done = [history for history in all_histories if _silent_seconds(case, history, end) > 0]
    going = [history for history in all_histories if history not in done]
    # One trainer that is done proves nothing: most have to be done while few go on.
    if len(done) < len(going) or not going or not _are_done(case, done):
        return
    common = min(history.until for history in done)
    if not all(_keeps_pace(case, history, done, common) for history in going):
        return
    times = _times(all_histories, end)
    gain = Gain(low=times, high=times)
    if headrooms.matters(gain, case):
        yield _hit(case, going, done, end=end, gain=gain)


def _times(known: Sequence[History], end: float) -> float:
    """Return the speedup of the job if each trainer had the same amount of work."""
    even = statistics.mean(each.seconds for each in known)
    return (end - statistics.mean(each.since for each in known)) / even if even > 0 else 1.0


def _hit(case: Case, going: Sequence[History], done: Sequence[History], *, end: float, gain: Gain) -> Hit:
    names, one = listed(each.trainer.replica for each in going), len(going) == 1
    alone = end - max(each.until for each in done)
    lasts = quantities.format_seconds(round(alone))
    so_far = " so far" if case.is_running else ""
    trainers = [each.trainer for each in (*going, *done)]
    told = ", ".join(f"{each.trainer.replica} {each.seconds:,.0f} s" for each in (*going[:2], *done[:3]))
    return Hit(
        what=f"{names} {'has' if one else 'have'} more to do: {'it goes' if one else 'they go'} on at the "
        f"usual rate, {lasts}{so_far} after the others ended.",
        subjects=paces.subjects([each.trainer for each in going]),
        evidence=(
            Evidence(
                text=f"trained{so_far}: {told}",
                sources=(case.source("steps", trainers, steps=True),),
            ),
        ),
        next_steps=(
            "give all workers the same files and let them take shards from a queue: paceline.training does, "
            "and so does tf.data's service",
            "or cut the files so that each worker has as many examples as the others",
        ),
        gain=gain,
    )


def _silent_seconds(case: Case, history: History, end: float) -> float:
    """Return for how long a trainer has been silent beyond the usual time; 0 or less: it is not silent."""
    beats = case.value(LEAST_BEATS) * history.beat_seconds
    return end - history.until - max(case.value(LEAST_SECONDS), beats)


def _keeps_pace(case: Case, going: History, done: Sequence[History], common: float) -> bool:
    """Return whether a trainer was as fast as the others while they trained; slowness is another cause."""
    own = going.rate(common)
    usual = sorted(rate for each in done if (rate := each.rate(common)) is not None)
    straggling = case.value(paces.STRAGGLING)
    return own is not None and bool(usual) and own >= straggling * usual[len(usual) // 2]


def _are_done(case: Case, done: Sequence[History]) -> bool:
    return all(_is_done(case, each) for each in done)


def _is_done(case: Case, history: History) -> bool:
    """Return whether a silent trainer has done its part: it has succeeded, or rests without being stuck.

    A stopped process does nothing at all, and one that saves or evaluates is busy. A trainer that has nothing
    left to do waits for the others and checks now and then whether all are done.
    """
    row = history.trainer.row
    if row.attempt != history.attempt:
        return False
    if row.phase is ReplicaPhase.SUCCEEDED:
        return True
    if row.phase not in (ReplicaPhase.RUNNING, ReplicaPhase.STOPPED):
        return False
    own = case.histories.get(history.trainer.replica, [])
    rests_from = history.until + case.value(LEAST_SECONDS) / 2
    before = [each for each in own if each.at <= history.until and each.at > history.since]
    after = [each for each in own if each.at - each.interval_seconds >= rests_from]
    worked, works = _cpu(before), _cpu(after)
    if worked is None or works is None:
        return False
    return works < case.value(RESTING) * worked and _lives(case, after)


def _cpu(samples: Sequence[Sample]) -> float | None:
    return rates.time_mean(samples, lambda each: each.cpu_cores)


def _lives(case: Case, samples: Sequence[Sample]) -> bool:
    moved = rates.rate(samples, lambda each: each.network_sent_bytes)
    if moved is not None:
        return moved >= case.value(LEAST_BYTES)
    switched = rates.rate(samples, lambda each: each.voluntary_switches)
    return switched is not None and switched >= case.value(LEAST_SWITCHES)
