"""Clusters of thousands of hollow nodes: large jobs one after the other, and thousands of pods at once."""

from __future__ import annotations

import contextlib
import functools
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

import httpx2
import numpy as np
from support import clusters, operator_processes
from support.kills import until
from support.ports import free_port

from benchmarks.pod_watches import PodWatch
from benchmarks.protocols import Check, Row, none, reported
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

#: The seeds' largest job.
PS, WORKERS = 20, 200
#: Marks the nodes that were added.
_ADDED = "paceline.dev/bench-added"
_READY_SECONDS, _RUNNING_SECONDS, _STARTED_SECONDS = 1800.0, 1800.0, 600.0
_LOOK_SECONDS = 2.0
_LOOKS = 5
#: So much longer may a large job take on many nodes.
_LIKE_SMALL = 1.5


@contextlib.contextmanager
def with_nodes(count: int) -> Iterator[None]:
    """Have so many hollow nodes in the cluster; those that were added are removed in the end."""
    (hollow,) = clusters.HOLLOW
    added = count - _ready(hollow)
    clusters.kubectl(
        "create", "--validate=false", "-f", "-",
        given=clusters.as_list(_node(f"added-{number:04d}") for number in range(added)),
        timeout_seconds=_READY_SECONDS,
    )  # fmt: skip
    try:
        until(lambda: _ready(_ADDED) >= added, seconds=_READY_SECONDS, every_seconds=_LOOK_SECONDS)
        yield
    finally:
        clusters.kubectl("delete", "--raw", f"/api/v1/nodes?labelSelector={_ADDED}")


def _ready(label: str) -> int:
    rows = clusters.kubectl("get", "nodes", "-l", label, "--no-headers").splitlines()
    return sum(row.split()[1] == "Ready" for row in rows)


def _node(name: str) -> clusters.Object:
    has = {"cpu": "80", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {**clusters.HOLLOW, _ADDED: "true", "kubernetes.io/hostname": name},
        },
        "status": {"capacity": has, "allocatable": has},
    }


def large_jobs(nodes: int, count: int) -> Row:
    """Submit large jobs, one after the other; return how long each took until all of it ran."""
    with operator_processes.acting(keeping=True) as operator:
        begun = operator.usage()
        seconds = [_large_job(number) for number in range(count)]
        used = operator.usage()
    return {
        "nodes": nodes,
        "running_seconds": seconds,
        "begin_cpu_seconds": begun.cpu_seconds,
        "cpu_seconds": (used.cpu_seconds - begun.cpu_seconds) / count,
        "memory_bytes": used.peak_memory_bytes,
    }


def _large_job(number: int) -> float:
    with PodWatch.following() as watch:
        start = time.monotonic()
        _submit([_job(f"large-{number}", PS, WORKERS)])
        last = watch.wait_for_running(PS + WORKERS, seconds=_RUNNING_SECONDS)
    clusters.clear()
    return last - start


def many_jobs(nodes: int, count: int, ps: int, workers: int) -> Row:
    """Submit many jobs at once, look at them in each way, and have another operator take over."""
    specs = [_job(f"job-{number:03d}", ps, workers) for number in range(count)]
    port = free_port()
    with (
        operator_processes.acting(arguments=("--listen", f"127.0.0.1:{port}"), keeping=True) as operator,
        PodWatch.following() as watch,
    ):
        start = time.monotonic()
        _submit(specs)
        submitted = time.monotonic()
        watch.wait_for_running(count * (ps + workers), seconds=_RUNNING_SECONDS)
        lasts: dict[str, float] = {}
        for pod, at in watch.running.items():
            name = pod[: len("job-000")]
            lasts[name] = max(at, lasts.get(name, start))
        used = operator.usage()
        looks = {**_verbs(specs[0].name), **_pages(specs[0].name)}
        stopped = time.monotonic()
        turns = operator.turns()
        operator.stop()  # Another one takes its place.
        until(lambda: operator.turns() > turns, seconds=_STARTED_SECONDS)
        until(lambda: _looked_at(port) >= count, seconds=_STARTED_SECONDS)
        began = time.monotonic() - stopped
        fresh = operator.usage()
    return {
        "nodes": nodes,
        "pods": count * (ps + workers),
        "submitted_seconds": submitted - start,
        "running_seconds": [at - start for at in lasts.values()],
        "doubled": sorted(watch.doubled),
        "cpu_seconds": used.cpu_seconds,
        "memory_bytes": used.peak_memory_bytes,
        "look_seconds": looks,
        "successor_seconds": began,
        "successor_cpu_seconds": fresh.cpu_seconds,
        "successor_memory_bytes": fresh.peak_memory_bytes,
    }


def _job(name: str, ps: int, workers: int) -> JobSpec:
    of_ps, of_workers = (
        clusters.sized(role, count, 0.5, 64) for role, count in ((Role.PS, ps), (Role.WORKER, workers))
    )
    return clusters.job(name, ps=of_ps, workers=of_workers)


def _submit(specs: Sequence[JobSpec]) -> None:
    given = clusters.as_list(map(clusters.resource, specs))
    clusters.kubectl("create", "-f", "-", given=given, timeout_seconds=_RUNNING_SECONDS)


def _looked_at(port: int) -> float:
    """Return how many looks at jobs an operator has had."""
    try:
        figures = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=60, trust_env=False).text
    except httpx2.TransportError:  # It does not listen yet.
        return 0.0
    found = re.search(r"^paceline_operator_reconciliations_total (\S+)$", figures, re.MULTILINE)
    return float(found[1]) if found else 0.0


def _verbs(name: str) -> Row:
    """Return how long commands take, their start included; without `top`: hollow nodes run no agents."""
    where = ("--engine", "kubernetes", "-n", clusters.NAMESPACE)
    commands = {"list": ("list",), "describe": ("describe", name), "why": ("why", name)}
    return {
        f"paceline {verb}": _seconds(functools.partial(_run, *command, *where))
        for verb, command in commands.items()
    }


def _run(*arguments: str) -> None:
    command = [*operator_processes.PACELINE, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=_STARTED_SECONDS)


def _pages(name: str) -> Row:
    """Return how long the page of all jobs, the page of one, and a page of the API's list take."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as home:
        where = ("--engine", "kubernetes", "-n", clusters.NAMESPACE, "--home", home, "--port", "0")
        command = [*operator_processes.PACELINE, "serve", *where]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                link = httpx2.URL(server.stdout.readline().strip())
                with httpx2.Client(
                    follow_redirects=True, timeout=_STARTED_SECONDS, trust_env=False
                ) as client:
                    _get(client, link)
                    return {
                        path: _seconds(functools.partial(_get, client, link.join(path)))
                        for path in ("/", f"/jobs/{name}", "/api/v1/jobs")
                    }
            finally:
                server.terminate()


def _get(client: httpx2.Client, url: httpx2.URL) -> None:
    client.get(url).raise_for_status()


def _seconds(look: Callable[[], object]) -> list[float]:
    """Return how long a look takes, each of some times."""
    found = []
    for _ in range(_LOOKS):
        start = time.monotonic()
        look()
        found.append(time.monotonic() - start)
    return found


def checks(small: Row, large: Row, full: Row) -> list[Check]:
    """Return what follows from large jobs on few and on many nodes, and from many pods."""
    nodes = (small["nodes"], large["nodes"])
    seconds = [np.asarray(row["running_seconds"]) for row in (small, large)]
    # Each job of the one size against each of the other.
    ratios = np.divide.outer(seconds[1], seconds[0]).ravel()
    low, high = np.percentile(ratios, [2.5, 97.5])
    value = float(np.median(seconds[1]) / np.median(seconds[0]))
    of_size = f"of {nodes[1]} nodes to {nodes[0]}, until {PS + WORKERS} replicas run"
    waits = full["running_seconds"]
    jobs = f"{len(waits)} jobs with {full['pods']} pods"
    return [
        Check(
            name=f"times as long {of_size}", value=value, low=float(low), high=float(high),
            target=f"<= {_LIKE_SMALL:g}", holds=value <= _LIKE_SMALL,
        ),
        *_of_size(small),
        *_of_size(large),
        none(f"{jobs}: replicas that were there twice", [len(full["doubled"])]),
        reported(f"{jobs} submitted at once: seconds until half of them run", [float(np.median(waits))]),
        reported(f"{jobs}: until 99 % of them run", [float(np.percentile(waits, 99))]),
        reported(f"{jobs}: CPU seconds of the operator", [full["cpu_seconds"]]),
        reported(f"{jobs}: memory of the operator, MB", [full["memory_bytes"] / 1e6]),
        reported(f"{jobs}: seconds until another operator has looked at all", [full["successor_seconds"]]),
        reported(f"{jobs}: its CPU seconds until then", [full["successor_cpu_seconds"]]),
        reported(f"{jobs}: its memory, MB", [full["successor_memory_bytes"] / 1e6]),
        *(reported(f"{jobs}: seconds of {what}", found) for what, found in full["look_seconds"].items()),
    ]  # fmt: skip


def _of_size(row: Row) -> list[Check]:
    """Return what large jobs took on a cluster of one size."""
    where = f"{row['nodes']} nodes"
    return [
        reported(f"{where}: seconds until {PS + WORKERS} replicas run", row["running_seconds"]),
        reported(f"{where}: CPU seconds of the operator for each job", [row["cpu_seconds"]]),
        reported(f"{where}: memory of the operator, MB", [row["memory_bytes"] / 1e6]),
    ]
