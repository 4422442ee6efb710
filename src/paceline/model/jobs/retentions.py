"""How long what is known of finished runs is kept, and in how much detail."""

from __future__ import annotations

import dataclasses

from paceline.model.jobs.runs import Detail, Run, RunSummary
from paceline.model.jobs.statuses import JobPhase

DAY_SECONDS = 86_400.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """For how long after their end runs are kept in which detail; None: for ever.

    Attributes:
        full_seconds: with every sample and step report, as they were measured.
        minutes_seconds: with those of a minute combined into one.
        runs_seconds: at all, with logs and checkpoints; before that what a run came to is kept, what was
            found in it, its events, evaluations, output and checkpoints.
    """

    full_seconds: float | None = 14 * DAY_SECONDS
    minutes_seconds: float | None = 180 * DAY_SECONDS
    runs_seconds: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ageing:
    """A run that has become old enough for less detail.

    Attributes:
        detail: what is to be kept of it; None: nothing.
    """

    run: RunSummary
    detail: Detail | None


def ageing(run: RunSummary, retention: Retention, *, now: float) -> Ageing | None:
    """Return what is to become of a run; None: it stays as it is.

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

    A stopped one is kept, whatever its time: it may go on from its checkpoints, which are in its folder.
    """
    ttl = run.spec.ttl_after_finished_seconds if isinstance(run, Run) else run.ttl_after_finished_seconds
    if ttl is None or run.finished_at is None or run.phase is JobPhase.STOPPED or not run.phase.is_final:
        return None
    return run.finished_at + ttl
