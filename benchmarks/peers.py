"""The same job under Paceline, Kubeflow's operator, Volcano, and Kueue with a Job, on one cluster.

Each system gets a job of so many replicas with nothing else there; 20 hollow nodes run them. A pod of the job
is then given the status that a kubelet writes when a process was killed, and another one has to come. At last
the job is deleted. Peers run as they come, with the rates of requests of their manifests, and again with
rates that do not hold them back; Paceline has no such limit.

What a system asks of the API server is counted in the server's audit log, by who asks. CPU and memory are
those of all programs without which the system does not act on a job, but the scheduler of Kubernetes; for a
Job that is the controller manager of Kubernetes, which does other things, too.

Its cluster is made by ``make bench-peers``.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from support import clusters
from support.kills import until
from support.prerequisites import NotHere

from benchmarks import plots
from benchmarks.peer_systems import JOB, PACELINE, SYSTEMS, PeerSystem, Rate
from benchmarks.pod_watches import PodWatch
from benchmarks.protocols import Bench, Check, Result, Row, reported

REPLICAS = (20, 220, 1000)
#: Requests a second that a peer may make, and how many at once; None: as its manifests say.
FAST = (1000, 2000)
#: What is to be shorter under Paceline than under each peer.
_SPANS = ("running_seconds", "successor_seconds", "deleted_seconds")
_SECONDS, _SETTLED_SECONDS = 900.0, 3.0


def run(bench: Bench) -> list[Check]:
    """Run a job of each size under each system, in turn."""
    clusters.hollow_nodes(quick=bench.quick)
    audits = Path(os.environ.get("PACELINE_AUDIT_LOG", ""))
    if not audits.is_file():
        raise NotHere("it counts requests in the audit log of the API server (make bench-peers)")
    clusters.install(clusters.NAMESPACE)
    sizes, repeats = ((20,), 1) if bench.quick else (REPLICAS, 3)
    bench.plan(repeats * len(sizes) * (2 * len(SYSTEMS) - 1))
    for number in range(repeats):
        for replicas in sizes:
            for system in (make() for make in SYSTEMS):
                for rate in (None,) if system.name == PACELINE else (None, FAST):
                    key = f"{system.name} {replicas} {'as it comes' if rate is None else 'fast'} {number}"
                    bench.repeat(key, lambda: _measured(system, replicas, rate, audits))  # noqa: B023
    return _checks(bench.rows)


def _measured(system: PeerSystem, replicas: int, rate: Rate | None, audits: Path) -> Row:
    with system.acting(rate):
        _warm_up(system)
        return _of_one_job(system, replicas, rate, audits)


def _warm_up(system: PeerSystem) -> None:
    """Run a small job: a system that has been started acts then, and knows the cluster."""

    def is_made() -> bool:
        try:
            clusters.kubectl("create", "-f", "-", given=clusters.as_list(system.job(REPLICAS[0])))
        except clusters.KubectlError:  # Its webhooks do not answer yet.
            return False
        return True

    with PodWatch.following(system.selector) as watch:
        until(is_made, seconds=_SECONDS, every_seconds=1.0)
        watch.wait_for_starts(REPLICAS[0], seconds=_SECONDS)
        clusters.kubectl("delete", system.kind, JOB, "-n", clusters.NAMESPACE)
        watch.wait_for_none(seconds=_SECONDS)


def _of_one_job(system: PeerSystem, replicas: int, rate: Rate | None, audits: Path) -> Row:
    with PodWatch.following(system.selector) as watch:
        before = [each.cpu_seconds for each in system.usages()]
        begin = audits.stat().st_size
        start = time.monotonic()
        given = clusters.as_list(system.job(replicas))
        clusters.kubectl("create", "-f", "-", given=given, timeout_seconds=_SECONDS)
        running = watch.wait_for_starts(replicas, seconds=_SECONDS) - start
        time.sleep(_SETTLED_SECONDS)  # What follows the last start belongs to it.
        used, end = system.usages(), audits.stat().st_size
        killed = time.monotonic()
        _kill(system.selector)
        successor = watch.wait_for_starts(replicas + 1, seconds=_SECONDS) - killed
        time.sleep(_SETTLED_SECONDS)
        deleted = time.monotonic()
        clusters.kubectl("delete", system.kind, JOB, "-n", clusters.NAMESPACE, "--wait=false")
        gone = watch.wait_for_none(seconds=_SECONDS) - deleted
    requests = _requests(audits, begin, end, system)
    return {
        "system": system.name,
        "replicas": replicas,
        "is_fast": rate is not None,
        "running_seconds": running,
        "successor_seconds": successor,
        "deleted_seconds": gone,
        "requests": dict(requests),
        "requests_per_replica": requests.total() / replicas,
        "cpu_seconds": sum(each.cpu_seconds for each in used) - sum(before),
        "memory_bytes": sum(each.peak_memory_bytes for each in used),
    }


def _kill(selector: str) -> None:
    """Give a worker's pod the status that its kubelet writes when the process was killed."""
    pods = filter(clusters.is_running, clusters.objects("pods", "-n", clusters.NAMESPACE, "-l", selector))
    pod = max(pods, key=lambda each: str(each["metadata"]["name"]))
    ended = {"exitCode": 137, "reason": "Error"}
    container = {
        "name": pod["spec"]["containers"][0]["name"], "image": "i", "imageID": "", "ready": False,
        "restartCount": 0, "state": {"terminated": ended},
    }  # fmt: skip
    patch = json.dumps({"status": {"phase": "Failed", "containerStatuses": [container]}})
    own = (pod["metadata"]["name"], "-n", clusters.NAMESPACE)
    clusters.kubectl("patch", "pod", *own, "--subresource=status", "-p", patch)


def _requests(audits: Path, begin: int, end: int, system: PeerSystem) -> Counter[str]:
    """Return how often a system asked for what, within a piece of the audit log."""
    with audits.open("rb") as file:
        file.seek(begin)
        lines = file.read(end - begin).splitlines()
    asked: Counter[str] = Counter()
    for line in lines:
        request = json.loads(line)
        if request["verb"] != "watch" and system.is_asking(request):
            asked[f"{request['verb']} {(request.get('objectRef') or {}).get('resource', '')}".strip()] += 1
    return asked


def _checks(rows: Sequence[Row]) -> list[Check]:
    checks = []
    for replicas in dict.fromkeys(row["replicas"] for row in rows):
        for name, is_fast in dict.fromkeys((row["system"], row["is_fast"]) for row in rows):
            if name != PACELINE:
                peer = _of(rows, name, replicas, is_fast=is_fast)
                ours = _of(rows, PACELINE, replicas, is_fast=False)
                how = " at 1,000 requests a second" if is_fast else ""
                checks += [_ahead(f"{name}{how}", replicas, span, ours, peer) for span in _SPANS]
        for name, is_fast in dict.fromkeys((row["system"], row["is_fast"]) for row in rows):
            of_system = _of(rows, name, replicas, is_fast=is_fast)
            where = f"{replicas} replicas, {name}{' at 1,000 requests a second' if is_fast else ''}"
            checks += [
                reported(f"{where}: requests a replica", [row["requests_per_replica"] for row in of_system]),
                reported(f"{where}: CPU seconds", [row["cpu_seconds"] for row in of_system]),
                reported(f"{where}: memory, MB", [row["memory_bytes"] / 1e6 for row in of_system]),
            ]
    return checks


def _of(rows: Sequence[Row], name: str, replicas: int, *, is_fast: bool) -> list[Row]:
    wanted = (name, replicas, is_fast)
    return [row for row in rows if (row["system"], row["replicas"], row["is_fast"]) == wanted]


def _ahead(name: str, replicas: int, span: str, ours: Sequence[Row], peer: Sequence[Row]) -> Check:
    """Return the check that something takes less time under Paceline, in each pair of repeats."""
    ratios = np.divide.outer([row[span] for row in ours], [row[span] for row in peer]).ravel()
    value, low, high = float(np.median(ratios)), float(ratios.min()), float(ratios.max())
    what = span.removesuffix("_seconds")
    return Check(
        name=f"{replicas} replicas until {what}, of the time of {name}", value=value, low=low, high=high,
        target="< 1", holds=high < 1,
    )  # fmt: skip


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table with the medians of each system."""
    columns = ("system", "requests", "running after", "successor after", "gone after", "requests a replica")
    yield f"| replicas | {' | '.join(columns)} |"
    yield f"|{' --- |' * 7}"
    for replicas in dict.fromkeys(row["replicas"] for row in rows):
        for name, is_fast in dict.fromkeys((row["system"], row["is_fast"]) for row in rows):
            of_system = _of(rows, name, replicas, is_fast=is_fast)
            spans = [f"{np.median([row[span] for row in of_system]):.1f} s" for span in _SPANS]
            requests = f"{np.median([row['requests_per_replica'] for row in of_system]):.1f}"
            how = "1,000 a second" if is_fast else "as it comes"
            yield f"| {replicas} | {name} | {how} | {' | '.join(spans)} | {requests} |"


def draw(result: Result, path: Path) -> None:
    """Draw how long each system takes until all replicas of the largest job run."""
    most = max(row["replicas"] for row in result.rows)
    groups = {
        f"{name}{' (1,000/s)' if is_fast else ''}": [
            row["running_seconds"] for row in _of(result.rows, name, most, is_fast=is_fast)
        ]
        for name, is_fast in dict.fromkeys((row["system"], row["is_fast"]) for row in result.rows)
    }
    plots.strips(path, groups, label="seconds", title=f"From submit until {most} replicas run")
