"""Parameter servers whose links are full."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.cases import Case
from paceline.diagnosing.diagnoses import judged
from paceline.diagnosing.servers.network_bound_servers import ps_network_bound
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import Host
from paceline.model.measures.recordings import Recording
from paceline.model.variables.variable_plans import PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable

#: 100 Mbit/s are 12.5 MB/s.
FULL = {"network_sent_bytes": 12_000_000, "network_received_bytes": 11_000_000, "cpu_cores": 0.3,
        "cpu_limit_cores": 1.0}  # fmt: skip
WAITING = {"network_sent_bytes": 5_500_000, "network_received_bytes": 6_000_000, "cpu_cores": 0.25,
           "cpu_limit_cores": 1.0}  # fmt: skip
LOADS = {"ps-0": FULL, "ps-1": FULL} | {f"worker-{number}": WAITING for number in range(4)}
HOSTS = ("a", "b", "c")


def recording(loads: dict[str, Any], *, where: str = "abcccc", **more: Any) -> Recording:
    rows = {name: {"host": host} for name, host in zip(loads, where, strict=True)}
    spec = {"training": {}, "hosts": tuple(
        Host(name=name, bandwidth_bits_per_second=100_000_000 if name != "c" else 1_000_000_000)
        for name in HOSTS
    )} | more.pop("spec", {})  # fmt: skip
    return cases.recording(loads, rows=rows, spec=spec, **more)


def test_full_links_of_servers_get_shorter_values() -> None:
    (cause,) = found(ps_network_bound, recording(LOADS))
    assert cause.what == "The links of the PS are full: they are used to 96%."
    assert cause.subjects == ("ps-0", "ps-1", "a", "b")
    assert cause.changes == (
        FieldChange(path=("spec", "training", "transfers", "precision"), value="bfloat16"),
    )  # fmt: skip
    assert cause.next_steps == ("4 PS, each on a host of its own, or hosts with 3.0 times the bandwidth",)
    assert cause.gain is not None
    assert 1.5 < cause.gain.low <= cause.gain.high <= 2.0
    assert cause.evidence[0].text == "PS move 21.9 MiB/s each, both ways together, over 100 Mbit/s each way"


def test_ids_do_not_get_shorter() -> None:
    ids = Variable(name="ids", shape=(1000, 1), sparse=True, step_bytes=12_000.0)
    known = plan((ids,), servers=2, cut=RowPartitioning(), rule=PlacementRule.ROUND_ROBIN)
    (cause,) = found(ps_network_bound, recording(LOADS, plan=known))
    assert cause.gain is not None
    assert cause.gain.high == pytest.approx(1.5)


def test_short_values_or_a_script_of_the_users_own_leave_more_servers() -> None:
    for training in ({"transfers": {"precision": "float16"}}, None):
        (cause,) = found(ps_network_bound, recording(LOADS, spec={"training": training}))
        assert cause.changes == ()
        assert len(cause.next_steps) == 2
        assert cause.gain is not None


def test_one_server_on_a_host_of_its_own_has_a_link_of_its_own() -> None:
    loads = {name: load for name, load in LOADS.items() if name != "ps-1"}
    assert found(ps_network_bound, recording(loads, where="acccc"))


@pytest.mark.parametrize(
    ("where", "loads"),
    [
        pytest.param("aacccc", LOADS, id="two servers share a link"),
        pytest.param("abcccc", LOADS | {"ps-1": WAITING | {"network_sent_bytes": 10}}, id="one is hot"),
        pytest.param(
            "abcccc", LOADS | dict.fromkeys(("ps-0", "ps-1"), FULL | {"cpu_cores": 0.97}), id="cores are full"
        ),
        pytest.param(
            "abcccc",
            LOADS | {f"worker-{each}": WAITING | {"cpu_cores": 0.96} for each in range(4)},
            id="trainers compute all the time",
        ),
        pytest.param("abcccc", LOADS | {"ps-0": {}, "ps-1": {}}, id="servers not measured"),
    ],
)
def test_its_likes_are_not_it(where: str, loads: dict[str, Any]) -> None:
    causes, _ = judged(Case.of(recording(loads, where=where)))
    assert "ps-network-bound" not in [each.name for each in causes]


def test_where_links_of_workers_are_as_full_servers_are_not_what_binds() -> None:
    pair = {"ps-0": FULL, "worker-0": FULL}
    assert not found(ps_network_bound, recording(pair, where="ab"))


def test_without_hosts_it_is_not_judged() -> None:
    assert ps_network_bound.lacks(Case.of(cases.recording(LOADS)))


def _partly(share: float, cpu_cores: float) -> Recording:
    moved = {"network_sent_bytes": int(share * 12_500_000), "network_received_bytes": int(share * 12_500_000)}
    servers = dict.fromkeys(("ps-0", "ps-1"), FULL | moved)
    trainers = dict.fromkeys(("worker-0", "worker-1"), WAITING | {"cpu_cores": cpu_cores})
    return recording(servers | trainers, where="abcc")


def test_two_trainers_in_turn_cannot_fill_the_links_that_bind_them() -> None:
    (cause,) = found(ps_network_bound, _partly(0.7, cpu_cores=0.2))
    assert cause.what == "The links of the PS are full: they are used to 70%."
    assert not found(ps_network_bound, _partly(0.5, cpu_cores=0.2))


def test_links_that_are_used_far_by_trainers_that_compute_are_not_what_binds() -> None:
    assert not found(ps_network_bound, _partly(0.7, cpu_cores=0.9))
