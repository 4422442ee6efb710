"""Parameter servers that share a link."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found
from support.linked_cases import MBIT, recording

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.networks.shared_links import shared_link
from paceline.diagnosing.networks.worker_links import worker_link
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement

FULL = {"ps-0": 48, "ps-1": 47, "worker-0": 20, "worker-1": 20}


def test_two_servers_on_a_full_link_are_found() -> None:
    (cause,) = found(shared_link, recording(FULL))
    assert cause.what == "ps-0, ps-1 share the link of a, which binds: 95% of it is used."
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("a", "ps-0", "ps-1"))
    assert [each.text for each in cause.evidence] == [
        "ps-0, ps-1 on a move 95 of its 100 Mbit/s in the busier direction",
        "the cores of the PS are used to 20% at most",
    ]
    assert [each.field for each in cause.evidence[0].sources] == [
        "network_received_bytes",
        "network_sent_bytes",
    ]
    assert cause.changes == (FieldChange(path=("spec", "placement", "strategy"), value="spread-ps"),)
    assert cause.gain is not None
    assert 1.1 < cause.gain.low <= cause.gain.high < 2.0


def test_servers_beside_workers_are_put_apart() -> None:
    hosts = {f"{role}-{index}": "abcd"[index] for role in ("ps", "worker") for index in range(4)}
    hosts["worker-4"], hosts["worker-5"] = "e", "f"
    both = recording(dict.fromkeys(hosts, 60), hosts, bandwidths={"b": 200 * MBIT, "c": 200 * MBIT})
    first, *_ = found(shared_link, both)
    assert first.what == "ps-0, worker-0 share the link of a, which binds: 95% of it is used."
    assert first.changes == (FieldChange(path=("spec", "placement", "strategy"), value="isolate"),)


def test_a_worker_that_would_send_as_much_over_its_own_link_stays() -> None:
    hosts = {"ps-0": "a", "worker-0": "a", "worker-1": "b"}
    loads = {"ps-0": 95, "worker-0": 48, "worker-1": 47}
    (cause,) = found(shared_link, recording(loads, hosts, bandwidths={"a": 50 * MBIT}))
    assert cause.what == "ps-0, worker-0 share the link of a, which binds: 95% of it is used."
    assert (cause.severity, cause.changes) == (Severity.WARNING, ())
    assert cause.next_steps[0].startswith("give a more bandwidth")


def test_what_is_placed_so_already_is_not_changed() -> None:
    placed = PodPlacement(strategy=PlacementStrategy.SPREAD_PS)
    (cause,) = found(shared_link, recording(FULL, spec={"placement": placed}))
    assert cause.changes == ()
    assert cause.next_steps[0] == "put ps-0, ps-1 on hosts of their own"


def test_servers_on_hosts_of_their_own_share_nothing() -> None:
    hosts = {"ps-0": "a", "ps-1": "e", "worker-0": "b", "worker-1": "c"}
    assert not found(shared_link, recording({**FULL, "ps-0": 95, "ps-1": 95}, hosts))


def test_a_link_that_has_room_is_healthy() -> None:
    assert not found(shared_link, recording({**FULL, "ps-0": 22, "ps-1": 22}))


def test_a_fuller_link_of_a_worker_is_what_binds() -> None:
    thin = recording({**FULL, "ps-0": 40, "ps-1": 36, "worker-0": 38}, bandwidths={"b": 40 * MBIT})
    assert not found(shared_link, thin)
    assert found(worker_link, thin)


def test_it_needs_the_bandwidth_of_hosts() -> None:
    unmeasured = cases.recording({"ps-0": cases.SERVER, "worker-0": cases.TRAINER})
    assert shared_link.lacks(Case.of(unmeasured)) == (needs.LINKS,)


@pytest.mark.parametrize("use", [0.49, 0.51])
def test_the_border(use: float) -> None:
    edge = recording({**FULL, "ps-0": use * 50, "ps-1": use * 50})
    assert bool(found(shared_link, edge)) is (use > 0.5)
