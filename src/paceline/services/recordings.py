"""Recordings of jobs: put together from a store, and looked at like the jobs themselves."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.diagnosing.situations import Situation
from paceline.model.causes import Evidence
from paceline.model.recordings import Recording
from paceline.model.runs import Run
from paceline.stores import Store

_UNKNOWN = "what its place says of its replicas, and whether it fits: a recording does not have it"


def read(
    store: Store, run: Run, *, at: float, lost: bool = False, facts: Sequence[tuple[str, str]] = ()
) -> Recording:
    """Return all that a store knows of a run; traces it has none.

    Args:
        store: where it is kept.
        run: the run.
        at: now (Unix seconds).
        lost: whether nobody looks after it.
        facts: of the machine or the image.

    Raises:
        NotFound: the run was deleted meanwhile.
        StoreError: the store cannot be read.
    """
    return Recording(
        run=run,
        at=at,
        lost=lost,
        facts=facts,
        replicas=store.replicas(run.name),
        samples=store.samples(run.name),
        steps=store.step_reports(run.name),
        evaluations=store.evaluations(run.name),
        events=[event for _, event in store.events(run.name)],
    )


def situation(recording: Recording) -> Situation:
    """Return what a recording says of where its job stood."""
    return Situation.of(
        recording.run,
        recording.replicas,
        recording.events,
        now=recording.at,
        unattended=(Evidence(text="so it was when it was recorded"),) if recording.lost else (),
        unknown=() if recording.run.phase.is_final else (_UNKNOWN,),
    )
