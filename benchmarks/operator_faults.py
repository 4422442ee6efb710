"""The operator killed, its API server restarted, its watches cut, its writes refused: what becomes of jobs.

While three jobs are stopped and resumed at random and lose pods, faults come at random moments. Afterwards
every job has to be where it was asked to be. The operator reaches the API server through a proxy that can cut
connections, and have watches begin at a version that the server has forgotten: it says ``410 Gone`` then.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import random
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from support import clusters, operator_processes
from support.kills import until
from support.operator_processes import OperatorProcess

from benchmarks import api_servers, plots
from benchmarks.pod_watches import PodWatch
from benchmarks.protocols import Bench, Check, Result, Row, none
from benchmarks.proxies import Proxy
from paceline.engines.kubernetes import kinds
from paceline.model.jobs.job_specs import JobSpec, RestartPolicy
from paceline.model.roles import Role
from paceline.surfaces import composition

NAMES = ("one", "two", "three")
PS, WORKERS = 1, 3
WHOLE = f"{PS + WORKERS}/{PS + WORKERS}"
KILL, RESTART, CUT, GONE, CONFLICT = (
    "operator killed", "API server restarted", "connections cut", "410 Gone", "409 Conflict",
)  # fmt: skip
#: How many trials, and faults in each; in full and in a quick run.
FULL = {KILL: (10, 3), RESTART: (5, 1), CUT: (3, 5), GONE: (3, 3), CONFLICT: (3, 1)}
QUICK = {KILL: (1, 1), RESTART: (1, 1), CUT: (1, 2), GONE: (1, 1), CONFLICT: (1, 1)}
#: A fault comes at a random moment of so many seconds.
_SPAN_SECONDS = 5.0
_CONFLICT_SECONDS, _PATCH_SECONDS = 10.0, 0.02
_SETTLED_SECONDS = 120.0
_GONE = re.compile(r"listed again: .*(?:too old resource version|Gone|Expired)")
_REFUSED = re.compile(
    r'^apiserver_request_total\{.*code="409".*resource="trainingjobs".*\} (\d+)', re.MULTILINE
)


def run(bench: Bench) -> list[Check]:
    """Run the trials."""
    clusters.hollow_nodes(quick=True)
    wanted = QUICK if bench.quick else FULL
    bench.plan(sum(trials for trials, _ in wanted.values()))
    server = api_servers.ApiServer.find()
    with Proxy.before(*api_servers.address()) as proxy, operator_processes.acting(proxy.port) as operator:
        world = World(operator, proxy, server)
        for kind, (trials, faults) in wanted.items():
            for number in range(trials if kind != RESTART or server else 0):
                bench.repeat(f"{kind} {number}", functools.partial(_run, world, kind, number, faults))
    return _checks(bench.rows, wanted)


@dataclasses.dataclass
class World:
    """What faults happen to."""

    operator: OperatorProcess
    proxy: Proxy
    server: api_servers.ApiServer | None


def _run(world: World, kind: str, seed: int, faults: int) -> Row:
    generator = random.Random(f"{kind} {seed}")
    clusters.clear()
    with PodWatch.following() as watch:
        specs = [clusters.resource(_job(name)) for name in NAMES]
        clusters.kubectl("create", "-f", "-", given=clusters.as_list(specs))
        with _acting_users(random.Random(seed)) as wanted:
            made = 0
            for _ in range(faults):
                time.sleep(generator.uniform(0.0, _SPAN_SECONDS))
                made += FAULTS[kind](world, generator)
        began = time.monotonic()
        with contextlib.suppress(TimeoutError):
            until(lambda: _is_right(wanted), seconds=_SETTLED_SECONDS, every_seconds=0.5)
        settled = time.monotonic() - began
        time.sleep(2.0)  # what is wrong by then stays so
        return {
            "kind": kind,
            "faults": made,
            "settled_seconds": settled,
            "wanted": dict(wanted),
            "forgotten": _forgotten(wanted),
            "wrong": _wrong(wanted),
            "twice": sorted(watch.doubled),
        }


def _job(name: str) -> JobSpec:
    restart = RestartPolicy(limit=1000, backoff_seconds=0.5)
    roles = (clusters.sized(Role.PS, PS, 1.0), clusters.sized(Role.WORKER, WORKERS, 1.0))
    ps, workers = (dataclasses.replace(role, restart=restart) for role in roles)
    return clusters.job(name, ps=ps, workers=workers)


@contextlib.contextmanager
def _acting_users(generator: random.Random) -> Iterator[dict[str, str]]:
    """Stop and resume jobs and remove pods meanwhile; yield the phases that jobs should have."""
    wanted = dict.fromkeys(NAMES, "running")
    ended = threading.Event()

    def act() -> None:
        while not ended.wait(generator.uniform(0.2, 1.5)):
            name = generator.choice(NAMES)
            if generator.random() < 0.5:
                _remove_pod(generator, name)
            else:
                wanted[name] = "stopped" if wanted[name] == "running" else "running"
                _suspend(name, wanted[name] == "stopped")

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield wanted
    finally:
        ended.set()
        thread.join()


def _remove_pod(generator: random.Random, name: str) -> None:
    with contextlib.suppress(clusters.KubectlError):  # the API server may be away, and so may the pod
        pods = clusters.pods(name)
        if pods:
            victim = generator.choice(pods)["metadata"]["name"]
            clusters.kubectl("delete", "pod", victim, "-n", clusters.NAMESPACE, "--grace-period=0", "--force")


def _suspend(name: str, suspended: bool) -> None:
    """Ask for it until the API server has taken it."""

    def asked() -> bool:
        changes = json.dumps({"spec": {"suspend": suspended}})
        with contextlib.suppress(clusters.KubectlError):
            clusters.kubectl("patch", "tj", name, "-n", clusters.NAMESPACE, "--type=merge", "-p", changes)
            return True
        return False

    until(asked, seconds=_SETTLED_SECONDS, every_seconds=0.3)


def _kill(world: World, _generator: random.Random) -> int:
    """Kill the operator, and wait until the next one acts."""
    before = world.operator.turns()
    world.operator.kill()
    until(lambda: world.operator.turns() > before)
    return 1


def _restart(world: World, generator: random.Random) -> int:
    """End the API server, with a warning or without, and start it again."""
    assert world.server is not None, "trials without one are left out"
    world.server.restart(generator.choice((signal.SIGTERM, signal.SIGKILL)))
    return 1


def _cut(world: World, _generator: random.Random) -> int:
    """Cut all connections of the operator; return how many there were."""
    before = world.proxy.cuts
    world.proxy.cut()
    until(lambda: world.proxy.cuts > before)
    return world.proxy.cuts - before


def _age(world: World, generator: random.Random) -> int:
    """Cut all connections and have the next watches begin long ago; return how often that was refused."""
    before = _told_gone(world)
    world.proxy.to_age = generator.randint(1, 3)
    _cut(world, generator)
    until(lambda: _told_gone(world) > before)
    return _told_gone(world) - before


def _conflict(_world: World, generator: random.Random) -> int:
    """Change annotations of all jobs again and again; return how many writes were refused for that."""
    refused = _refused()
    with composition.opened_cluster(None, clusters.NAMESPACE) as jobs:
        end = time.monotonic() + _CONFLICT_SECONDS
        for number in itertools.count():
            if time.monotonic() > end:
                break
            changes = {"metadata": {"annotations": {"bench": str(number)}}}
            name = generator.choice(NAMES)
            jobs.runner.run(jobs.cluster.patch(kinds.TRAINING_JOBS, name, clusters.NAMESPACE, changes))
            time.sleep(_PATCH_SECONDS)
    return _refused() - refused


FAULTS = {KILL: _kill, RESTART: _restart, CUT: _cut, GONE: _age, CONFLICT: _conflict}


def _refused() -> int:
    """Return how many writes of jobs the API server has refused with 409 since it was started."""
    return sum(map(int, _REFUSED.findall(clusters.kubectl("get", "--raw", "/metrics"))))


def _told_gone(world: World) -> int:
    """Return how often the operator was told 410 Gone."""
    return len(_GONE.findall(world.operator.log.read_text()))


def _is_right(wanted: dict[str, str]) -> bool:
    try:
        return not _forgotten(wanted) and not _wrong(wanted)
    except clusters.KubectlError:
        return False


def _forgotten(wanted: dict[str, str]) -> int:
    """Return how many replicas do not run that should."""
    running = {clusters.replica_of(pod) for pod in clusters.pods() if clusters.is_running(pod)}
    replicas = (
        f"{name}/{replica}"
        for name in NAMES
        if wanted[name] == "running"
        for replica in _job(name).replicas()
    )
    return sum(replica not in running for replica in replicas)


def _wrong(wanted: dict[str, str]) -> int:
    """Return how many jobs say something else than they should, or have pods while they are stopped."""
    found = {each["metadata"]["name"]: each.get("status") or {} for each in
             clusters.objects("trainingjobs", "-n", clusters.NAMESPACE)}  # fmt: skip
    live = {clusters.replica_of(pod).partition("/")[0] for pod in clusters.pods() if clusters.is_live(pod)}
    wrong = 0
    for name, phase in wanted.items():
        says = found.get(name, {})
        ready = WHOLE if phase == "running" else f"0/{PS + WORKERS}"
        wrong += (says.get("phase"), says.get("ready")) != (phase, ready) or (
            phase == "stopped" and name in live
        )
    return wrong


def _checks(rows: Sequence[Row], wanted: dict[str, tuple[int, int]]) -> list[Check]:
    checks = [
        none("replicas that were there twice", [len(row["twice"]) for row in rows]),
        none("replicas that were forgotten", [row["forgotten"] for row in rows]),
        none("jobs in a wrong state", [row["wrong"] for row in rows]),
    ]
    for kind, (trials, faults) in wanted.items():
        checks.append(_made(kind, [row["faults"] for row in rows if row["kind"] == kind], trials * faults))
    return checks


def _made(name: str, counts: Sequence[int], least: int) -> Check:
    """The check that there were faults; not measured, where the API server cannot be restarted."""
    total = float(sum(counts)) if counts else None
    return Check(
        name=name, value=total, low=None, high=None, target=f">= {least}",
        holds=total is not None and total >= least,
    )  # fmt: skip


def draw(result: Result, path: Path) -> None:
    """Draw how soon after the last fault every job was where it should be."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        groups.setdefault(row["kind"], []).append(row["settled_seconds"])
    plots.strips(path, groups, label="seconds until all jobs are as asked", title="After the last fault")
