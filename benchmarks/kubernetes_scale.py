"""Many jobs on 20 nodes, large jobs and 20,000 pods on 5,000: are all right, and what does the operator need.

On 20 nodes 300 jobs of 5 replicas are submitted at once, and pods of them are removed. A change is a pod of a
running job that is removed, and later its next attempt that runs. It counts from the moment at which a watch
of the pods shows it to the moment at which the function behind ``paceline list``, called again and again, has
returned a row with it.

A job of 220 replicas is submitted five times, on 20 nodes and on 5,000. Then 500 jobs of 40 replicas are, and
another operator takes over with all of them there.
The operator goes round all replicas meanwhile to keep what they say, as the shipped one does; pods on hollow
nodes have no agent that would answer, which is the worst case of it.
"""

from __future__ import annotations

import functools
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from support import clusters, operator_processes
from support.kills import until

from benchmarks import large_clusters, plots
from benchmarks.pod_watches import PodWatch
from benchmarks.protocols import Bench, Check, Result, Row, at_most, none, percentile_at_most, reported
from paceline.model.roles import Role
from paceline.rendering import labels
from paceline.services.cluster.jobs import ClusterJobs
from paceline.surfaces import composition

PS, WORKERS = 2, 3
MEMORY_MB = 300
VISIBLE_SECONDS = 2.0
#: So many pods are removed together; each of another job.
BATCH = 10
WHOLE = f"ps {PS}/{PS}, worker {WORKERS}/{WORKERS}"
_RUNNING_SECONDS, _SETTLED_SECONDS = 900.0, 120.0
#: As a user would that looks at a screen.
_POLL_SECONDS = 0.1


def run(bench: Bench) -> list[Check]:
    """Submit the jobs, have pods removed."""
    nodes = len(clusters.hollow_nodes(quick=bench.quick))
    repeats, jobs, batches = (1, 30, 2) if bench.quick else (2, 300, 5)
    in_turn, more_nodes, many, size = (2, 60, 20, (2, 4)) if bench.quick else (5, 5000, 500, (4, 36))
    bench.plan(repeats + 3)
    rows = [
        bench.repeat(f"{jobs} jobs {number}", functools.partial(_run, number, jobs, batches))
        for number in range(repeats)
    ]
    small = bench.repeat("few nodes", functools.partial(large_clusters.large_jobs, nodes, in_turn))
    with large_clusters.with_nodes(more_nodes):
        large = bench.repeat("many nodes", functools.partial(large_clusters.large_jobs, more_nodes, in_turn))
        full = bench.repeat("many pods", functools.partial(large_clusters.many_jobs, more_nodes, many, *size))
    return [*_checks(rows, jobs), *large_clusters.checks(small, large, full)]


def _run(seed: int, count: int, batches: int) -> Row:
    specs = [
        clusters.job(
            f"job-{number:03d}",
            ps=clusters.sized(Role.PS, PS, 0.5, 64),
            workers=clusters.sized(Role.WORKER, WORKERS, 0.5, 64),
        )
        for number in range(count)
    ]
    names = [spec.name for spec in specs]
    with (
        operator_processes.acting(keeping=True) as operator,
        PodWatch.following() as watch,
        composition.opened_cluster(None, clusters.NAMESPACE) as jobs,
    ):
        start = time.monotonic()
        given = clusters.as_list(map(clusters.resource, specs))
        clusters.kubectl("create", "-f", "-", given=given, timeout_seconds=_RUNNING_SECONDS)
        submitted = time.monotonic()
        last = watch.wait_for_running(count * (PS + WORKERS), seconds=_RUNNING_SECONDS)
        shown = _when_shown(jobs, dict.fromkeys(names, _is_whole), start)
        wrong = _wrong(names)
        started = operator.usage()
        generator = random.Random(seed)
        changes = [_change(jobs, watch, generator.sample(names, BATCH)) for _ in range(batches)]
        used = operator.usage()
        return {
            "jobs": count,
            "submitted_seconds": submitted - start,
            "running_seconds": last - start,
            "shown_seconds": max(shown.values()),
            "wrong": wrong + _wrong(names),
            "doubled": sorted(watch.doubled),
            "operator_cpu_seconds": started.cpu_seconds,
            "operator_cpu_seconds_of_changes": used.cpu_seconds - started.cpu_seconds,
            "operator_memory_bytes": used.peak_memory_bytes,
            "lost_seconds": [each for lost, _ in changes for each in lost],
            "back_seconds": [each for _, back in changes for each in back],
        }


def _is_whole(replicas: str) -> bool:
    return replicas == WHOLE


def _change(jobs: ClusterJobs, watch: PodWatch, names: Sequence[str]) -> tuple[list[float], list[float]]:
    """Remove a pod of each job; return after how many seconds that was listed, and its next attempt."""
    victims = {name: f"{name}-worker-0-{_attempt(watch, name)}" for name in names}
    command = ("delete", "pods", *victims.values(), "-n", clusters.NAMESPACE, "--grace-period=0", "--force")
    clusters.kubectl(*command, "--wait=false")
    lost = _when_shown(jobs, dict.fromkeys(names, lambda replicas: not _is_whole(replicas)), 0.0)
    back = _when_shown(jobs, dict.fromkeys(names, _is_whole), 0.0)
    following = {name: f"{name}-worker-0-{_attempt(watch, name)}" for name in names}
    return (
        [lost[name] - watch.gone[victim] for name, victim in victims.items()],
        [back[name] - watch.running[pod] for name, pod in following.items()],
    )


def _attempt(watch: PodWatch, name: str) -> int:
    """Return the newest attempt of a job's first worker."""
    prefix = f"{name}-worker-0-"
    return max(int(pod.removeprefix(prefix)) for pod in watch.running if pod.startswith(prefix))


def _when_shown(
    jobs: ClusterJobs, wanted: Mapping[str, Callable[[str], bool]], since: float
) -> dict[str, float]:
    """List again and again; return how long after a moment each job was listed as wanted."""
    shown: dict[str, float] = {}

    def all_are() -> bool:
        rows = {run.name: run.replicas for run in jobs.runs()}
        now = time.monotonic()
        for name, is_so in wanted.items():
            if name not in shown and is_so(rows[name]):
                shown[name] = now - since
        return len(shown) == len(wanted)

    until(all_are, seconds=_SETTLED_SECONDS, every_seconds=_POLL_SECONDS)
    return shown


def _wrong(names: Sequence[str]) -> int:
    """Return how many jobs have not exactly their pods, or say otherwise."""
    pods: dict[str, Counter[str]] = {name: Counter() for name in names}
    for pod in filter(clusters.is_running, clusters.pods()):
        pods[pod["metadata"]["labels"][labels.JOB]][clusters.replica_of(pod)] += 1
    wrong = 0
    for each in clusters.objects("trainingjobs", "-n", clusters.NAMESPACE):
        found, status = pods[each["metadata"]["name"]], each.get("status") or {}
        is_right = len(found) == PS + WORKERS == found.total()
        says_so = (status.get("phase"), status.get("ready")) == ("running", f"{PS + WORKERS}/{PS + WORKERS}")
        wrong += not (is_right and says_so)
    return wrong


def _checks(rows: Sequence[Row], count: int) -> list[Check]:
    memory = [row["operator_memory_bytes"] / 1e6 for row in rows]
    cpu = [row["operator_cpu_seconds"] for row in rows]
    seconds = [each for row in rows for kind in ("lost", "back") for each in row[f"{kind}_seconds"]]
    return [
        none(f"of {count} jobs, those that are wrong", [row["wrong"] for row in rows]),
        none("replicas that were there twice", [len(row["doubled"]) for row in rows]),
        at_most("peak memory of the operator, MB", memory, MEMORY_MB),
        reported(f"CPU seconds of the operator until {count} jobs run", cpu),
        percentile_at_most("seconds until a change is listed, 95th percentile", seconds, 95, VISIBLE_SECONDS),
    ]


def draw(result: Result, path: Path) -> None:
    """Draw how long each change took to be listed."""
    groups = {
        name: [each for row in result.rows for each in row.get(f"{kind}_seconds", ())]
        for name, kind in (("a pod is gone", "lost"), ("a pod runs", "back"))
    }
    limits = dict.fromkeys(groups, VISIBLE_SECONDS)
    title = "Until a change is listed (dashed: the limit of the 95th percentile)"
    plots.strips(path, groups, label="seconds", title=title, limits=limits)
