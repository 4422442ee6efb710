"""Whether trainers wait for their input, and whether it is read or decoded while they wait."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from paceline.diagnosing import headrooms, outlooks, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.rules import Hit
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.jobs.job_specs import Framework
from paceline.model.measures.snapshots import ReplicaSnapshot

INPUT_BOUND = Threshold(
    "readings.input-bound", 0.2, Unit.SHARE,
    means="A trainer that waits for input for at least this share of its time is bound by its input.",
    source='TensorFlow\'s profiler calls a trainer "highly input-bound" from 20 % on, and "moderately" from '
    "5 % (op_stats_to_input_pipeline_analysis.cc)",
)  # fmt: skip
DECODING = Threshold(
    "readings.decoding", 0.1, Unit.SHARE,
    means="A trainer whose cores are at their limit is bound by its input if it waits for input for at least "
    "this share of its time. Decoding and computing take the cores from each other, so the trainer waits for "
    "less of the time of decoding. At a share of 0.1 it can win 10 %.",
    source="healthy trainers wait 2 % at most",
)  # fmt: skip
DECODES_MOST = Threshold(
    "readings.decodes-most", 0.3, Unit.SHARE,
    means="The cores of a trainer are busy with decoding if decoding takes at least this share of the "
    "trainer's CPU time. At a share of 0.3 the trainer would be 18 % faster if decoding cost half.",
    source="fit runs: up to 0.09 in healthy jobs, 0.72 where ids are decoded in Python",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InputBoundJob:
    """A job most of whose trainers wait for input.

    Attributes:
        trainers: the trainers that wait.
        share: the mean share of their time in which they wait.
        gain: the gain if no trainer waited for input.
        evidence: the evidence of the waiting.
    """

    trainers: tuple[ReplicaSnapshot, ...]
    share: float
    gain: Gain
    evidence: Evidence


def find(case: Case, least: float, *, most_times: Threshold = headrooms.MOST_TIMES) -> InputBoundJob | None:
    """Return the trainers that wait for input; None: most wait less than ``least``, or it is not measured.

    Args:
        case: the measurements.
        least: the least share of the time that trainers wait.
        most_times: no more than this many times the speed is promised.
    """
    known = [each for each in case.trainers if each.input_wait_share is not None]
    bound = tuple(each for each in known if waits(each) >= least)
    if not bound or 2 * len(bound) <= len(known):
        return None
    share = min(1.0, mean(bound, lambda each: each.input_wait_share) or 0.0)
    told = f"{len(bound)} of {len(known)} trainers wait" if len(bound) < len(known) else "trainers wait"
    times = 1 / max(1 - share, 1 / case.value(most_times))
    return InputBoundJob(
        trainers=bound,
        share=share,
        gain=outlooks.limited(case, times),
        evidence=Evidence(
            text=f"{told} for input {share:.0%} of the time",
            sources=(case.source("input_wait_seconds", bound, steps=True),),
        ),
    )


def is_loaded(case: Case) -> bool:
    """Return whether batches come from PyTorch's DataLoader, which can make them while a step runs."""
    return case.spec.framework is Framework.PYTORCH


def most(case: Case, reading: InputBoundJob, *, decode: bool) -> list[ReplicaSnapshot]:
    """Return the waiting trainers that decode meanwhile, or those that do not.

    The result is empty if they are not most of the waiting trainers: one trainer whose cores are busy with
    something else says nothing about all of them.
    """
    found = [each for each in reading.trainers if decodes(case, each) is decode]
    return found if 2 * len(found) > len(reading.trainers) else []


def hit(case: Case, reading: InputBoundJob, found: Sequence[ReplicaSnapshot], how: str, **more: Any) -> Hit:
    """Return the hit that trainers wait for input while the cores of most are busy, or rest.

    Args:
        case: the measurements.
        reading: the trainers that wait.
        found: those of them whose cores are busy, or rest.
        how: what their cores do, in words.
        **more: further attributes of the hit.
    """
    used = mean(found, lambda each: usages.busy(case, each)) or 0.0
    cores = Evidence(
        text=f"meanwhile their cores {how}: {used:.0%} are used on average",
        sources=(case.source("cpu_cores", found),),
    )
    return Hit(
        subjects=tuple(str(each.replica) for each in reading.trainers),
        evidence=(reading.evidence, cores),
        gain=reading.gain if headrooms.matters(reading.gain, case) else None,
        severity=headrooms.severity(reading.gain, case),
        **more,
    )


def decoding_share(trainer: ReplicaSnapshot) -> float | None:
    """Return the share of a trainer's CPU time that reading and decoding take; None: not measured."""
    if trainer.input_cpu_cores is None or not trainer.cpu_cores:
        return None
    return min(1.0, trainer.input_cpu_cores / trainer.cpu_cores)


def is_burdened(case: Case, trainer: ReplicaSnapshot) -> bool:
    """Return whether decoding takes much of a trainer's CPU time while its cores are at their limit.

    Such a trainer need not wait for input, because batches are made ahead: its steps get the cores that
    decoding leaves them.
    """
    busy, share = usages.busy(case, trainer), decoding_share(trainer)
    is_at_limit = busy is not None and busy >= case.value(usages.AT_LIMIT)
    return is_at_limit and share is not None and share >= case.value(DECODES_MOST)


def waits(trainer: ReplicaSnapshot) -> float:
    """Return the share of its time that a trainer waits for input; 0 if it is not known.

    The waits of several threads of a script may have been added up.
    """
    return min(1.0, trainer.input_wait_share or 0.0)


def decodes(case: Case, trainer: ReplicaSnapshot) -> bool | None:
    """Return whether a trainer's cores are busy decoding while it waits for input; None: not measured.

    A trainer that waits for storage leaves its cores idle for at least its whole wait. A trainer that decodes
    uses them all the time. The limit is half way: the cores are busy for more than half of the wait.
    """
    busy = usages.busy(case, trainer)
    if busy is None:
        return None
    return busy >= min(case.value(usages.AT_LIMIT), 1 - waits(trainer) / 2)
