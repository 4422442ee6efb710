"""Compares runs with the first of them: how fast each is, how well it learns, and what else differs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import Cause
from paceline.model.jobs.runs import Run
from paceline.model.measures import rates
from paceline.model.measures.intervals import Interval, training_interval
from paceline.model.measures.recordings import Recording
from paceline.model.studies.studies import TrialOutcome
from paceline.model.studies.tunings import Objective
from paceline.services.life_cycles import JobReader
from paceline.services.observing.diagnosis_runs import DiagnosisRun
from paceline.services.observing.look_cache import LookCache
from paceline.services.studying import trials
from paceline.specs.edits import edits
from paceline.tuning import comparisons, judgements
from paceline.tuning.comparisons import VariantVerdict

MOST_RUNS = 6
#: The first steps are slower: this share of the time is left out, but at most this many seconds.
_SETTLING, _MOST_SETTLE_SECONDS = 0.1, 10.0

#: A value, and the lower and upper end of its interval.
Range = tuple[float, float, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run beside the first run. A value of None was not measured.

    Attributes:
        seconds: how long its speed was measured.
        speed: examples a second, with a 90 % interval.
        times: how many times as fast as the first run it is, with a 90 % interval; None also for the first.
        learning: says if it learns worse than the first run, by the loss after the same number of examples;
            empty: nothing shows that.
        loss: the last reported loss.
        loss_alike: its loss after the number of examples that all runs have seen.
        causes: the causes that are not over, the most important first.
        diff: the difference of its job file from that of the first run; empty: they are the same.
        facts: where it ran, and with what.
    """

    run: Run
    seconds: float | None
    speed: Range | None
    times: Range | None
    verdict: VariantVerdict
    learning: str
    loss: float | None
    loss_alike: float | None
    auc: float | None
    asked_cores: float | None
    used_cores: float | None
    causes: tuple[Cause, ...]
    diff: str
    facts: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Runs side by side.

    Attributes:
        examples: the number of examples that all runs have seen, after which their losses can be compared;
            None: not known.
        sides: the runs; the others are compared with the first.
    """

    examples: int | None
    sides: tuple[Side, ...]


def compared(jobs: JobReader, look_cache: LookCache, names: Sequence[str]) -> RunComparison:
    """Return the comparison of runs with the first of them.

    Raises:
        InvalidInput: there are too many runs.
        NotFound: a run does not exist.
        StoreError: the store cannot be read.
    """
    run_names = list(dict.fromkeys(names))
    if len(run_names) > MOST_RUNS:
        raise InvalidInput(f"{len(run_names)} runs are too many to compare", f"at most {MOST_RUNS}")
    looks = [look_cache.look(jobs.get(name)) for name in run_names]
    times = [_trained(look.recording) for look in looks]
    outcomes = [_outcome(look.recording, time) for look, time in zip(looks, times, strict=True)]
    seen = [outcome.losses[-1].examples if outcome.losses else 0 for outcome in outcomes]
    examples = min(seen, default=0) or None
    sides = [
        _side(look, outcome, time, examples)
        for look, outcome, time in zip(looks, outcomes, times, strict=True)
    ]
    return RunComparison(
        examples=examples,
        sides=tuple(
            _beside(sides[0], outcomes[0], side, outcome)
            for side, outcome in zip(sides, outcomes, strict=True)
        ),
    )


def _trained(recording: Recording) -> Interval | None:
    """Return the time over which a run's speed is measured."""
    found = training_interval(recording.steps, recording.samples) if recording.steps else None
    if found is None or found.seconds <= 0:
        return None
    settling = min(_MOST_SETTLE_SECONDS, _SETTLING * found.seconds)
    return Interval(since=found.since + settling, until=found.until)


def _outcome(recording: Recording, time: Interval | None) -> TrialOutcome:
    if time is None:
        return TrialOutcome(asked_cores=recording.run.spec.asked_cores, failure="it made no steps")
    found = trials.outcome(recording, since=time.since, until=time.until)
    # Only the latest minutes of a running job are read: how many examples came before them is not known.
    return found if recording.run.phase.is_final else dataclasses.replace(found, losses=())


def _side(look: DiagnosisRun, outcome: TrialOutcome, time: Interval | None, examples: int | None) -> Side:
    recording = look.recording
    run = recording.run
    qualities = [evaluation.auc for evaluation in recording.evaluations if evaluation.auc is not None]
    losses = [report.loss for report in recording.steps if report.loss is not None]
    return Side(
        run=run,
        seconds=None if time is None else time.seconds,
        speed=judgements.interval(outcome),
        times=None,
        verdict=VariantVerdict.BASELINE,
        learning="",
        loss=losses[-1] if losses else None,
        loss_alike=None if examples is None else judgements.loss(outcome, examples),
        auc=qualities[-1] if qualities else None,
        asked_cores=outcome.asked_cores,
        used_cores=outcome.used_cores,
        causes=tuple(cause for cause in look.explanation.causes if not cause.is_past),
        diff="",
        facts=_facts(recording),
    )


def _facts(recording: Recording) -> dict[str, str]:
    """Return what is known of where a run ran and with what."""
    run = recording.run
    restarts = rates.total(float(row.restarts) for row in recording.replicas)
    own = {
        "engine": run.engine,
        "image": run.spec.image or "",
        "framework": str(run.spec.framework),
        "hosts": ", ".join(each.name for each in run.spec.hosts),
        "restarts": "" if restarts is None else f"{restarts:.0f}",
        "notes": "; ".join(run.notes),
    }
    return {name: value for name, value in [*recording.facts, *own.items()] if value}


def _beside(first: Side, baseline: TrialOutcome, side: Side, outcome: TrialOutcome) -> Side:
    if side is first:
        return side
    times = None
    if baseline.speed and outcome.speed:
        judged = judgements.judge(Objective(), baseline, outcome)
        times = judged.times, judged.low, judged.high
    return dataclasses.replace(
        side,
        times=times,
        verdict=comparisons.verdict(times),
        learning=judgements.harm(baseline, outcome) or "",
        diff=edits.difference(specs.source_of(first.run), specs.source_of(side.run)),
    )
