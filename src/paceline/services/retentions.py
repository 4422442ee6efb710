"""Reduces the detail stored of finished runs as they age, by policy, and notes it in the run."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from paceline.errors import Conflict, InvalidInput, NotFound
from paceline.model import quantities
from paceline.model.jobs import retentions
from paceline.model.jobs.retentions import Ageing, Retention
from paceline.model.jobs.runs import Detail
from paceline.model.traces import traced_steps
from paceline.stores import Store

FULL, MINUTES, RUNS, AUDITS = (
    "PACELINE_KEEP_FULL", "PACELINE_KEEP_MINUTES", "PACELINE_KEEP_RUNS", "PACELINE_KEEP_AUDITS",
)  # fmt: skip
#: The most audit records kept, however recent they are.
MOST_AUDITS = 1_000_000
AUDITS_SECONDS = 400 * retentions.DAY_SECONDS
_FOREVER = "forever"
_NOTES = {
    Detail.MINUTES: f"since {{day}} samples and steps are kept in intervals of a minute ({FULL})",
    Detail.SUMMARY: f"since {{day}} samples, steps and traces are kept no more ({MINUTES})",
}


def of_environment(environment: Mapping[str, str] = os.environ) -> Retention:
    """Return the policy that the environment sets: durations such as ``30d``, or ``forever``.

    Raises:
        InvalidInput: a variable is neither a duration nor ``forever``.
    """
    default = Retention()
    return Retention(
        full_seconds=_seconds(environment, FULL, default.full_seconds),
        minutes_seconds=_seconds(environment, MINUTES, default.minutes_seconds),
        runs_seconds=_seconds(environment, RUNS, default.runs_seconds),
    )


def forget_audits(store: Store, *, now: float, environment: Mapping[str, str] = os.environ) -> int:
    """Remove the records of changes made through a server that are too old or too many; return how many.

    Raises:
        InvalidInput: the variable in the environment is neither a duration nor ``forever``.
        StoreError: the store cannot be written.
    """
    kept = _seconds(environment, AUDITS, AUDITS_SECONDS)
    return store.forget_audits(before=-math.inf if kept is None else now - kept, most=MOST_AUDITS)


def _seconds(environment: Mapping[str, str], name: str, default: float | None) -> float | None:
    text = environment.get(name)
    if not text:
        return default
    if text == _FOREVER:
        return None
    try:
        return quantities.parse_seconds(text)
    except ValueError as error:
        raise InvalidInput(f"{name}: {error}", f"a duration, or {_FOREVER}") from error


def due(store: Store, retention: Retention, *, now: float, engine: str | None = None) -> list[Ageing]:
    """Return the runs that are due for less detail or for deletion, in the order of their submission.

    Args:
        store: where the runs are.
        retention: the policy.
        now: Unix seconds.
        engine: only runs of this engine; None: all.

    Raises:
        StoreError: the store cannot be read.
    """
    found = (
        retentions.ageing(run, retention, now=now)
        for run in store.list_runs(engine=engine, newest_first=False)
    )
    return [each for each in found if each is not None]


def thin(store: Store, ageing: Ageing, *, now: float) -> bool:
    """Reduce the detail of a run, unless its findings are not stored yet, and add a note to the run.

    It may be killed at any point, or run in several processes at once: a later call completes the work.

    Returns:
        Whether the detail was reduced.

    Raises:
        StoreError: the store cannot be written.
    """
    name, detail = ageing.run.name, ageing.detail
    with contextlib.suppress(NotFound, Conflict):  # It was deleted, was resumed, or another process thins it.
        if detail is None or detail is Detail.FULL or store.conclusion(name) is None:
            return False
        store.thin(name, detail)
        _remove_files(Path(ageing.run.directory), detail)
        day = time.strftime("%Y-%m-%d", time.gmtime(now))
        store.set_detail(name, detail, _NOTES[detail].format(day=day))
        return True
    return False


def _remove_files(folder: Path, detail: Detail) -> None:
    """Remove the files of a run's folder that duplicate what the store no longer keeps in full."""
    for spool in folder.glob("replicas/*/spool.jsonl"):
        spool.unlink(missing_ok=True)
    if detail is Detail.SUMMARY:
        shutil.rmtree(folder / traced_steps.FOLDER, ignore_errors=True)


def apply(
    store: Store,
    retention: Retention,
    *,
    now: float,
    delete: Callable[[str], None],
    conclude: Callable[[str], None],
    engine: str | None = None,
) -> Iterator[Ageing]:
    """Age runs by the policy, and yield each run that was thinned or deleted.

    Args:
        store: where the runs are.
        retention: the policy.
        now: Unix seconds.
        delete: removes a run and its files.
        conclude: stores the findings of a run before its measurements are thinned.
        engine: only runs of this engine; None: all.

    Raises:
        StoreError: the store cannot be read or written.
    """
    forget_audits(store, now=now)
    for each in due(store, retention, now=now, engine=engine):
        with contextlib.suppress(NotFound, Conflict):
            if each.detail is None:
                delete(each.run.name)
                yield each
                continue
            conclude(each.run.name)
            if thin(store, each, now=now):
                yield each
