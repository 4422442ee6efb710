"""Reads the past runs of a model to propose the first layout of its next run."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator

from paceline import specs
from paceline.errors import InvalidInput, NotFound
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures import rates
from paceline.model.studies.tunings import Objective
from paceline.services.life_cycles import JobReader
from paceline.specs import JobFile
from paceline.tuning import memories
from paceline.tuning.memories import PastRun, Regression

#: The number of newest runs that are read: older runs were mostly made on another machine.
MOST_RUNS = 50


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What past runs suggest for a job.

    Attributes:
        runs: the measured runs of the same model, the newest first.
        best: the best of them; None: there is none within the limits.
        changes: the changes that give the job file the settings of the best run.
        regressions: see `Regression`.
    """

    runs: tuple[PastRun, ...]
    best: PastRun | None
    changes: tuple[FieldChange, ...]
    regressions: tuple[Regression, ...]


def suggestion(jobs: JobReader, job: JobFile, objective: Objective) -> Suggestion:
    """Return what past runs of the same model suggest for a job.

    Raises:
        StoreError: the store cannot be read.
    """
    runs = tuple(_runs(jobs, job.spec))
    best = memories.best(runs, objective)
    changes = () if best is None else memories.differences(settings(job.text), best.settings)
    return Suggestion(runs=runs, best=best, changes=changes, regressions=memories.regressions(runs))


@functools.lru_cache(maxsize=256)  # Repeated runs have the same job file.
def settings(source: str) -> dict[str, object]:
    """Return the contents of a job file as plain values."""
    found = specs.plain_text(source)
    return found if isinstance(found, dict) else {}


def _runs(jobs: JobReader, spec: JobSpec) -> Iterator[PastRun]:
    for summary in jobs.runs()[:MOST_RUNS]:
        with contextlib.suppress(NotFound, InvalidInput):  # The run was deleted, or its spec is wrong.
            run = jobs.get(summary.name)
            if not memories.is_alike(spec, run.spec):
                continue
            snapshot = jobs.snapshot(run.name)
            if snapshot.examples_per_second:
                yield PastRun(
                    name=run.name,
                    spec=run.spec,
                    settings=settings(specs.source_of(run)),
                    submitted_at=run.submitted_at,
                    examples_per_second=snapshot.examples_per_second,
                    used_cores=rates.total(each.cpu_cores for each in snapshot.replicas),
                    auc=snapshot.evaluation.auc if snapshot.evaluation else None,
                )
