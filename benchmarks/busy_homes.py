"""A home that a whole team has used for long: many stored jobs, and a large one that lives."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import multiprocessing
import random
import shutil
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import large_jobs
from paceline.control import states
from paceline.model.explanations.causes import Explanation
from paceline.model.explanations.conclusions import Conclusion
from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.services.local import state_dirs, supervisors
from paceline.stores import open_store

#: Of the live job, one a second: it outlives the measurement.
STEPS = 100_000


def fill(home: state_dirs.Home, jobs: int) -> None:
    """Keep so many jobs that have ended."""
    roles = (RoleSpec(role=Role.PS, replicas=2), RoleSpec(role=Role.WORKER, replicas=8))
    now = time.time()
    with open_store(home.store_url) as store:
        for number in range(jobs):
            spec = JobSpec(
                name=f"job-{number}", roles=roles, command=("train",),
                labels={"team": ("ads", "search", "feed")[number % 3], "model": f"m{number % 40}"},
            )  # fmt: skip
            at = now - 86_400 - 600.0 * number
            made = Run(
                name=spec.name, spec=spec, source="kind: TrainingJob\n", engine="local",
                directory=str(home.runs / spec.name), submitted_at=at,
            )  # fmt: skip
            state = states.initial(spec)
            store.create_run(made, state)
            store.save_state(spec.name, dataclasses.replace(state, phase=JobPhase.SUCCEEDED), at=at + 500)
            summary = DiagnosisSummary(
                at=at + 600, examples_per_second=1000.0 + number, trend=tuple(map(float, range(20))),
                progress=1.0, imbalance=1.0 + number % 7, code="PS101",
                codes=("PS101",), finding="Every PS is at its CPU limit.",
            )  # fmt: skip
            found = Explanation(job=spec.name, summary="it has succeeded")
            store.conclude(spec.name, Conclusion(at=at + 600, version="0", explanation=found), summary)


@contextlib.contextmanager
def living(home: state_dirs.Home) -> Iterator[None]:
    """Let a large job live: what is measured of it comes once a second. It leaves nothing."""
    ended = multiprocessing.Event()
    begun = multiprocessing.Event()
    process = multiprocessing.Process(target=_live, args=(home, begun, ended))
    process.start()
    begun.wait(60)
    try:
        yield
    finally:
        ended.set()
        process.join()


def _live(home: state_dirs.Home, begun: Any, ended: Any) -> None:
    chance, start = random.Random(0), time.time()
    folder = home.folder(large_jobs.NAME)
    folder.path.mkdir(parents=True)
    supervisors.acquire(folder)
    with open_store(home.store_url) as store:
        large_jobs.begin(store, home, at=start)
        for second in itertools.count(1):
            if ended.wait(max(0.0, start + second - time.time())):
                break
            store.append_samples(large_jobs.NAME, large_jobs.samples([time.time()], chance))
            reports = large_jobs.reports([second], start=start, total=STEPS, chance=chance)
            store.append_step_reports(large_jobs.NAME, reports)
            begun.set()
        store.delete_run(large_jobs.NAME)
    shutil.rmtree(folder.path)
