"""How much faster trainers could be if servers and links never made them wait."""

from __future__ import annotations

from typing import TypeGuard

from paceline.diagnosing import usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.roles import ReplicaId
from paceline.model.traces import trace_summaries
from paceline.model.traces.traced_steps import Trace

LEAST_GAIN = Threshold(
    "headrooms.least-gain", 1.1, Unit.TIMES,
    means="A cause is more than a remark if a change makes the job at least this many times as fast. Less is "
    "within the noise of a run.",
    above=1.0,
)  # fmt: skip
MOST_TIMES = Threshold(
    "headrooms.most-times", 8.0, Unit.TIMES,
    means="One measurement is no basis for a plan beyond this many times the speed. What trainers do by "
    "themselves is then a small part of it, and something else will bind before.",
    above=1.0,
)  # fmt: skip


def busy_share(case: Case) -> float | None:
    """Return the mean share of time in which trainers compute or wait for input.

    None: for no trainer is it known how long it computes.
    """
    computing = _computing(case)
    return mean(
        case.trainers,
        lambda each: (
            None
            if each.replica not in computing
            else min(1.0, computing[each.replica] + (each.input_wait_share or 0.0))
        ),
    )


def _computing(case: Case) -> dict[ReplicaId, float]:
    """Return for each trainer the share of its time in which it computes, or waits for busy cores.

    A trainer that shares its cores cannot compute while other replicas use them. If there is a trace, the
    larger of the two shares counts: a trainer that computes on one of its four cores uses only a quarter
    of them.
    """
    full = {
        pool: (rates.total(each.cpu_cores for each in users) or 0.0) / pool.cores
        for pool, users in usages.pools(case).items()
    }
    traced = {each.trainer: share for each in case.recording.traces if (share := _traced(each)) is not None}
    found = {}
    for trainer in case.trainers:
        own, pool = usages.cpu(case, trainer), usages.pool(case, trainer)
        shares = [traced[str(trainer.replica)]] if str(trainer.replica) in traced else []
        if own is not None and pool is not None:
            shares += [own, full[pool], trainer.gpu_utilization or 0.0]
        if shares:
            found[trainer.replica] = min(1.0, max(shares))
    return found


def _traced(trace: Trace) -> float | None:
    split = trace_summaries.mean_split(trace)
    if split is None or split.total_microseconds <= 0:
        return None
    return split.compute_microseconds / split.total_microseconds


def most_times(case: Case) -> float | None:
    """Return the possible speedup of trainers if servers and links never made them wait.

    The factor is between 1 and `MOST_TIMES`; None: not known.
    """
    return _times(case, busy_share(case))


def most_times_fed(case: Case) -> float | None:
    """Return the same factor as `most_times` for trainers that never wait for input either."""
    computing = _computing(case)
    return _times(case, mean(case.trainers, lambda each: computing.get(each.replica)))


def _times(case: Case, share: float | None) -> float | None:
    return None if share is None else 1 / max(share, 1 / case.value(MOST_TIMES))


def within(case: Case, gain: Gain | None, *, spared_cores: float = 0.0) -> Gain | None:
    """Return a gain, limited to what the trainers and the shared machine allow.

    Args:
        case: the measurements.
        gain: the gain if there were no other bottleneck.
        spared_cores: the cores of the machine that the change frees.
    """
    if gain is None:
        return None
    most = min(most_times(case) or case.value(MOST_TIMES), machine_times(case, spared_cores))
    return Gain(low=min(gain.low, most), high=min(gain.high, most))


def machine_times(case: Case, spared_cores: float = 0.0) -> float:
    """Return how many times the current load the cores of the machine allow, at most `MOST_TIMES`.

    A machine that emulates hosts stands for several machines, so it sets no limit.
    """
    used, cores = usages.machine_cores(case) or (0.0, 0.0)
    if used <= spared_cores or case.spec.hosts:
        return case.value(MOST_TIMES)
    return max(1.0, cores / (used - spared_cores))


def matters(gain: Gain | None, case: Case) -> TypeGuard[Gain]:
    """Whether a gain is larger than the noise of a run."""
    return gain is not None and gain.high >= case.value(LEAST_GAIN)


def severity(gain: Gain | None, case: Case) -> Severity | None:
    """Return the severity of a cause with this gain: INFO if it is small; None: the severity of its rule."""
    return None if matters(gain, case) else Severity.INFO
