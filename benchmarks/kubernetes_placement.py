"""20 PS and 200 workers on a cluster of 20 nodes: who lies where, and how soon all run.

The seeds' fourth case: a PS of 2 cores and 4 GiB for each node, ten workers of 0.3 cores and 4 GiB for each
PS.
Time is from submitting (the command line, to the operator's status and the kubelets) until all pods run,
against ``kubectl apply`` of the same pods without an operator; both in turn, on the same nodes.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from support import clusters, operator_processes
from support.operator_processes import OperatorProcess

from benchmarks import plots
from benchmarks.pod_watches import PodWatch
from benchmarks.protocols import Bench, Check, Result, Row, at_most, none
from paceline import specs
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import Role
from paceline.rendering import manifests
from paceline.rendering.surroundings import AgentSetup, Surroundings

WORKERS_PER_PS = 10
RATIO = 1.3
JOB = "clicks"
SIDES = ("bare", "operator")
_RUNNING_SECONDS = 300.0
#: Kubelets have things to do for a while after pods are gone.
_SETTLE_SECONDS = 3.0
Places = dict[str, str]


def run(bench: Bench) -> list[Check]:
    """Run pairs of a job and its bare pods, and the other strategies in between."""
    nodes = clusters.hollow_nodes(quick=bench.quick)
    pairs, others = (2, 1) if bench.quick else (8, 3)
    bench.plan(2 * pairs + 2 * others)
    with operator_processes.acting() as operator:
        for pair in range(pairs):
            for side in SIDES if pair % 2 else reversed(SIDES):
                strategy = PlacementStrategy.SPREAD_PS
                bench.repeat(f"{side} {pair}", functools.partial(_run, side, strategy, len(nodes), operator))
            for strategy in (PlacementStrategy.COLOCATE, PlacementStrategy.ISOLATE) if pair < others else ():
                bench.repeat(
                    f"{strategy} {pair}", functools.partial(_run, "operator", strategy, len(nodes), operator)
                )
    return _checks(bench.rows, len(nodes))


def _run(side: str, strategy: PlacementStrategy, count: int, operator: OperatorProcess) -> Row:
    spec = clusters.job(
        JOB,
        ps=clusters.sized(Role.PS, count, 2.0, 4096),
        workers=clusters.sized(Role.WORKER, WORKERS_PER_PS * count, 0.3, 4096),
        strategy=strategy,
    )
    used = operator.usage().cpu_seconds
    with PodWatch.following() as watch, tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        begin = _bare(spec, Path(folder)) if side == "bare" else _submitted(spec, Path(folder))
        start = time.monotonic()
        subprocess.run(
            begin, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PACELINE_HOME": folder}
        )
        accepted = time.monotonic()
        last = watch.wait_for_running(len(spec.replicas()), seconds=_RUNNING_SECONDS)
        first = min(watch.running.values())
    places = {clusters.replica_of(pod): pod["spec"]["nodeName"] for pod in clusters.pods(JOB)}
    row: Row = {
        "side": side,
        "strategy": str(strategy),
        "seconds": last - start,
        "accepted_seconds": accepted - start,
        "first_runs_seconds": first - start,
        "operator_cpu_seconds": operator.usage().cpu_seconds - used,
        "nodes_with_one_ps": _nodes_with_one_ps(places),
        "violations": _violations(strategy, places, count),
    }
    clusters.clear()
    time.sleep(_SETTLE_SECONDS)
    return row


def _bare(spec: JobSpec, folder: Path) -> list[str]:
    """Return the command that applies the pods of a job as they are, with what they need."""
    where = Surroundings(namespace=clusters.NAMESPACE, agent=AgentSetup(image=None))
    path = folder / "pods.json"
    path.write_text(clusters.as_list(manifests.rendered(spec, manifests.Target.PODS, where)))
    return ["kubectl", "apply", "-f", str(path)]


def _submitted(spec: JobSpec, folder: Path) -> list[str]:
    path = folder / "job.yaml"
    path.write_text(specs.dump_job(spec))
    program = str(Path(sys.executable).parent / "paceline")
    return [program, "submit", str(path), "--engine", "kubernetes", "-n", clusters.NAMESPACE]


def _of_ps(places: Places) -> dict[int, str]:
    return {_index(replica): node for replica, node in places.items() if "/ps-" in replica}


def _of_workers(places: Places) -> dict[int, str]:
    return {_index(replica): node for replica, node in places.items() if "/worker-" in replica}


def _index(replica: str) -> int:
    return int(replica.rpartition("-")[2])


def _nodes_with_one_ps(places: Places) -> int:
    return sum(count == 1 for count in Counter(_of_ps(places).values()).values())


def _violations(strategy: PlacementStrategy, places: Places, count: int) -> int:
    """Return how many replicas lie where the strategy does not want them."""
    ps, workers = _of_ps(places), _of_workers(places)
    crowded = sum(others - 1 for others in Counter(ps.values()).values())
    match strategy:
        case PlacementStrategy.SPREAD_PS:
            return crowded
        case PlacementStrategy.COLOCATE:
            return crowded + sum(node != ps[index % count] for index, node in workers.items())
        case PlacementStrategy.ISOLATE:
            return sum(node in workers.values() for node in ps.values())
        case PlacementStrategy.ANY:
            return 0


def _checks(rows: Sequence[Row], nodes: int) -> list[Check]:
    spread = [row for row in rows if row["strategy"] == PlacementStrategy.SPREAD_PS]
    ours = [row for row in spread if row["side"] == "operator"]
    lacking = [nodes - row["nodes_with_one_ps"] for row in ours]
    checks = [none(f"spread-ps: of {nodes} nodes, those without exactly one PS", lacking)]
    for strategy in (PlacementStrategy.COLOCATE, PlacementStrategy.ISOLATE):
        found = [row["violations"] for row in rows if row["strategy"] == strategy]
        checks.append(none(f"{strategy}: replicas where they must not be", found))
    name = "submit until all run, against kubectl apply of the bare pods"
    return [*checks, at_most(name, _ratios(spread), RATIO)]


def _ratios(rows: Sequence[Row]) -> list[float]:
    """Return the ratio of each pair."""
    bare, ours = ([row["seconds"] for row in rows if row["side"] == side] for side in SIDES)
    return [one / other for one, other in zip(ours, bare, strict=True)]


def draw(result: Result, path: Path) -> None:
    """Draw the seconds of every repeat."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        groups.setdefault(f"{row['side']}, {row['strategy']}", []).append(row["seconds"])
    plots.strips(
        path, groups, label="seconds until all pods run", title="A PS for each node, ten workers for each PS"
    )
