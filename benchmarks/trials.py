"""Real jobs of the examples, run to their end in a home of their own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.protocols import KEPT, ROOT
from paceline import specs
from paceline.model.jobs import JobSpec
from paceline.model.runs import Run
from paceline.services import homes, jobs
from paceline.stores import open_store

CENSUS_DATA = Path(os.environ.get("PACELINE_CENSUS_DATA", ROOT.parent / "shared" / "data" / "census-income"))
TIMEOUT_SECONDS = 900.0


@contextlib.contextmanager
def service() -> Iterator[jobs.Jobs]:
    """Yield the life cycle over an empty home that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        home = homes.Home.from_environment({"PACELINE_HOME": folder})
        with open_store(home.store_url) as store:
            yield jobs.Jobs(home, store)


def example(name: str, *arguments: str, **training: object) -> JobSpec:
    """Return an example's job with more arguments of its command and other values in its training block."""
    spec = specs.load_job(ROOT / "examples" / name / "job.yaml").spec
    return dataclasses.replace(
        spec,
        command=(sys.executable, *spec.command[1:], *arguments),
        working_dir=str(ROOT),
        training={**(spec.training or {}), **training},
    )


def finish(api: jobs.Jobs, spec: JobSpec) -> Run:
    """Submit a job and return it when it has ended well.

    Raises:
        RuntimeError: it did not.
    """
    run = api.submit(spec, source="", base=ROOT)
    run = api.wait(run.name, timeout_seconds=TIMEOUT_SECONDS)
    if run.phase != "succeeded":
        raise RuntimeError(f"{run.name} {run.phase}: {run.message}")
    return run


def census_data() -> Path:
    """Return the folder of the Census files; the example downloads them when they are not there."""
    return CENSUS_DATA if CENSUS_DATA.exists() else KEPT / "census"
