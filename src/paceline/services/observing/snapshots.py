"""How a job does now, or did over its whole life: the snapshot of what its store holds."""

from __future__ import annotations

from paceline.model.jobs.runs import Run
from paceline.model.measures import snapshots
from paceline.model.measures.snapshots import Snapshot
from paceline.stores import Store


def read(store: Store, run: Run, *, now: float, lost: bool = False, delay_seconds: float = 0.0) -> Snapshot:
    """Return the snapshot of a run: of the last seconds, or of the whole run if it has ended.

    Args:
        store: where the run is stored.
        run: the run.
        now: Unix seconds.
        lost: whether it should run, but no supervisor watches it.
        delay_seconds: how long measurements may take until they are stored; the snapshot reaches back further
            by this time.

    Raises:
        NotFound: the run was deleted meanwhile.
        StoreError: the store cannot be read.
    """
    latest = store.latest_step_reports(run.name)
    at, since, steps_since = now, None, None
    if run.phase.is_final:
        at = run.finished_at or now
    else:
        if lost:
            at = max((sample.at for sample in store.latest_samples(run.name).values()), default=now)
        since, steps_since = (
            at - each - delay_seconds for each in (snapshots.WINDOW_SECONDS, snapshots.STEP_WINDOW_SECONDS)
        )
    return snapshots.joined(
        run,
        store.replicas(run.name),
        samples=store.samples(run.name, since=since),
        steps=store.step_reports(run.name, since=steps_since),
        latest_steps=tuple(latest.values()),
        evaluations=store.evaluations(run.name),
        at=at,
        lost=lost,
    )
