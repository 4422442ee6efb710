"""Packets that are lost."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import cases
from support.cases import found
from support.linked_cases import recording

from paceline.diagnosing import chains, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.networks.retransmissions import retransmissions
from paceline.diagnosing.networks.shared_links import shared_link
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Host
from paceline.model.measures.recordings import Recording


def _recording(again: int | None, sent: int | None = 1_000, **more: Any) -> Recording:
    clean = {"retransmitted_segments": 0, "sent_segments": 1_000}
    loads: dict[str, dict[str, Any]] = {
        "ps-0": {**cases.SERVER, "retransmitted_segments": again, "sent_segments": sent},
        "worker-0": {**cases.TRAINER, **clean},
        "worker-1": {**cases.TRAINER, **clean},
    }
    return cases.recording(loads, **more)


def test_a_replica_that_sends_much_again_is_found() -> None:
    (cause,) = found(retransmissions, _recording(20, 980, rows={"ps-0": {"host": "far"}}))
    assert cause.what == "Packets of ps-0 are lost on the way: 2.0% of them are sent again."
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("ps-0", "far"))
    assert [each.text for each in cause.evidence] == ["segments sent again: ps-0 2.0% of 30,000"]
    assert [each.field for each in cause.evidence[0].sources] == ["retransmitted_segments", "sent_segments"]
    assert cause.next_steps[0].startswith("on far: ip -s link")
    assert cause.gain is None


def test_few_of_many_are_healthy() -> None:
    assert not found(retransmissions, _recording(4, 996))
    assert found(retransmissions, _recording(6, 994))


def test_few_segments_say_nothing() -> None:
    assert not found(retransmissions, _recording(1, 1, seconds=10))


def test_what_was_not_measured_is_not_judged() -> None:
    assert not found(retransmissions, _recording(None))
    assert not found(retransmissions, _recording(20, None))
    assert not found(retransmissions, _recording(0, 0))
    bare = cases.recording({"ps-0": cases.SERVER, "worker-0": cases.TRAINER})
    assert retransmissions.lacks(Case.of(bare)) == (needs.RETRANSMISSIONS,)


def test_a_full_link_is_why_packets_are_lost() -> None:
    full = recording({"ps-0": 48, "ps-1": 47, "worker-0": 20, "worker-1": 20})
    case = Case.of(_lossy(full))
    assert case.spec.hosts[0] == Host(name="a", bandwidth_bits_per_second=100_000_000)
    both = [*shared_link.causes(case), *retransmissions.causes(case)]
    assert [each.severity for each in both] == [Severity.WARNING, Severity.INFO]
    (root,) = chains.chained(both, {"shared-link": shared_link.explains})
    assert [each.name for each in root.effects] == ["retransmissions"]


def _lossy(given: Recording) -> Recording:
    """Return the recording with parameter servers that send a part again."""
    made = [
        dataclasses.replace(
            each, sent_segments=1_000, retransmitted_segments=20 if each.replica.role == "ps" else 0
        )
        for each in given.samples
    ]
    return dataclasses.replace(given, samples=made)
