"""Tables that are multiplied with one-hot ids."""

from __future__ import annotations

from support import cases
from support.cases import found, trace

from paceline.diagnosing import catalogues, chains
from paceline.diagnosing.scripts.one_hot_tables import one_hot_table
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording

FULL = {"cpu_cores": 0.9, "cpu_limit_cores": 1.0}
REST = {"cpu_cores": 0.2, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": FULL, "ps-1": REST, "worker-0": REST, "worker-1": REST}
MIB = 1 << 20


def multiplying(table_bytes: int, **more: object) -> Recording:
    moved = {("ps-0", "table"): table_bytes, ("ps-1", "kernel"): MIB}
    computed = {("ps-0", "table", "ApplyAdam"): 9_000.0, ("ps-1", "kernel", "ApplyAdam"): 500.0}
    traced = trace(moved, pushed=moved, computed=computed)
    recording = cases.recording(LOADS, traces=(traced,), **more)
    return cases.asking(recording, {"worker-0": {"one_hot_table": "table"}})


def test_a_table_that_moves_whole_is_named_with_what_a_lookup_brings() -> None:
    (cause,) = found(one_hot_table, multiplying(9 * MIB))
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("table", "ps-0"))
    assert cause.what == (
        "table is multiplied with one-hot ids, so each step moves all of it: 90% of what a step moves."
    )
    assert cause.evidence[1].text == "a step moves 18.0 MiB of table, and it takes 95% of the time of PS"
    assert cause.gain is not None
    assert cause.gain.high > 1.5


def test_it_is_why_a_server_is_busy() -> None:
    recording = multiplying(9 * MIB)
    causes = [
        cause
        for name in ("one-hot-table", "hot-ps", "ps-cpu-bound")
        for rule in catalogues.RULES
        if rule.topic.name == name
        for cause in found(rule, recording)
    ]
    assert len(causes) > 1
    roots = chains.chained(causes, catalogues.EXPLAINS)
    assert [each.name for each in roots] == ["one-hot-table"]


def test_a_table_that_is_a_small_part_of_a_step_is_not() -> None:
    moved = {("ps-0", "table"): MIB, ("ps-1", "kernel"): 20 * MIB}
    recording = cases.recording(LOADS, traces=(trace(moved, pushed=moved),))
    assert found(one_hot_table, cases.asking(recording, {"worker-0": {"one_hot_table": "table"}})) == ()


def test_nothing_is_promised_without_a_trace() -> None:
    assert (
        found(one_hot_table, cases.asking(cases.recording(LOADS), {"worker-0": {"one_hot_table": "table"}}))
        == ()
    )
