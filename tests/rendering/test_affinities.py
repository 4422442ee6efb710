"""Placement as affinities, judged by what they let lie together."""

from __future__ import annotations

import pytest

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import labels, pods
from paceline.rendering.surroundings import Surroundings

ADS = Surroundings(namespace="ads")

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def job(strategy: PlacementStrategy, name: str = "clicks") -> JobSpec:
    roles = tuple(
        RoleSpec(role=role, replicas=n) for role, n in ((Role.PS, 2), (Role.WORKER, 5), (Role.CHIEF, 1))
    )
    return JobSpec(name=name, image="i", roles=roles, placement=PodPlacement(strategy=strategy))


def selects(term: dict, pod: dict) -> bool:
    own, selector = pod["metadata"]["labels"], term["labelSelector"]
    return all(own.get(key) == value for key, value in selector["matchLabels"].items()) and all(
        (own.get(each["key"]) in each["values"]) == (each["operator"] == "In")
        for each in selector["matchExpressions"]
    )


def terms(pod: dict, kind: str) -> list[dict]:
    found = pod["spec"].get("affinity", {}).get(kind, {}).get(REQUIRED, [])
    assert all(each["topologyKey"] == "kubernetes.io/hostname" for each in found)
    return found


def may_share_a_host(strategy: PlacementStrategy, one: str, other: str, *, of: str = "clicks") -> bool:
    """What the scheduler asks when one of two pods is to go where the other is, in either order."""
    first, second = (
        pods.pod(spec, ReplicaId.parse(name), ADS)
        for spec, name in ((job(strategy), one), (job(strategy, of), other))
    )
    return not any(
        selects(term, that)
        for this, that in ((first, second), (second, first))
        for term in terms(this, "podAntiAffinity")
    )


@pytest.mark.parametrize(
    ("strategy", "apart"),
    [
        (PlacementStrategy.ANY, []),
        (PlacementStrategy.SPREAD_PS, [("ps-0", "ps-1")]),
        (PlacementStrategy.COLOCATE, [("ps-0", "ps-1")]),
        (PlacementStrategy.ISOLATE, [("ps-0", "worker-0"), ("ps-0", "chief-0"), ("ps-1", "worker-4")]),
    ],
)
def test_who_is_kept_apart(strategy: PlacementStrategy, apart: list[tuple[str, str]]) -> None:
    pairs = [
        ("ps-0", "ps-1"),
        ("ps-0", "worker-0"),
        ("ps-0", "chief-0"),
        ("ps-1", "worker-4"),
        ("worker-0", "worker-1"),
    ]
    assert [pair for pair in pairs if not may_share_a_host(strategy, *pair)] == apart
    assert all(may_share_a_host(strategy, *pair, of="another") for pair in pairs), (
        "other jobs are not our business"
    )


def test_each_worker_goes_where_its_ps_is() -> None:
    spec = job(PlacementStrategy.COLOCATE)
    servers = {name: pods.pod(spec, ReplicaId.parse(name), ADS) for name in ("ps-0", "ps-1")}
    for index in range(5):
        (near,) = terms(pods.pod(spec, ReplicaId(Role.WORKER, index), ADS), "podAffinity")
        assert [name for name, server in servers.items() if selects(near, server)] == [f"ps-{index % 2}"]
    assert terms(pods.pod(spec, ReplicaId(Role.CHIEF, 0), ADS), "podAffinity") == []


def test_ps_prefer_different_zones() -> None:
    made = pods.pod(job(PlacementStrategy.SPREAD_PS), ReplicaId(Role.PS, 0), ADS)["spec"]["affinity"]
    (wanted,) = made["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert wanted["podAffinityTerm"]["topologyKey"] == "topology.kubernetes.io/zone"
    assert wanted["podAffinityTerm"]["labelSelector"]["matchLabels"] == {labels.JOB: "clicks"}
