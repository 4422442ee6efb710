"""The decoding of examples holds trainers up: their cores are busy with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from paceline.diagnosing import headrooms, needs, outlooks, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.inputs import between_steps, readings
from paceline.diagnosing.inputs.between_steps import BetweenStepsActivity
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role

MOST_TIMES = Threshold(
    "slow-decoding.most-times", 4.0, Unit.TIMES,
    means="The rule asks for no more than this many times the present cores, and promises no more than this "
    "many times the present speed. Cheaper decoding is the better way beyond that.",
    above=1.0,
)  # fmt: skip

TOPIC = Topic(
    code="INP002",
    name="slow-decoding",
    title="The decoding of examples holds trainers up",
    severity=Severity.WARNING,
    why="Examples are decoded (parsed, looked up in vocabularies, hashed) by the trainers' own cores. If "
    "these are busy and the trainers wait for batches all the same, it is decoding that keeps them busy: it "
    "takes longer than the step that it is for. Where it takes less, no trainer waits for a batch, but steps "
    "get only the cores that it leaves them.",
    fix="Decode less in each step (Parquet with numbers, ids made beforehand), in more threads where cores "
    "rest, or give trainers more cores.",
    risk="More cores are taken from the machine or the cluster.",
)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS, needs.INPUT_WAIT))
def slow_decoding(case: Case) -> Iterator[Hit]:
    """Most trainers wait for input while their cores are busy, or decoding takes most of their cores."""
    reading = readings.find(case, case.value(readings.DECODING), most_times=MOST_TIMES)
    decoding = readings.most(case, reading, decode=True) if reading else []
    if reading is not None and between_steps.most(case, reading, BetweenStepsActivity.COMPUTING):
        return  # One thread of the script makes the batches, so more cores do not help: see `python_inputs`.
    if reading is None or not decoding:
        yield from _burdened(case)
        return
    yield readings.hit(
        case,
        reading,
        decoding,
        "are busy",
        what=f"Trainers wait for decoding: {reading.share:.0%} of their time they have no examples, though "
        "their cores are busy.",
        changes=tuple(_changes(case, reading.trainers, reading.share)),
        next_steps=_cheaper(case),
    )


def _cheaper(case: Case) -> tuple[str, ...]:
    return _CHEAPER_LOADING if readings.is_loaded(case) else _CHEAPER


#: The next steps that make decoding cheaper.
_CHEAPER = (
    "do beforehand what is done for each example: Parquet with ids as numbers, not CSV or texts",
    "decode whole columns with NumPy or TensorFlow, not row by row in Python",
)
_CHEAPER_LOADING = (
    "do beforehand what is done for each example: files of numbers, mapped into memory, not texts or images",
    "make whole batches with NumPy or PyTorch (Dataset.__getitems__, collate_fn), not example by example",
    "DataLoader(num_workers=...) makes batches in other processes, where the replica has cores for these",
)


def _burdened(case: Case) -> Iterator[Hit]:
    """Yield a hit if most trainers are at the limit of their cores and spend much of them on decoding."""
    active = case.active_trainers
    burdened = tuple(trainer for trainer in active if readings.is_burdened(case, trainer))
    share = mean(burdened, readings.decoding_share)
    if 2 * len(burdened) <= len(active) or share is None:
        return
    least = 1 / case.value(MOST_TIMES)
    half, none = (outlooks.limited(case, 1 / max(1 - part, least)) for part in (share / 2, share))
    gain = Gain(low=half.low, high=none.high)
    used = mean(burdened, lambda trainer: usages.busy(case, trainer)) or 0.0
    yield Hit(
        what=f"Decoding takes {share:.0%} of the CPU time of the trainers, whose cores are at their limit.",
        subjects=tuple(str(trainer.replica) for trainer in burdened),
        evidence=(
            Evidence(
                text=f"threads that read and decode use {share:.0%} of what {len(burdened)} of {len(active)} "
                "trainers use",
                sources=(case.source("input_cpu_seconds", burdened, steps=True),),
            ),
            Evidence(
                text=f"their cores are used to {used:.0%}", sources=(case.source("cpu_cores", burdened),)
            ),
        ),
        changes=tuple(_changes(case, burdened, share)),
        next_steps=_cheaper(case),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def _changes(case: Case, trainers: Sequence[ReplicaSnapshot], share: float) -> Iterator[FieldChange]:
    """Yield the changes to as many cores as decoding needs for no trainer to wait.

    An example takes as much CPU time as now, spread over more cores. The number is rounded up to tenths.
    Nothing is yielded for a role whose replicas share the cores of a host.
    """
    most = case.value(MOST_TIMES)
    times = min(most, 1 / max(1 - share, 1 / most))
    for role in (Role.CHIEF, Role.WORKER):
        spec = case.spec.role(role)
        if spec is not None and spec.cpu_cores and _is_own(case, trainers, role):
            value = math.ceil(spec.cpu_cores * times * 10 - 1e-6) / 10
            yield FieldChange(path=("spec", "roles", str(role), "cpu"), value=value)


def _is_own(case: Case, trainers: Sequence[ReplicaSnapshot], role: Role) -> bool:
    own = [each for each in trainers if each.replica.role is role]
    pools = (usages.pool(case, each) for each in own)
    return bool(own) and all(
        pool is not None and pool.name == str(each.replica) for pool, each in zip(pools, own, strict=True)
    )
