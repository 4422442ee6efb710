"""Proposals of cures that no cause suggests: changes in an instrumented script without the training library.

The most that a cure can bring follows from measurements of what it saves: bytes of ids that repeat, time
between computing, waits for input, bytes over a link that binds. What the saving itself costs is not known
before a trial, so the least gain of every cure is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing import headrooms, outlooks, scalings, trainings, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.inputs import readings
from paceline.diagnosing.optimizers import reliefs
from paceline.diagnosing.scripts import asked
from paceline.model.explanations.causes import FieldChange, Gain
from paceline.model.measures import rates
from paceline.model.measures.script_facts import Name
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.studies.proposals import Proposal
from paceline.model.traces import trace_summaries
from paceline.model.variables import cures, script_plans
from paceline.model.variables.cures import Cure
from paceline.model.variables.variables import Variable

#: Saving a smaller share of a step's bytes is not worth a trial: the effect is within the noise of a run.
LEAST_SPARED = 0.1
#: Calls do not matter for a Keras step that is longer: callbacks and dispatch take from a part of a
#: millisecond to a few, so saving nine of ten calls saves less than a tenth of the step.
SHORT_STEP_SECONDS = 0.05
#: With a smaller busy share, trainers do not compute most of the time.
MOSTLY = 0.5
#: Trainers wait for input if the wait takes at least this share of a step: `missing_prefetches.INPUT_BOUND`.
INPUT_BOUND = 0.1
#: A trainer needs at least this many cores to decode several examples at once.
_LEAST_CORES = 1.5
#: More cores of a trainer can decode if at least this many rest.
_LEAST_RESTING = 0.5
#: 16-bit values need this share of the bytes of float32 values.
_HALF = 0.5


def proposals(case: Case) -> Iterator[Proposal]:
    """Yield cures that were not asked for, for a job whose script is instrumented."""
    if not trainings.is_seen(case):
        return
    yield from _unique_ids(case)
    yield from _steps_per_execution(case)
    yield from _inputs(case)
    yield from _transfer_precision(case)


def _unique_ids(case: Case) -> Iterator[Proposal]:
    tables, moved = _tables(case), _moved_bytes(case)
    spared = sum((each.step_bytes or 0.0) * (1 - (script_plans.kept_share(each) or 1.0)) for each in tables)
    if not moved or spared / moved < LEAST_SPARED or not trainings.is_of_sessions(case):
        return
    share = spared / moved
    relieved = reliefs.gain(case, share, share)
    if relieved is not None:
        most = max(tables, key=lambda each: 1 - (script_plans.kept_share(each) or 1.0))
        yield from _proposal(
            case,
            cures.UNIQUE_IDS,
            relieved.high,
            f"ids repeat in a batch: {share:.0%} of the bytes of a step are for rows that it has already, of "
            f"{most.name} {1 - (script_plans.kept_share(most) or 1.0):.0%}",
        )


def _steps_per_execution(case: Case) -> Iterator[Proposal]:
    steps, busy = (
        rates.total(each.steps_per_second for each in case.active_trainers),
        headrooms.busy_share(case),
    )
    if (
        not steps
        or busy is None
        or busy >= MOSTLY
        or not any(each.value for each in asked.of_trainers(case, Name.MODEL_FIT))
    ):
        return
    seconds = len(case.active_trainers) / steps
    if seconds > SHORT_STEP_SECONDS:
        return
    in_one = int(cures.STEPS_PER_EXECUTION.example)
    times = 1 / (busy + (1 - busy) / in_one)
    yield from _proposal(
        case,
        cures.STEPS_PER_EXECUTION,
        outlooks.limited(case, min(times, case.value(headrooms.MOST_TIMES))).high,
        f"a step takes {seconds * 1e3:.1f} ms, and trainers compute for {busy:.0%} of it; of {in_one} calls "
        f"{in_one - 1} are spared",
    )


def _inputs(case: Case) -> Iterator[Proposal]:
    pipelines = asked.of_trainers(case, Name.PREFETCHES)
    share = _input_share(case)
    if not pipelines or share is None or share < INPUT_BOUND:
        return
    measured = f"trainers wait for input {share:.0%} of the time"
    if not all(each.value for each in pipelines):
        # Input and computing then overlap, so the longer of the two is left.
        times = 1 / max(share, 1 - share)
        yield from _proposal(case, cures.PREFETCH, outlooks.limited(case, times).high, measured)
    cores = mean(case.active_trainers, lambda each: usages.cores(case, each))
    resting = mean(case.active_trainers, lambda each: _resting_cores(case, each))
    if cores is None or resting is None or cores < _LEAST_CORES or resting < _LEAST_RESTING:
        return
    # All cores decode then, so the wait becomes shorter by the share of cores that rests now.
    times = 1 / max(1 - share * resting / cores, 1 / case.value(headrooms.MOST_TIMES))
    yield from _proposal(
        case,
        cures.PARALLEL_MAP,
        outlooks.limited(case, times).high,
        f"{measured}, while {resting:.1f} of their {cores:.1f} cores rest",
    )


def _transfer_precision(case: Case) -> Iterator[Proposal]:
    outlook, moved = scalings.outlook(case), _moved_bytes(case)
    if outlook is None or not moved or not trainings.is_of_sessions(case):
        return
    if not outlook.binds.startswith(outlooks.link_station("")):
        return
    rows = [
        each for each in _tables(case) if each.element_bytes == 4 and each.value_type in (None, "float32")
    ]
    spared = sum((each.step_bytes or 0.0) * each.row_bytes / each.looked_up_bytes for each in rows) / moved
    found = outlooks.gain(case, lambda now: outlooks.links_times(now, 1 / max(1 - spared, _HALF)))
    within = headrooms.within(case, found)
    if within is not None and spared >= LEAST_SPARED:
        yield from _proposal(
            case,
            cures.TRANSFER_PRECISION,
            within.high,
            f"{outlook.binds} binds, and {spared:.0%} of a step's bytes are halves of float32 values",
        )


def _proposal(case: Case, cure: Cure, high: float, measured: str) -> Iterator[Proposal]:
    changes: Sequence[FieldChange] = trainings.cured(case, cure)
    if changes:
        yield Proposal(
            name=cure.name,
            what=f"{cure.title}: {measured}.",
            changes=tuple(changes),
            gain=Gain(low=1.0, high=max(1.0, high)),
            basis="what was measured of what it spares, at most; nothing says what it costs but a trial",
            risk=cure.risk,
        )


def _tables(case: Case) -> tuple[Variable, ...]:
    plan = case.placed
    return tuple(each for each in (plan.variables if plan else ()) if each.sparse)


def _moved_bytes(case: Case) -> float | None:
    """Return the bytes that a step moves; None: the traffic of a variable is not known."""
    plan = case.placed
    sizes = [each.step_bytes for each in plan.variables] if plan else []
    known = [each for each in sizes if each is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _input_share(case: Case) -> float | None:
    """Return the share of the time that trainers wait for input: as measured, or else as traced."""
    reading = readings.find(case, INPUT_BOUND)
    if reading is not None:
        return reading.share
    splits = [split for trace in case.recording.traces if (split := trace_summaries.mean_split(trace))]
    shares = [
        each.input_wait_microseconds / each.total_microseconds
        for each in splits
        if each.input_wait_microseconds is not None and each.total_microseconds > 0
    ]
    return sum(shares) / len(shares) if shares else None


def _resting_cores(case: Case, trainer: ReplicaSnapshot) -> float | None:
    cores, busy = usages.cores(case, trainer), usages.busy(case, trainer)
    return None if cores is None or busy is None else cores * max(0.0, 1 - busy)
