"""Summaries that are written every few steps."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.scripts.asked import ReportedFact
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name
from paceline.model.roles import ReplicaId
from paceline.model.words import listed

#: Summaries every so many steps are a tenth of the work of summaries in each step (own reasoning).
FEW_STEPS = 10.0
#: Below that part of the others' steps a second the trainer that writes them is slower than those.
SLOWER = 0.9

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
    facts = [
        fact for fact in asked.of_trainers(case, Name.SUMMARY_EVERY_STEPS) if float(fact.value) < FEW_STEPS
    ]
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
    slow: dict[ReplicaId, float] = {
        replica: rate for replica, rate in rates.items() if replica in writing and rate < SLOWER * usual
    }
    return tuple(
        Evidence(text=f"{replica} makes {rate:,.1f} steps a second, the others {usual:,.1f}")
        for replica, rate in slow.items()
    )
