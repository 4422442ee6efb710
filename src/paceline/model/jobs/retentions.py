"""Retention: how long the data of finished runs is kept, and in how much detail."""

from __future__ import annotations

import dataclasses

from paceline.model.jobs.runs import Detail, Run, RunSummary
from paceline.model.jobs.statuses import JobPhase

DAY_SECONDS = 86_400.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long after their end runs are kept in each detail; None: for ever.

    Attributes:
        full_seconds: how long every sample and step report is kept as measured.
        minutes_seconds: how long samples and step reports are kept, combined into one a minute.
        runs_seconds: how long runs are kept at all: their results, findings, events, evaluations, output and
            checkpoints.
    """

    full_seconds: float | None = 14 * DAY_SECONDS
    minutes_seconds: float | None = 180 * DAY_SECONDS
    runs_seconds: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ageing:
    """A run that is old enough for less detail.

    Attributes:
        detail: the detail to keep; None: the run is to be deleted.
    """

    run: RunSummary
    detail: Detail | None


def ageing(run: RunSummary, retention: Retention, *, now: float) -> Ageing | None:
    """Return the run with the detail to reduce it to; None: it stays as it is.

    Args:
        run: the run.
        retention: the policy.
        now: Unix seconds.
    """
    if not run.phase.is_final or run.finished_at is None:
        return None
    age = now - run.finished_at
    if retention.runs_seconds is not None and age > retention.runs_seconds:
        return Ageing(run=run, detail=None)
    detail = Detail.FULL
    for limit, less in (
        (retention.full_seconds, Detail.MINUTES), (retention.minutes_seconds, Detail.SUMMARY),
    ):  # fmt: skip
        if limit is not None and age > limit:
            detail = less
    ranks = tuple(Detail)
    return Ageing(run=run, detail=detail) if ranks.index(detail) > ranks.index(run.detail) else None


def expires_at(run: Run | RunSummary) -> float | None:
    """Return when a run is to be deleted by its own time to live; None: it is kept.

    A stopped run is always kept: it may be resumed from its checkpoints, which are in its folder.
    """
    ttl = run.spec.ttl_after_finished_seconds if isinstance(run, Run) else run.ttl_after_finished_seconds
    if ttl is None or run.finished_at is None or run.phase is JobPhase.STOPPED or not run.phase.is_final:
        return None
    return run.finished_at + ttl
