"""The loss is no longer a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing import needs, trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence, EvidenceSource, FieldChange
from paceline.model.measures.samples import StepReport
from paceline.model.words import listed

LEAST_REPORTS = Threshold(
    "losses.least-reports", 3, Unit.COUNT,
    means="The loss of a trainer is not a number if at least this many of its last reports in a row have "
    "none. A single report without a loss may be about a batch that was not counted.",
)  # fmt: skip
_SMALLER = Threshold(
    "losses.smaller", 10.0, Unit.TIMES,
    means="The rule proposes a learning rate that is this many times smaller. A rate that made the loss "
    "explode is rarely a little too high.",
    above=1.0,
)  # fmt: skip
_CLIP_NORM = Threshold(
    "losses.clip-norm", 10, Unit.TIMES,
    means="The rule proposes to clip the gradient of a step at this norm, over all parameters together.",
    source="what scripts of the literature clip at: Pascanu et al. 2013 used values from 1 to 10",
)  # fmt: skip

TOPIC = Topic(
    code="PRG003",
    name="loss-not-finite",
    title="The loss is not a number",
    why="A loss that is infinite or not a number (NaN) makes all parameters so that it comes from: what "
    "follows trains nothing. Most often the learning rate is too high; else a logarithm or a division by "
    "zero, a label out of its range, or a broken example.",
    fix="Stop it; train from a checkpoint before that step, with a lower learning rate or clip_norm.",
    risk="A lower learning rate takes more steps to the same loss.",
)


class _Lost(NamedTuple):
    """A trainer that no longer reports a loss.

    Attributes:
        last: its last report with a loss; None: there is none.
        first: its first report without a loss after that.
        reports: the number of its reports without a loss since then.
    """

    last: StepReport | None
    first: StepReport
    reports: int


@rule(TOPIC, needs=(needs.STEPS,))
def loss_not_finite(case: Case) -> Iterator[Hit]:
    """Trainers whose last reports have no loss, though earlier reports had one or all should have one."""
    reports = case.reports
    # paceline.training always reports a loss. If another script never reports one, its absence means nothing.
    tells = trainings.by_library(case) or any(
        report.loss is not None for trainer_reports in reports.values() for report in trainer_reports
    )
    least_reports = case.value(LEAST_REPORTS)
    trainers = {
        replica: lost
        for replica, trainer_reports in reports.items()
        if tells and (lost := _lost(trainer_reports, least_reports))
    }
    if not trainings.by_library(case):
        # In some scripts only one trainer reports a loss.
        trainers = {replica: lost for replica, lost in trainers.items() if lost.last is not None}
    if not trainers:
        return
    first = min((lost.first for lost in trainers.values()), key=lambda report: report.at)
    last = max(
        (lost.last for lost in trainers.values() if lost.last is not None),
        key=lambda report: report.at,
        default=None,
    )
    step = "" if first.step is None else f" from about step {first.step:,} on"
    yield Hit(
        what=f"The loss is not a number{step} ({listed(trainers)}).",
        subjects=tuple(map(str, trainers)),
        evidence=(
            Evidence(
                text="no loss before: it was never a number"
                if last is None or last.loss is None
                else f"the last loss was {last.loss:.4g}",
                at=first.at if last is None else last.at,
                sources=(
                    EvidenceSource(
                        what="steps", field="loss", replicas=tuple(trainers),
                        count=sum(lost.reports for lost in trainers.values()),
                        since=first.at,
                        until=max(
                            trainer_reports[-1].at for trainer_reports in reports.values() if trainer_reports
                        ),
                    ),
                ),
            ),
            Evidence(
                text=f"{sum(lost.reports for lost in trainers.values())} reports of steps since have none"
            ),
        ),
        changes=tuple(_changes(case)),
        next_steps=tuple(_next_steps(case)),
    )  # fmt: skip


def _lost(reports: Sequence[StepReport], least: float) -> _Lost | None:
    """Return since when a trainer reports no loss; None: its last ``least`` reports have one."""
    made = [each for each in reports if each.steps is None or each.steps > 0]
    known = [number for number, each in enumerate(made) if each.loss is not None]
    since = known[-1] + 1 if known else 0
    if len(made) - since < least:
        return None
    return _Lost(made[since - 1] if known else None, made[since], len(made) - since)


def _changes(case: Case) -> Iterator[FieldChange]:
    training = trainings.section(case) if trainings.by_library(case) else {}
    smaller = case.value(_SMALLER)
    for name in ("optimizer", "wide_optimizer"):
        chosen = training.get(name)
        rate = chosen.get("learning_rate") if isinstance(chosen, dict) else None
        if isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0:
            path = ("spec", "training", name, "learning_rate")
            yield FieldChange(path=path, value=float(f"{rate / smaller:.6g}"))
    if training and "clip_norm" not in training:
        yield FieldChange(path=("spec", "training", "clip_norm"), value=case.value(_CLIP_NORM))


def _next_steps(case: Case) -> Iterator[str]:
    job = case.recording.run.name
    if case.is_running:
        yield f"paceline stop {job}: what it trains now is lost anyway"
    yield "take a checkpoint from before that step: newer ones hold what is not a number"
    if not trainings.by_library(case):
        yield "in your script: a lower learning rate, or tf.clip_by_global_norm"
