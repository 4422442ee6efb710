"""Trainers that stand still while they save checkpoints, and save them often."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs, outlooks
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.script_facts import Name
from paceline.model.roles import ReplicaId
from paceline.model.words import listed

LEAST_SHARE = Threshold(
    "checkpoints.least-share", 0.05, Unit.SHARE,
    means="A trainer saves checkpoints too often if it saves them for at least this share of its time. Below "
    "it a trainer gains nothing that can be measured.",
)  # fmt: skip

TOPIC = Topic(
    code="SCR104",
    name="frequent-checkpoints",
    title="Checkpoints take a good part of a trainer's time",
    severity=Severity.WARNING,
    why="A trainer that saves a checkpoint makes no step meanwhile, and the parameter servers that write the "
    "variables serve the other trainers more slowly. A checkpoint is as large as the model with its slots, "
    "however few steps lie between two.",
    fix="Save more rarely: as often as you are ready to lose the work since the last checkpoint.",
    risk="After a failure the steps since the last checkpoint are made again.",
)


@rule(TOPIC, needs=(needs.STEPS,), explains=("slow-host", "slow-disk"))
def frequent_checkpoints(case: Case) -> Iterator[Hit]:
    """Trainers that stand still for much of their time because they save."""
    least = case.value(LEAST_SHARE)
    facts = [fact for fact in asked.of_trainers(case, Name.CHECKPOINT_SHARE) if float(fact.value) >= least]
    if not facts:
        return
    most = max(facts, key=lambda fact: float(fact.value))
    every = asked.amount(case, most.replica, Name.CHECKPOINT_EVERY_SECONDS)
    gain = _gain(case, {fact.replica: float(fact.value) for fact in facts})
    yield Hit(
        what=f"{listed(fact.replica for fact in facts)} saved checkpoints for {float(most.value):.0%} of the "
        "time.",
        subjects=tuple(str(fact.replica) for fact in facts),
        evidence=(
            Evidence(
                text=f"{most.replica} saved one every {quantities.format_seconds(every)}, and made no step "
                f"for {float(most.value):.0%} of the time between the first and the last",
                at=most.at,
            ),
        ),
        next_steps=(
            "in your script: save_checkpoint_secs=600 for a MonitoredTrainingSession, save_model_secs=600 "
            "for a Supervisor, save_checkpoints_secs=600 for an Estimator's RunConfig",
        ),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def _gain(case: Case, shares: dict[ReplicaId, float]) -> Gain | None:
    """Return the gain if these trainers made steps in the time in which they now save checkpoints."""
    total = rates.total(each.steps_per_second for each in case.trainers)
    if not total:
        return None
    least = 1 / case.value(headrooms.MOST_TIMES)
    more = sum(
        (each.steps_per_second or 0.0) * (1 / max(1 - shares[each.replica], least) - 1)
        for each in case.trainers
        if each.replica in shares
    )
    return outlooks.limited(case, 1 + more / total)
