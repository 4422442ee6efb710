"""One variable that is too much for one server."""

from __future__ import annotations

from support import cases
from support.cases import found, trace

from paceline.diagnosing import catalogues, chains, diagnoses
from paceline.diagnosing.cases import Case
from paceline.diagnosing.servers.giant_variables import giant_variable
from paceline.diagnosing.servers.skewed_shards import skewed_shards
from paceline.diagnosing.servers.uneven_placements import uneven_placement
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity

HOT, COLD = {"cpu_cores": 0.97, "cpu_limit_cores": 1.0}, {"cpu_cores": 0.05, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": HOT, "ps-1": COLD, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
WHOLE = trace({("ps-0", "ids"): 9_000_000, ("ps-0", "bias"): 10, ("ps-1", "kernel"): 300_000})


def test_a_variable_that_lies_whole_on_the_hot_server_is_named() -> None:
    training = {"partitioning": {"strategy": "none"}, "optimizer": {"name": "adagrad"}}
    (cause,) = found(giant_variable, cases.recording(LOADS, traces=(WHOLE,), spec={"training": training}))
    assert cause.what == (
        "The variable ids makes ps-0 hot: 100% of what that server does is for it, and it lies there whole."
    )
    assert cause.severity is Severity.WARNING
    assert cause.subjects == ("ids", "ps-0")
    assert cause.changes == (FieldChange(path=("spec", "training", "partitioning"), value=None),)
    assert cause.gain is not None
    # Trainers compute for 0.6 of the time: nothing makes them more than 1.7 times as fast.
    assert 1.2 < cause.gain.low <= cause.gain.high < 1.7
    assert [each.text for each in cause.evidence] == [
        "ps-0 uses 0.97 of 1.00 cores, the other PS 0.05 on average: 1.9 times the mean",
        "97% of the bytes that a step moves are for variables on ps-0",
    ]
    (load, traffic) = (source for each in cause.evidence for source in each.sources)
    assert (load.what, load.field, load.count) == ("samples", "cpu_cores", 60)
    assert (traffic.what, traffic.count) == ("traces", 1)


def test_a_script_of_the_users_own_is_told_what_it_can_do() -> None:
    (cause,) = found(giant_variable, cases.recording(LOADS, traces=(WHOLE,)))
    assert cause.changes == ()
    assert "MinSizePartitioner(max_shards=2)" in cause.next_steps[0]


def test_it_is_no_other_cause() -> None:
    recording = cases.recording(LOADS, traces=(WHOLE,))
    assert not found(uneven_placement, recording)
    assert not found(skewed_shards, recording)


def test_traffic_that_is_elsewhere_is_no_cause() -> None:
    elsewhere = trace({("ps-1", "ids"): 9_000_000, ("ps-0", "kernel"): 300_000})
    assert not found(giant_variable, cases.recording(LOADS, traces=(elsewhere,)))


def test_even_servers_are_not_hot() -> None:
    loads = LOADS | {"ps-1": HOT}
    assert not found(giant_variable, cases.recording(loads, traces=(WHOLE,)))


def test_where_all_share_the_cores_of_a_machine_it_is_told_but_gains_nothing() -> None:
    loads = {name: {"cpu_cores": load["cpu_cores"]} for name, load in LOADS.items()}
    recording = cases.recording(loads, traces=(WHOLE,), facts=(("cores", "2"),))
    (cause,) = found(giant_variable, recording)
    assert (cause.severity, cause.gain) == (Severity.INFO, None)


def test_that_all_servers_are_near_their_limit_follows_from_it() -> None:
    # As many workers on small cores measure it: visits alone keep the other server busy, and twice as many
    # servers would not relieve the server with the table.
    hot = {"cpu_cores": 0.15, "cpu_limit_cores": 0.15, "network_sent_bytes": 20_000_000}
    visited = {"cpu_cores": 0.095, "cpu_limit_cores": 0.15, "network_sent_bytes": 1_000_000}
    trainer = {"cpu_cores": 0.03, "cpu_limit_cores": 0.1}
    loads = {"ps-0": hot, "ps-1": visited, "worker-0": trainer, "worker-1": trainer}
    judged, _ = diagnoses.judged(Case.of(cases.recording(loads, traces=(WHOLE,))))
    causes = chains.chained(judged, catalogues.EXPLAINS)
    assert [each.name for each in causes] == ["giant-variable"]
    assert {"hot-ps", "too-few-ps"} <= {each.name for each in causes[0].effects}
