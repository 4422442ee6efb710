"""Real jobs of the examples, run to their end in a home of their own."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.resources
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import stepped
from benchmarks.protocols import KEPT, ROOT
from paceline import specs
from paceline.engines.local import networks, processes
from paceline.engines.local.folders import RunFolder
from paceline.examples.clicks import generate
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.measures import intervals
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import Role
from paceline.services.local import jobs, state_dirs
from paceline.stores import open_store

CENSUS_DATA = Path(os.environ.get("PACELINE_CENSUS_DATA", ROOT.parent / "shared" / "data" / "census-income"))
TIMEOUT_SECONDS = 900.0
START_SECONDS = 300.0
#: Click data that several benchmarks train on; a folder of a name holds the same data for all of them.
CLICKS = {
    "clicks": generate.Parameters(),
    "clicks-quick": generate.Parameters(train_rows=300_000),
    "clicks-tiny": generate.Parameters(train_rows=60_000, evaluation_rows=10_000),
}


@contextlib.contextmanager
def service() -> Iterator[jobs.Jobs]:
    """Yield the life cycle over an empty home that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        home = state_dirs.Home.from_environment({"PACELINE_HOME": folder})
        with open_store(home.store_url) as store:
            yield jobs.Jobs(home, store)


def example(name: str, *arguments: str, **training: object) -> JobSpec:
    """Return an example's job with more arguments of its command and other values in its training block."""
    module = stepped.MODULES[name]
    file = importlib.resources.files(module) / "job.yaml"
    spec = specs.parse_job(file.read_text(encoding="utf-8")).spec
    return dataclasses.replace(
        spec,
        command=(sys.executable, "-m", f"{module}.train", *arguments),
        working_dir=str(ROOT),
        training={**(spec.training or {}), **training},
    )


def counted(
    name: str, counts: Path, *arguments: str, script: str = "benchmarks.stepped", **training: object
) -> JobSpec:
    """Return an example's job that counts its examples in a folder, by `benchmarks.stepped` or a script that
    takes the same arguments.
    """
    spec = example(name, *arguments, **training)
    command = (spec.command[0], "-m", script, str(counts), name, *arguments)
    return dataclasses.replace(spec, command=command)


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


def wait_for_steps(api: jobs.Jobs, run: Run, counts: Path) -> None:
    """Return as soon as every worker of a job trains (the chief, if there is one); it counts in a folder.

    Raises:
        RuntimeError: the job ended, or it takes too long.
    """
    worker = None if run.spec.role(Role.CHIEF) else run.spec.role(Role.WORKER)
    wanted = 1 if worker is None else worker.replicas
    deadline = time.monotonic() + START_SECONDS
    while not counts.exists() or sum(count.examples > 0 for count in stepped.read(counts)) < wanted:
        if time.monotonic() > deadline or api.get(run.name).phase.is_final:
            raise RuntimeError(f"{run.name} did not start: {api.get(run.name).message}")
        time.sleep(0.2)


def server_bytes(run: Run) -> list[int] | None:
    """Return the bytes received and sent so far on the interface of each parameter server; None if they have
    none of their own, for want of emulated hosts.
    """
    folder = RunFolder.of(run)
    found = []
    for replica in run.spec.replicas():
        if replica.role is Role.PS:
            pid = processes.agent_pid(folder.config(replica, 1))
            lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
            own = [line.split() for line in lines if line.strip().startswith(networks.INTERFACE)]
            if not own:
                return None
            found.append(int(own[0][1]) + int(own[0][9]))
    return found


def moved(before: list[int] | None, after: list[int] | None) -> list[int] | None:
    """Return what went over each interface between two readings of `server_bytes`; None: not measured."""
    if before is None or after is None:
        return None
    return [last - first for first, last in zip(before, after, strict=True)]


def share_within(item: Sample | StepReport, since: float, until: float) -> float:
    """Return the part of what a measurement is about that lies within a time; 0 of one without a length."""
    begun, ended = intervals.stretch(item)
    return max(0.0, min(ended, until) - max(begun, since)) / (ended - begun) if ended > begun else 0.0


def clicks_data(name: str) -> Path:
    """Return the folder of click data of a name in `CLICKS`, generated if need be."""
    folder = KEPT / name
    generate.generate(folder, CLICKS[name])
    return folder


def census_data() -> Path:
    """Return the folder of the Census files; the example downloads them when they are not there."""
    return CENSUS_DATA if CENSUS_DATA.exists() else KEPT / "census"
