"""Runs side by side: how fast each is and how well it learns, beside the first, and what else differs."""

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
from paceline.model.studies.tunings import Objective, TrialOutcome
from paceline.services.life_cycles import LifeCycle
from paceline.services.observing.diagnosis_runs import DiagnosisRun
from paceline.services.observing.look_cache import LookCache
from paceline.services.studying import trials
from paceline.specs.edits import edits
from paceline.tuning import comparisons, judgements
from paceline.tuning.comparisons import VariantVerdict

MOST_RUNS = 6
#: First steps are slower: so much of the time is left out, but no more than so many seconds.
_SETTLING, _MOST_SETTLE_SECONDS = 0.1, 10.0

#: A value in the middle, and between which it lies.
Range = tuple[float, float, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run beside the first one; None: not measured.

    Attributes:
        seconds: over which its speed was measured.
        speed: examples a second, with 90 %.
        times: as fast as the first one, with 90 %; None of the first itself, too.
        learning: that it learns worse than the first one, by the loss after as many examples; empty: nothing
            shows it.
        loss: the last that was reported.
        loss_alike: after as many examples as all of them have seen.
        causes: of its being as it is, those that are not over, the most important first.
        diff: of its job file, from that of the first one; empty: they are alike.
        facts: of where it ran.
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
        examples: that all of them have seen, so that their losses after them are alike; None: not known.
        sides: the others are compared with the first.
    """

    examples: int | None
    sides: tuple[Side, ...]


def compared(jobs: LifeCycle, lookout: LookCache, names: Sequence[str]) -> RunComparison:
    """Return runs beside the first of them.

    Raises:
        InvalidInput: there are too many.
        NotFound: there is no such run.
        StoreError: the store cannot be read.
    """
    wanted = list(dict.fromkeys(names))
    if len(wanted) > MOST_RUNS:
        raise InvalidInput(f"{len(wanted)} runs are too many to compare", f"at most {MOST_RUNS}")
    looks = [lookout.look(jobs.get(name)) for name in wanted]
    times = [_trained(each.recording) for each in looks]
    outcomes = [_outcome(each.recording, time) for each, time in zip(looks, times, strict=True)]
    seen = [each.losses[-1].examples if each.losses else 0 for each in outcomes]
    examples = min(seen, default=0) or None
    sides = [
        _side(look, outcome, time, examples)
        for look, outcome, time in zip(looks, outcomes, times, strict=True)
    ]
    return RunComparison(
        examples=examples,
        sides=tuple(
            _beside(sides[0], outcomes[0], each, outcome)
            for each, outcome in zip(sides, outcomes, strict=True)
        ),
    )


def _trained(recording: Recording) -> Interval | None:
    """Return the time over which a run's speed is measured."""
    found = training_interval(recording) if recording.steps else None
    if found is None or found.seconds <= 0:
        return None
    settling = min(_MOST_SETTLE_SECONDS, _SETTLING * found.seconds)
    return Interval(since=found.since + settling, until=found.until)


def _outcome(recording: Recording, time: Interval | None) -> TrialOutcome:
    if time is None:
        return TrialOutcome(asked_cores=recording.run.spec.asked_cores, failure="it made no steps")
    found = trials.outcome(recording, since=time.since, until=time.until)
    # Of a job that runs only the latest minutes are read: how many examples came before is not known.
    return found if recording.run.phase.is_final else dataclasses.replace(found, losses=())


def _side(look: DiagnosisRun, outcome: TrialOutcome, time: Interval | None, examples: int | None) -> Side:
    recording = look.recording
    run = recording.run
    qualities = [each.auc for each in recording.evaluations if each.auc is not None]
    losses = [each.loss for each in recording.steps if each.loss is not None]
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
        causes=tuple(each for each in look.explanation.causes if not each.is_past),
        diff="",
        facts=_facts(recording),
    )


def _facts(recording: Recording) -> dict[str, str]:
    """Return what is known of where a run ran, and with what."""
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
