"""What is said of a job before it starts, against what the real scheduler then does; how soon it is said.

Each random job meets random nodes: cordoned, tainted, without its label, or partly filled. Where it is said
to fit, its pods are applied for the nodes that were found, as the operator does it, and all have to be bound.
Where it is not, they are applied for any node, and the scheduler must not bind all.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support import clusters
from support.kills import until
from support.prerequisites import NotHere

from benchmarks import plots
from benchmarks.protocols import Bench, Check, Result, Row, at_most
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.nodes import Node, Resources
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement, Toleration
from paceline.model.roles import Role
from paceline.rendering import manifests
from paceline.rendering.surroundings import AgentSetup, Surroundings
from paceline.scheduling import fits
from paceline.scheduling.node_groups import NodeGroups
from paceline.surfaces import composition

LARGE, LIMIT_SECONDS = 5000, 1.0
FITS, DOES_NOT = "it fits", "it does not"
GIB = 1 << 30
JOB = "candidate"
_LABEL, _TAINT = "paceline.dev/bench-disk", "paceline.dev/bench"
_NODES, _JOBS_PER_WORLD = 4, 5
#: Nothing is bound for so long, and nothing more will be: the scheduler tries again after 10 s at most
#: (``podMaxBackoffSeconds``), at first after 1 s.
_QUIET_SECONDS, _PATIENCE_SECONDS = 4.0, 60.0


def run(bench: Bench) -> list[Check]:
    """Time the answer for many nodes; then ask about random jobs, and apply them."""
    worlds, repeats = (3, 2) if bench.quick else (40, 5)
    cases = list(_cases())
    bench.plan(len(cases) * repeats + worlds * _JOBS_PER_WORLD)
    for number in range(repeats):
        for name, spec, nodes in cases:
            bench.repeat(f"{name} {number}", functools.partial(_time, name, spec, nodes))
    longest = max(row["seconds"] for row in bench.rows)
    try:
        names = clusters.hollow_nodes(quick=True)[:_NODES]
    except NotHere as error:
        raise NotHere(f"{LARGE} nodes took {longest:.2f} s at most; for the rest {error}") from error
    clusters.install(clusters.NAMESPACE)
    try:
        for number in range(worlds):
            _ask_and_apply(bench, number, names)
    finally:
        _restore(names)
        clusters.clear()
    return _checks(bench.rows, worlds * _JOBS_PER_WORLD)


def _checks(rows: Sequence[Row], jobs: int) -> list[Check]:
    applied = [row for row in rows if "fits" in row]
    agreed = sum(row["fits"] == row["all_bound"] for row in applied)
    timed = [row for row in rows if "seconds" in row]
    return [
        Check(
            name="jobs of which the scheduler thought the same", value=agreed, low=None, high=None,
            target=f"{jobs} of {jobs}", holds=agreed == jobs,
        ),
        *(
            at_most(f"seconds for {LARGE} nodes, {name}", [r["seconds"] for r in timed if r["case"] == name],
                    LIMIT_SECONDS)
            for name in dict.fromkeys(row["case"] for row in timed)
        ),
    ]  # fmt: skip


def _cases() -> Iterator[tuple[str, JobSpec, list[Node]]]:
    """Yield the seeds' largest job in two sizes, with nodes of which many have room, or few."""
    generator = random.Random(0)
    nodes = [_nearly_full(generator, number) for number in range(LARGE)]
    for strategy in PlacementStrategy:
        together = strategy is PlacementStrategy.COLOCATE
        of_ps, of_worker = (1.0, (0.15, 0.3)) if together else (2.0, (3.0, 3.99))
        for says, cores in zip((FITS, DOES_NOT), of_worker, strict=True):
            spec = clusters.job(
                JOB,
                ps=clusters.sized(Role.PS, 20, of_ps, 4096),
                workers=clusters.sized(Role.WORKER, 200, cores, 4096),
                strategy=strategy,
            )
            placement = dataclasses.replace(spec.placement, node_selector={})
            yield f"{strategy}: {says}", dataclasses.replace(spec, placement=placement), nodes


def _nearly_full(generator: random.Random, number: int) -> Node:
    """Return a node that has 1.5 to 4 of its 80 cores left."""
    return Node(
        name=f"node-{number}",
        allocatable=Resources(millicores=80_000, memory_bytes=256 * GIB, pods=110),
        used=Resources(
            millicores=generator.randrange(76_000, 78_500),
            memory_bytes=generator.randrange(100 * GIB, 200 * GIB),
            pods=generator.randrange(20, 90),
        ),
    )


def _time(name: str, spec: JobSpec, nodes: Sequence[Node]) -> Row:
    start = time.perf_counter()
    found = fits.fit(spec, NodeGroups(nodes))
    seconds = time.perf_counter() - start
    if found.fits != name.endswith(FITS):
        raise RuntimeError(f"{name}: the case is not what it is meant to be")
    return {"case": name, "seconds": seconds, "most_workers": found.most_workers}


def _ask_and_apply(bench: Bench, number: int, names: Sequence[str]) -> None:
    """Make a world, and ask about some jobs in it."""
    generator = random.Random(number)
    world = {name: _Node.random(generator) for name in names}
    specs = [_job(generator) for _ in range(_JOBS_PER_WORLD)]
    made = False
    for index, spec in enumerate(specs):

        def measure(spec: JobSpec = spec) -> Mapping[str, Any]:
            nonlocal made
            if not made:
                _make(world)
                made = True
            return {"world": number, **_apply(spec)}

        bench.repeat(f"world {number}, job {index}", measure)


@dataclasses.dataclass(frozen=True)
class _Node:
    """What a node is made to be like."""

    is_cordoned: bool
    is_tainted: bool
    disk: str
    filled_cores: int
    filled_gib: int

    @classmethod
    def random(cls, generator: random.Random) -> _Node:
        return cls(
            is_cordoned=generator.random() < 0.1,
            is_tainted=generator.random() < 0.25,
            disk=generator.choice(("ssd", "ssd", "hdd")),
            filled_cores=generator.choice((0, 0, 0, 10, 25, 40, 70)),
            filled_gib=generator.choice((0, 0, 64, 128, 200)),
        )

    def patch(self) -> Mapping[str, Any]:
        taints = [{"key": _TAINT, "value": "yes", "effect": "NoSchedule"}] if self.is_tainted else None
        spec = {"unschedulable": self.is_cordoned or None, "taints": taints}
        return {"metadata": {"labels": {_LABEL: self.disk}}, "spec": spec}


def _make(world: Mapping[str, _Node]) -> None:
    clusters.clear()
    fillers = []
    for name, node in world.items():
        clusters.kubectl("patch", "node", name, "--type=merge", "-p", json.dumps(node.patch()))
        if node.filled_cores or node.filled_gib:
            fillers.append(_filler(name, node))
    clusters.apply(fillers)


def _filler(name: str, node: _Node) -> Mapping[str, Any]:
    """Return a pod that takes of a node what it is to lack; it goes past the scheduler."""
    takes = {"cpu": str(node.filled_cores), "memory": f"{node.filled_gib}Gi"}
    container = {"name": "filler", "image": "localhost/work:1", "resources": {"requests": takes}}
    metadata = {"name": f"filler-{name}", "namespace": clusters.NAMESPACE}
    spec = {"nodeName": name, "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _job(generator: random.Random) -> JobSpec:
    """Return a job that fits on about every other of these worlds."""

    def role(kind: Role, most: int) -> RoleSpec:
        cores = generator.choice((2, 5, 8, 13, 20, 27, 40))
        return clusters.sized(kind, generator.randint(1, most), cores, generator.choice((1, 16, 32)) * 1024)

    strategy = generator.choice(list(PlacementStrategy))
    tolerated = Toleration(key=_TAINT, operator="Exists", effect="NoSchedule")
    placement = PodPlacement(
        strategy=strategy,
        node_selector={_LABEL: "ssd"},
        tolerations=(tolerated,) if generator.random() < 0.5 else (),
    )
    spec = clusters.job(JOB, ps=role(Role.PS, 3), workers=role(Role.WORKER, 6))
    return dataclasses.replace(spec, placement=placement)


def _apply(spec: JobSpec) -> Row:
    """Ask, apply, and return both answers."""
    with composition.opened_cluster(None, clusters.NAMESPACE) as jobs:
        state = jobs.objects.cluster_state()
    found = fits.fit(spec, NodeGroups(state.nodes), state.quotas)
    where = Surroundings(namespace=clusters.NAMESPACE, agent=AgentSetup(image=None))
    clusters.apply(manifests.bare(spec, where, places=found.places))
    bound = _bound(len(spec.replicas()))
    clusters.kubectl(
        "delete",
        "--raw",
        f"/api/v1/namespaces/{clusters.NAMESPACE}/pods?gracePeriodSeconds=0"
        f"&labelSelector=paceline.dev/job={JOB}",
    )
    until(lambda: not clusters.pods(JOB), seconds=_PATIENCE_SECONDS, every_seconds=0.2)
    return {
        "strategy": str(spec.placement.strategy),
        "replicas": len(spec.replicas()),
        "fits": found.fits,
        "all_bound": bound == len(spec.replicas()),
        "bound": bound,
        "most_workers": found.most_workers,
    }  # fmt: skip


def _bound(count: int) -> int:
    """Return how many pods the scheduler has bound when it has bound all, or nothing more for a while."""
    most, since = 0, time.monotonic()
    begin = since
    while most < count and time.monotonic() - begin < _PATIENCE_SECONDS:
        pods = clusters.pods(JOB)
        bound = sum(1 for pod in pods if pod["spec"].get("nodeName"))
        undecided = sum(
            1 for pod in pods if not pod["spec"].get("nodeName") and not pod["status"].get("conditions")
        )
        if bound > most or undecided:
            most, since = bound, time.monotonic()
        elif time.monotonic() - since > _QUIET_SECONDS:
            break
        time.sleep(0.2)
    return most


def _restore(names: Sequence[str]) -> None:
    """Make the nodes as they were."""
    plain = {"metadata": {"labels": {_LABEL: None}}, "spec": {"unschedulable": None, "taints": None}}
    for name in names:
        clusters.kubectl("patch", "node", name, "--type=merge", "-p", json.dumps(plain))


def draw(result: Result, path: Path) -> None:
    """Draw the seconds of each case."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        if "seconds" in row:
            groups.setdefault(row["case"], []).append(row["seconds"])
    limits = dict.fromkeys(groups, LIMIT_SECONDS)
    title = f"Whether 20 PS and 200 workers fit on {LARGE} nodes (dashed: the limit)"
    plots.strips(path, groups, label="seconds", title=title, limits=limits)
