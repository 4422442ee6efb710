"""Nothing is lost or doubled, whatever comes between: over a cluster in memory, at random moments."""

from __future__ import annotations

import asyncio
import random

import pytest
from support.kubelets import Pod, node
from support.memory_clusters import MemoryCluster
from support.operator_scenes import Scene, is_worker, job, scene

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import ClusterError
from paceline.rendering import labels
from paceline.services.operators import room_requests

NAMES = [f"job-{number}" for number in range(4)]
TROUBLE_SHARE = 0.05


@pytest.mark.parametrize("seed", range(12))
def test_every_job_ends_well_and_no_attempt_is_made_twice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_requests, "ADMIT_SECONDS", 0.05)
    generator = random.Random(seed)

    async def test() -> MemoryCluster:
        async with scene(node("n0"), node("n1")) as it:
            it.kubelet.exit_code = lambda pod: exit_code(pod, generator)
            await it.end()
            for name in NAMES:
                await it.submit(job(name))
            it.start_operator()
            it.cluster.trouble = lambda verb, plural, name: trouble(plural, generator)
            await disturb(it, generator)
            it.cluster.trouble = lambda verb, plural, name: None
            for name in NAMES:
                await it.until_phase("succeeded", name)
            return it.cluster

    made = attempts(asyncio.run(test()))
    first = {f"{name}-{each}-1" for name in NAMES for each in ("ps-0", "worker-0", "worker-1")}
    assert made == first | {f"{name}-worker-0-2" for name in NAMES}


def exit_code(pod: Pod, generator: random.Random) -> int | None:
    """Have every worker end soon; worker 0 fails the first time."""
    if not is_worker(pod) or generator.random() > 0.2:
        return None
    fails = pod["metadata"]["labels"][labels.INDEX] == "0" and pod["metadata"]["name"].endswith("-1")
    return 1 if fails else 0


def trouble(plural: str, generator: random.Random) -> None:
    """Refuse some requests, or answer that another client was quicker."""
    if plural != "nodes" and generator.random() < TROUBLE_SHARE:
        code = generator.choice([409, 429, 500, None])
        raise ClusterError("trouble", code=code, reason="Conflict" if code == 409 else "")


async def disturb(it: Scene, generator: random.Random) -> None:
    """Kill the operator and cut its watches, some of them for good."""
    for _ in range(12):
        await asyncio.sleep(generator.uniform(0.0, 0.08))
        match generator.choice(["kill", "cut", "forget"]):
            case "kill":
                await it.end()
                it.start_operator()
            case "cut":
                it.cluster.cut_watches()
            case "forget":
                it.cluster.cut_watches(forget=True)


def attempts(cluster: MemoryCluster) -> set[str]:
    """Return all pods that there ever were; no two were of one attempt, or of one replica at a time."""
    made: set[str] = set()
    at_once: dict[str, set[str]] = {}
    for _, what, kind, pod in cluster.history:
        if kind is not kinds.PODS:
            continue
        name = pod["metadata"]["name"]
        live = at_once.setdefault(name.rpartition("-")[0], set())
        if what == "ADDED":
            assert name not in made, "an attempt was made twice"
            made.add(name)
        if what == "DELETED" or pod["status"]["phase"] in ("Succeeded", "Failed"):
            live.discard(name)
        else:
            live.add(name)
        assert len(live) <= 1, "two attempts of a replica at once"
    return made
