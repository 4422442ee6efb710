"""What a giant table takes on the parameter servers: its rows and the optimizer's slots, and little else.

Memory is the working set of each parameter server's cgroup (its agent included, page cache that can be
dropped at once not), sampled once a second: after some steps, and its peak since the start. The same model
with a tiny table says what TensorFlow itself takes.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
import time
from pathlib import Path

from benchmarks import plots, rungs, trials
from benchmarks.protocols import KEPT, ROOT, Bench, Check, Result, Row
from paceline import specs
from paceline.examples.clicks import generate
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.roles import Role
from paceline.services.local import jobs

LIMIT = 1.3
SERVERS = 4
ROWS, QUICK_ROWS = 20_000_000, 2_000_000
TINY, OTHERS = 1_000, (1_000, 500, 200, 100, 50, 20, 10)
TRAIN_ROWS = 60_000
WINDOW_SECONDS = 15.0
ROUNDS = 3


def run(bench: Bench) -> list[Check]:
    """Measure the giant table and the tiny one, in turn."""
    rows = QUICK_ROWS if bench.quick else ROWS
    rounds = 1 if bench.quick else ROUNDS
    bench.plan(2 * rounds)
    for number in range(rounds):
        for size in (TINY, rows):
            bench.repeat(f"{size} rows {number}", functools.partial(_measure, size))
    giant = [row for row in bench.rows if row["rows"] == rows]
    tiny = statistics.fmean(row["memory_bytes"] for row in bench.rows if row["rows"] == TINY)
    total = _check("memory of the PS over that of variables and slots", giant, "memory_bytes", 0.0)
    return [
        *([] if bench.quick else [total]),  # a small table is less than what TensorFlow takes
        _check("the same without what TensorFlow takes", giant, "memory_bytes", tiny),
        _check("peak since the start, without what TensorFlow takes", giant, "peak_bytes", tiny),
    ]


def _check(name: str, rows: list[Row], kind: str, without: float) -> Check:
    ratios = [(row[kind] - without) / row["variables_bytes"] for row in rows]
    return Check(
        name=name,
        value=max(ratios),
        low=min(ratios),
        high=max(ratios),
        target=f"<= {LIMIT:g} in every run",
        holds=max(ratios) <= LIMIT,
    )


def _measure(rows: int) -> Row:
    """Return what all parameter servers take together, and what the variables take by their shapes."""
    with trials.service() as api:
        counts = api.home.path / "counts"
        training = api.submit(_spec(rows, counts), source="", base=ROOT)
        try:
            trials.wait_for_steps(api, training, counts)
            since = time.time()
            _wait_for_variables(training)
            time.sleep(WINDOW_SECONDS)
        finally:
            api.stop(training.name)
            api.wait(training.name, timeout_seconds=120)
        steady, peak = _memory(api, training, since), _memory(api, training, 0.0)
        variables = specs.load_variables(Path(training.directory) / "variables.json")
        return {
            "rows": rows,
            "variables_bytes": sum(variable.memory_bytes for variable in variables),
            "memory_bytes": sum(steady),
            "peak_bytes": sum(peak),
        }


def _spec(rows: int, counts: Path) -> JobSpec:
    data = KEPT / f"clicks-{rows}-rows"
    tables = (rows, *OTHERS)
    generate.generate(data, generate.Parameters(train_rows=TRAIN_ROWS, evaluation_rows=1_000, tables=tables))
    made = rungs.job(
        rungs.BEST, "clicks", data, 512, counts, epochs=10_000, checkpoint={"every_seconds": 100_000}
    )
    roles = tuple(
        dataclasses.replace(role, replicas=SERVERS) if role.role is Role.PS else role for role in made.roles
    )
    # Ended at once: the last checkpoint of a giant table is not what is measured.
    return dataclasses.replace(made, roles=roles, termination_grace_seconds=1.0)


def _wait_for_variables(training: Run) -> None:
    """Return when the chief has counted what it needs for the file of variables."""
    deadline = time.monotonic() + trials.START_SECONDS
    while not (Path(training.directory) / "variables.json").exists():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{training.name} does not write its variables")
        time.sleep(0.2)


def _memory(api: jobs.Jobs, training: Run, since: float) -> list[int]:
    """Return the most that each parameter server took in a sample since a moment."""
    found: dict[int, int] = {}
    for sample in api.store.samples(training.name, since=since):
        if sample.replica.role is Role.PS and sample.memory_bytes is not None:
            index = sample.replica.index
            found[index] = max(found.get(index, 0), sample.memory_bytes)
    if len(found) < SERVERS:
        raise RuntimeError("the memory of a parameter server was not measured")
    return list(found.values())


def draw(result: Result, path: Path) -> None:
    """Draw memory over that of the variables for the giant table."""
    rows = max(row["rows"] for row in result.rows)
    giant = [row for row in result.rows if row["rows"] == rows]
    groups = {
        "after some steps": [row["memory_bytes"] / row["variables_bytes"] for row in giant],
        "peak": [row["peak_bytes"] / row["variables_bytes"] for row in giant],
    }
    title = f"Memory of {SERVERS} PS with {rows:,} rows over rows x row bytes x (1 + slots) (dashed: limit)"
    plots.strips(path, groups, label="times", title=title, limits=dict.fromkeys(groups, LIMIT))
