"""What other sizes of a job would bring."""

from __future__ import annotations

import pytest
from support import cases

from paceline.diagnosing import scalings
from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import Outlook
from paceline.model.jobs.job_specs import Host

RESTING = {"cpu_cores": 0.1, "cpu_limit_cores": 1.0}
BUSY = {"cpu_cores": 0.95, "cpu_limit_cores": 1.0}
WORKERS = ("worker-0", "worker-1")


def outlook(load: dict[str, float], wait: float, paused: float | None = None) -> Outlook:
    """Return the outlook of two workers; ``paused`` is the elasticity that a probe found of their number."""
    loads = {"ps-0": {"cpu_cores": 0.1, "cpu_limit_cores": 1.0}, **dict.fromkeys(WORKERS, load)}
    steps = {name: {**cases.STEPS, "input_wait_seconds": wait} for name in WORKERS}
    probes = () if paused is None else (cases.probe_of_workers(paused),)
    found = scalings.outlook(Case.of(cases.recording(loads, steps=steps, probes=probes)))
    assert found is not None
    return found


def test_more_workers_may_bring_nothing_if_they_wait_for_storage() -> None:
    found = outlook(RESTING, 0.9)
    assert found.binds == "reading of examples"
    assert found.knee_workers is None
    workers, servers = found.options
    assert (workers.what, servers.what) == ("2 x workers", "2 x PS")
    assert workers.gain.low == pytest.approx(1.0, abs=0.05)
    assert workers.gain.high > 1.8
    assert servers.gain.low == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(("load", "wait"), [(RESTING, 0.0), (BUSY, 0.4)])
def test_more_workers_bring_more_if_they_wait_for_nothing_or_decode_by_themselves(
    load: dict[str, float], wait: float
) -> None:
    found = outlook(load, wait)
    assert found.options[0].gain.low > 1.5
    assert found.knee_workers is not None


def test_a_probe_shows_whether_storage_is_shared() -> None:
    shared, apart = (outlook(RESTING, 0.9, paused).options[0].gain for paused in (0.0, 1.0))
    assert (shared.low, shared.high) == (pytest.approx(1.0, abs=0.05), pytest.approx(1.0, abs=0.05))
    assert apart.low > 1.8


def on_one_machine(cores: int, load: dict[str, float], **more: object) -> Outlook:
    """Return the outlook of two workers and a server that share a machine; each has cores of its own."""
    loads = {"ps-0": {"cpu_cores": 0.4, "cpu_limit_cores": 0.55}, **dict.fromkeys(WORKERS, load)}
    facts = (("cores", str(cores)),)
    found = scalings.outlook(Case.of(cases.recording(loads, facts=facts, **more)))
    assert found is not None
    return found


def test_more_workers_on_one_machine_get_no_more_than_its_cores() -> None:
    load = {"cpu_cores": 0.6, "cpu_limit_cores": 1.0}
    small, large = on_one_machine(2, load), on_one_machine(64, load)
    # 1.6 of 2 cores are used.
    workers = small.options[0]
    assert workers.gain.high == pytest.approx(2 / 1.6)
    assert workers.gain.low < workers.gain.high
    assert workers.binds == small.binds == "CPU of this machine"
    assert dict(small.uses)["CPU of this machine"] == pytest.approx(0.8)
    assert small.knee_workers is not None
    assert small.knee_workers <= 2 * 2 / 1.6 + 0.01
    assert large.options[0].binds == "CPU of ps-0"
    assert large.options[0].gain.high > small.options[0].gain.high


def test_more_servers_bring_nothing_where_the_machine_is_full() -> None:
    found = on_one_machine(2, {"cpu_cores": 0.75, "cpu_limit_cores": 1.0})
    assert found.options[1].gain.high <= 2 / 1.9 + 1e-6


def test_emulated_hosts_share_the_machine_as_in_predictions() -> None:
    hosts = {"hosts": (Host(name="a"),)}
    found = on_one_machine(2, {"cpu_cores": 0.6, "cpu_limit_cores": 1.0}, spec=hosts)
    assert found.options[0].gain.high == pytest.approx(2 / 1.6)
