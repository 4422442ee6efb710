"""Summaries that are written every few steps."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.scripts.asked import ReportedFact
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name
from paceline.model.roles import ReplicaId
from paceline.model.words import listed

FEW_STEPS = Threshold(
    "summaries.few-steps", 10, Unit.COUNT,
    means="A trainer writes summaries too often if it makes fewer steps than this from one summary to the "
    "next. Summaries every 10 steps are a tenth of the work of summaries in each step.",
)  # fmt: skip
SLOWER = Threshold(
    "summaries.slower", 0.9, Unit.SHARE,
    means="A trainer that writes summaries is slower than the others if it makes less than this share of "
    "their steps a second.",
)  # fmt: skip

TOPIC = Topic(
    code="SCR105",
    name="frequent-summaries",
    title="Summaries are written every few steps",
    severity=Severity.WARNING,
    why="A summary is computed in the step: a histogram of a variable pulls all of it from its parameter "
    "server, and what is computed of it is sorted, packed and written. A chart has a few hundred points, so "
    "most of what is written every few steps is never seen.",
    fix="Write summaries every 100 steps or more, and histograms of large tables not at all.",
)


@rule(TOPIC, needs=(), explains=("slow-host",))
def frequent_summaries(case: Case) -> Iterator[Hit]:
    """Trainers that write summaries every few steps; severity INFO unless they are slower than the others."""
    few = case.value(FEW_STEPS)
    facts = [fact for fact in asked.of_trainers(case, Name.SUMMARY_EVERY_STEPS) if float(fact.value) < few]
    if not facts:
        return
    often = min(facts, key=lambda fact: float(fact.value))
    size = asked.amount(case, often.replica, Name.SUMMARY_BYTES)
    slower = _slower(case, facts)
    yield Hit(
        what=f"{listed(fact.replica for fact in facts)} {'writes' if len(facts) == 1 else 'write'} summaries "
        f"every {max(1.0, float(often.value)):.3g} steps.",
        subjects=tuple(str(fact.replica) for fact in facts),
        evidence=(
            Evidence(
                text=f"{often.replica} wrote {quantities.format_bytes(size)} every "
                f"{max(1.0, float(often.value)):.3g} steps",
                at=often.at,
            ),
            *slower,
        ),
        next_steps=(
            "in your script: save_summaries_steps=100 for a MonitoredTrainingSession, "
            "save_summary_steps=100 for an Estimator's RunConfig",
        ),
        severity=None if slower else Severity.INFO,
    )


def _slower(case: Case, found: Sequence[ReportedFact]) -> tuple[Evidence, ...]:
    """Return evidence for each trainer that writes summaries and is slower than those that write none."""
    rates = {each.replica: each.steps_per_second for each in case.active_trainers if each.steps_per_second}
    writing = {each.replica for each in found}
    others = [rate for replica, rate in rates.items() if replica not in writing]
    if not others:
        return ()
    usual = statistics.median(others)
    least = case.value(SLOWER) * usual
    slow: dict[ReplicaId, float] = {
        replica: rate for replica, rate in rates.items() if replica in writing and rate < least
    }
    return tuple(
        Evidence(text=f"{replica} makes {rate:,.1f} steps a second, the others {usual:,.1f}")
        for replica, rate in slow.items()
    )
