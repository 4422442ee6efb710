"""Two jobs that each need 60 % of the cluster, submitted together: one runs whole, then the other.

Half of the first ones are deleted to make room, the others are stopped.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support import clusters, operator_processes
from support.kills import until

from benchmarks import plots
from benchmarks.pod_watches import PodWatch
from benchmarks.protocols import Bench, Check, Result, Row, none
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

#: Five such replicas fill a node of 80 cores; three for each node are 60 % of all.
CORES, SHARE = 16.0, 3
NAMES = ("one", "two")
_SECONDS = 120.0


def run(bench: Bench) -> list[Check]:
    """Run the trials."""
    nodes = len(clusters.hollow_nodes(quick=bench.quick))
    trials = 3 if bench.quick else 20
    bench.plan(trials)
    with operator_processes.acting():
        for number in range(trials):
            bench.repeat(f"trial {number}", functools.partial(_run, nodes, number % 2 == 0))
    rows = bench.rows
    return [
        Check(
            name="pairs of jobs", value=len(rows), low=None, high=None,
            target=f">= {trials}", holds=len(rows) >= trials,
        ),
        none("deadlocks: neither runs whole", [row["deadlock"] for row in rows]),
        none("both had pods before one had ended", [row["both_had_pods"] for row in rows]),
        none("the second did not follow the first", [row["second_seconds"] is None for row in rows]),
    ]  # fmt: skip


def _run(nodes: int, deletes: bool) -> Row:
    specs = [_job(name, nodes) for name in NAMES]
    count = len(specs[0].replicas())
    with PodWatch.following() as watch:
        start = time.monotonic()
        clusters.kubectl("create", "-f", "-", given=clusters.as_list(map(clusters.resource, specs)))
        first = _whole(NAMES, count)
        row: Row = {"deletes": deletes, "deadlock": first is None, "first": first}
        row["first_seconds"] = time.monotonic() - start
        both = watch.most_jobs > 1
        if first is not None:
            second = next(name for name in NAMES if name != first)
            both |= bool(clusters.pods(second))
            row["second_says"] = _statuses()[second].get("message")
            freed = time.monotonic()
            if deletes:
                clusters.kubectl("delete", "trainingjob", first, "-n", clusters.NAMESPACE, "--wait=false")
            else:
                suspended = ("--type=merge", "-p", '{"spec":{"suspend":true}}')
                clusters.kubectl("patch", "trainingjob", first, "-n", clusters.NAMESPACE, *suspended)
            followed = _whole((second,), count)
            row["second_seconds"] = time.monotonic() - freed if followed else None
        row["both_had_pods"] = both
    clusters.clear()
    return {"second_seconds": None, **row}


def _job(name: str, nodes: int) -> JobSpec:
    ps = clusters.sized(Role.PS, 1, CORES)
    return clusters.job(name, ps=ps, workers=clusters.sized(Role.WORKER, SHARE * nodes - 1, CORES))


def _whole(names: tuple[str, ...], count: int) -> str | None:
    """Wait for one of these jobs to run whole, and return which; None when none does."""

    def find() -> str | None:
        found = _statuses()
        return next((name for name in names if found[name].get("ready") == f"{count}/{count}"), None)

    try:
        return until(find, seconds=_SECONDS, every_seconds=0.3)
    except TimeoutError:
        return None


def _statuses() -> Mapping[str, Mapping[str, Any]]:
    found = clusters.objects("trainingjobs", "-n", clusters.NAMESPACE)
    return {name: {} for name in NAMES} | {
        each["metadata"]["name"]: each.get("status") or {} for each in found
    }


def draw(result: Result, path: Path) -> None:
    """Draw how long jobs took until all of their replicas ran."""
    groups = {
        "the first": [row["first_seconds"] for row in result.rows],
        "the second, once it may": [row["second_seconds"] for row in result.rows if row["second_seconds"]],
    }
    title = "Two jobs of 60 % of the cluster, submitted together"
    plots.strips(path, groups, label="seconds until all replicas run", title=title)
