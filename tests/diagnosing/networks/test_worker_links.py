"""Links of workers."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found
from support.linked_cases import MBIT, recording

from paceline.diagnosing.networks.shared_links import shared_link
from paceline.diagnosing.networks.worker_links import worker_link
from paceline.diagnosing.trainers.slow_hosts import slow_host
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity

HOSTS = {"ps-0": "p", "ps-1": "q", "worker-0": "b", "worker-1": "c"}
BOTH = {"ps-0": 40, "ps-1": 40, "worker-0": 38, "worker-1": 36}
THIN = {"b": 40 * MBIT, "c": 40 * MBIT}


def test_full_links_of_all_workers_are_found() -> None:
    (cause,) = found(worker_link, recording(BOTH, HOSTS, bandwidths=THIN))
    assert cause.what == ("The links of b, c bind worker-0, worker-1: up to 95% of them are used.")
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("b", "worker-0", "c", "worker-1"))
    assert [each.text for each in cause.evidence] == [
        "worker-0 on b move 38 of its 40 Mbit/s in the busier direction",
        "worker-1 on c move 36 of its 40 Mbit/s in the busier direction",
        "the cores of the PS are used to 20% at most",
    ]
    # Half of the time on a link that is used to 95 % is saved.
    assert cause.gain is not None
    assert cause.gain.high == pytest.approx((1 / (1 - 0.475) + 1 / (1 - 0.45)) / 2)


def test_one_of_them_is_found() -> None:
    one = recording({**BOTH, "worker-1": 40}, HOSTS, bandwidths={"b": 40 * MBIT})
    (cause,) = found(worker_link, one)
    assert cause.what == "The link of b binds worker-0: 95% of it is used."


def test_a_straggler_by_its_link_has_no_slow_host() -> None:
    slow = {**cases.STEPS, "steps": 20, "examples": 10_240}
    steps = {"worker-0": slow, "worker-1": cases.STEPS}
    one = recording({**BOTH, "worker-1": 40}, HOSTS, bandwidths={"b": 40 * MBIT}, steps=steps)
    assert found(worker_link, one)
    assert not found(slow_host, one)


def test_the_library_can_halve_the_bytes() -> None:
    path = ("spec", "training", "transfers", "precision")
    (cause,) = found(worker_link, recording(BOTH, HOSTS, bandwidths=THIN, spec={"training": {"epochs": 1}}))
    assert cause.changes == (FieldChange(path=path, value="bfloat16"),)
    half = {"training": {"transfers": {"precision": "bfloat16"}}}
    (cause,) = found(worker_link, recording(BOTH, HOSTS, bandwidths=THIN, spec=half))
    assert cause.changes == ()


def test_links_of_servers_that_are_as_full_bind_too() -> None:
    alike = recording({"ps-0": 96, "ps-1": 95, "worker-0": 94, "worker-1": 97}, HOSTS)
    assert not found(worker_link, alike)
    assert not found(shared_link, alike)


def test_links_that_have_room_are_healthy() -> None:
    assert not found(worker_link, recording(dict.fromkeys(BOTH, 45), HOSTS))


def test_without_steps_its_gain_is_not_known() -> None:
    (cause,) = found(worker_link, recording(BOTH, HOSTS, bandwidths=THIN, steps={}))
    assert (cause.severity, cause.gain) == (Severity.WARNING, None)
