"""The diagnosis of a job by all rules together: why it is in its phase, and why it is not faster."""

from __future__ import annotations

import dataclasses

from paceline.diagnosing import catalogues, chains, confirmations, needs, scalings, standstills, topics
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import limits
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording

_FINE = "nothing is wrong: "


def diagnose(recording: Recording, situation: Situation, *, case: Case | None = None) -> Explanation:
    """Return the explanation of a job by all rules.

    Args:
        recording: the measurements.
        situation: the state of the job at the same moment.
        case: the case of the recording, if the caller has it already.
    """
    alone = standing(situation)
    if recording.run.started_at is None:
        return alone
    case = case or Case.of(recording)
    found, unknown = judged(case)
    if confirmations.is_under_way(case):
        found = [cause for cause in found if cause.severity is Severity.ERROR]
        unknown = [confirmations.UNDER_WAY]
    causes = chains.chained([*alone.causes, *found], catalogues.EXPLAINS, catalogues.SPARING)
    # How fast a job is does not matter while it cannot run.
    if any(not cause.is_past for cause in alone.causes):
        unknown = []
    return dataclasses.replace(
        alone,
        summary=_summary(alone, causes, situation, is_known=not unknown),
        causes=causes,
        unknown=(*alone.unknown, *unknown),
        outlook=scalings.outlook(case),
        thresholds=recording.thresholds,
    )


def recalled(found: Explanation, situation: Situation) -> Explanation:
    """Return an earlier explanation with an updated summary, such as how long ago the job ended.

    Args:
        found: the earlier explanation.
        situation: the state of the job now.
    """
    alone = standing(situation)
    summary = _summary(alone, found.causes, situation, is_known=not found.unknown)
    return dataclasses.replace(found, job=alone.job, summary=summary)


def standing(situation: Situation) -> Explanation:
    """Return why a job is in its phase, from its situation alone, without measurements."""
    found = standstills.explain(situation)
    causes = (
        dataclasses.replace(cause, severity=catalogues.topic(cause.name).severity) for cause in found.causes
    )
    return dataclasses.replace(found, causes=tuple(causes))


def unmeasured(situation: Situation) -> Explanation:
    """Return the explanation of a job whose measurements cannot be read."""
    alone = standing(situation)
    return dataclasses.replace(alone, summary=_summary(alone, alone.causes, situation, is_known=False))


def judged(case: Case) -> tuple[list[Cause], list[str]]:
    """Return the causes that the rules find in a case, and messages about the data that rules are missing."""
    causes: list[Cause] = []
    lacking: dict[str, list[str]] = {}
    for rule in catalogues.RULES:
        lacks = rule.lacks(case)
        if not lacks:
            causes += rule.causes(case)
        for need in lacks[:1]:
            if not needs.applies(need, case):
                continue
            said = f"not enough data: {need.what} ({need.remedy.format(name=case.recording.run.name)})"
            lacking.setdefault(said, []).append(rule.topic.code)
    return limits.uncovered(confirmations.confirmed(causes, case)), [
        f"{said}; not judged: {', '.join(codes)}" for said, codes in lacking.items()
    ]


def slowing(case: Case) -> list[Cause]:
    """Return why a job is not faster, the primary cause first, without causes of severity INFO."""
    causes = chains.chained(judged(case)[0], catalogues.EXPLAINS, catalogues.SPARING)
    return [cause for cause in causes if cause.severity is not Severity.INFO]


def unjudged(case: Case) -> frozenset[str]:
    """Return the names of the causes that cannot be judged because data is missing."""
    return frozenset(rule.topic.name for rule in catalogues.RULES if rule.lacks(case))


def _summary(alone: Explanation, causes: tuple[Cause, ...], situation: Situation, *, is_known: bool) -> str:
    """Return the first line of the explanation: the job's phase, and whether it trains as it should."""
    lead = alone.summary.removeprefix(_FINE)
    told = [cause for cause in causes if cause.severity is not Severity.INFO and not cause.is_past]
    if any(cause.name in topics.STANDING for cause in told):
        return alone.summary
    if not told:
        seen = lead == alone.summary or is_known
        return alone.summary if seen else f"nothing is wrong as far as can be seen: {lead}"
    if any(cause.severity is Severity.ERROR for cause in told):
        return f"{lead}, but does not train as it should"
    return f"{lead}, and {'could be' if not situation.phase.is_final else 'could have been'} faster"
