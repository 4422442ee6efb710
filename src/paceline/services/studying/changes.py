"""The changes of a running job, and the effect of each on its speed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from paceline.model.jobs.runs import Run, SpecChange
from paceline.model.measures.samples import StepReport
from paceline.model.studies.studies import TrialOutcome
from paceline.model.studies.tunings import Judgement, Objective
from paceline.services.life_cycles import StoredJobReader
from paceline.services.studying import trials
from paceline.stores import Store
from paceline.tuning import judgements

#: How much time before and after a change is measured at most, and the least that is enough for a result.
WINDOW_SECONDS, LEAST_SECONDS = 60.0, 10.0
#: How long after the first steps a measurement begins: the first steps are slower.
SETTLE_SECONDS = 10.0
#: Within this time, step reports are stored.
STORED_SECONDS = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A change, and how fast the job was before and after it.

    Attributes:
        before, after: examples a second; None: not measured, or not yet for long enough.
        judgement: how many times as fast the job became, and whether the difference exceeds the noise; None:
            ``before`` or ``after`` is missing.
    """

    change: SpecChange
    before: float | None
    after: float | None
    judgement: Judgement | None


def changes(jobs: StoredJobReader, name: str) -> tuple[Changed, ...]:
    """Return the changes of a job, the oldest first.

    Raises:
        NotFound: there is no such job.
        StoreError: the store cannot be read.
    """
    run = jobs.get(name)
    store, stored = jobs.stored(name)
    asked = store.spec_changes(stored)
    known = jobs.clock() - max(STORED_SECONDS, jobs.DELAY_SECONDS)
    return tuple(_changed(store, stored, run, asked, place, now=known) for place in range(len(asked)))


def _changed(
    store: Store, stored: str, run: Run, changes: Sequence[SpecChange], place: int, *, now: float
) -> Changed:
    change = changes[place]
    end = changes[place + 1].asked_at if place + 1 < len(changes) else run.finished_at or now
    begun = (changes[place - 1].done_at if place else run.started_at) or change.asked_at
    before = _outcome(store, stored, max(begun, change.asked_at - WINDOW_SECONDS), change.asked_at)
    after = None if change.done_at is None else _outcome(store, stored, change.done_at, end, first=True)
    return Changed(
        change=change,
        before=before.speed if before else None,
        after=after.speed if after else None,
        judgement=judgements.judge(Objective(), before, after) if before and after else None,
    )


def _outcome(
    store: Store, stored: str, since: float, until: float, *, first: bool = False
) -> TrialOutcome | None:
    """Return how fast a job was between two moments.

    With ``first`` the time begins with the first steps of all trainers, and `SETTLE_SECONDS` more.

    Returns:
        The speed; None if the job made no steps, or the time is too short.
    """
    reports = store.step_reports(stored, since=since, until=until)
    if first:
        beginnings = dict(_first(reports))
        since = max(beginnings.values(), default=until) + SETTLE_SECONDS
        until = min(until, since + WINDOW_SECONDS)
    if until - since < LEAST_SECONDS:
        return None
    speeds = trials.speeds(reports, since, until)
    return TrialOutcome(examples_per_second=speeds) if any(speeds) else None


def _first(reports: Sequence[StepReport]) -> Iterator[tuple[str, float]]:
    """Yield each trainer that makes steps, with the time of its first report of steps."""
    known = set()
    for each in reports:
        if each.steps and each.replica not in known:
            known.add(each.replica)
            yield str(each.replica), each.at
