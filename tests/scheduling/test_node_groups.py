"""Nodes that are alike, together: the same answers as node by node, whatever the size of the cluster."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings
from support.examples import examples

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.nodes import Node, Resources, Taint
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement
from paceline.model.roles import Role
from paceline.scheduling import eligibility, packings, spreads
from paceline.scheduling.items import items, requests
from paceline.scheduling.node_groups import NodeGroups

HAS = Resources(millicores=4000, memory_bytes=1 << 30, pods=10)
TAINT = Taint(key="gpu", effect="NoSchedule")

nodes = st.lists(
    st.builds(
        Node,
        name=st.integers(0, 30).map(str),
        allocatable=st.sampled_from([HAS, HAS * 2]),
        used=st.integers(0, 2).map(lambda cores: Resources(millicores=1000 * cores, pods=cores)),
        labels=st.sampled_from([{}, {"disk": "ssd"}]),
        taints=st.sampled_from([(), (TAINT,)]),
        is_ready=st.sampled_from([True, True, False]),
        is_cordoned=st.sampled_from([False, False, True]),
    ),
    max_size=20,
    unique_by=lambda node: node.name,
)
placements = st.builds(
    PodPlacement,
    strategy=st.sampled_from(PlacementStrategy),
    node_selector=st.sampled_from([{}, {"disk": "ssd"}]),
)


@st.composite
def jobs(draw: st.DrawFn) -> JobSpec:
    roles = tuple(
        RoleSpec(role=role, replicas=draw(st.integers(1, most)), cpu_cores=draw(st.sampled_from([0.5, 1.5])))
        for role, most in ((Role.PS, 2), (Role.WORKER, 4))
    )
    return JobSpec(name="job", roles=roles, placement=draw(placements))


def free(given_nodes: list[Node], placement: PodPlacement) -> dict[str, Resources]:
    """What is free on each open node, node by node."""
    return {node.name: node.free for node in given_nodes if eligibility.obstacle(node, placement) is None}


@settings(max_examples=examples(300))
@given(jobs(), nodes)
def test_as_much_fits_and_at_the_same_places_as_on_all_nodes(spec: JobSpec, given_nodes: list[Node]) -> None:
    wanted, all_nodes = items(spec), free(given_nodes, spec.placement)
    some = NodeGroups(given_nodes).enough(spec.placement, sum(item.count for item in wanted))
    assert some.items() <= all_nodes.items()
    assert spreads.spread(wanted, some) == spreads.spread(wanted, all_nodes)
    assert packings.pack(wanted, some) == packings.pack(wanted, all_nodes)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(jobs(), st.lists(st.integers(0, 31).map(str), min_size=6, max_size=6))), nodes)
def test_what_jobs_take_is_not_free(taken: list[tuple[JobSpec, list[str]]], given_nodes: list[Node]) -> None:
    groups = NodeGroups(given_nodes)
    left = free(given_nodes, PodPlacement())
    for spec, names in taken:
        places = dict(zip(spec.replicas(), names, strict=False))
        groups.take(spec, places)
        for replica, name in places.items():
            if name in left:
                left[name] -= requests(spec.role_of(replica))
    found = groups.open_to(PodPlacement())
    assert {name: group.free for group in found for name in group.names} == left
    assert len({group.free for group in found}) == len(found)
    assert all([*group.names] == sorted(group.names) for group in found)


@given(nodes, placements)
def test_each_open_node_is_in_its_group(given_nodes: list[Node], placement: PodPlacement) -> None:
    found = NodeGroups(given_nodes).open_to(placement)
    assert {name: group.free for group in found for name in group.names} == free(given_nodes, placement)


@given(nodes, placements)
def test_each_closed_node_has_its_reason(given_nodes: list[Node], placement: PodPlacement) -> None:
    closed = NodeGroups(given_nodes).closed_to(placement)
    found = {name: why for why, names in closed.items() for name in names}
    reasons = {node.name: eligibility.obstacle(node, placement) for node in given_nodes}
    assert found == {name: why for name, why in reasons.items() if why is not None}


def test_a_job_looks_at_no_more_nodes_of_a_kind_than_it_has_items() -> None:
    groups = NodeGroups(Node(name=f"n{number}", allocatable=HAS) for number in range(1000))
    assert [*groups.enough(PodPlacement(), 3)] == ["n0", "n1", "n10"]
