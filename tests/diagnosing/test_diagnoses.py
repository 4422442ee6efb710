"""All rules together: on whatever was measured, and on what is missing."""

from __future__ import annotations

import dataclasses
import functools
import graphlib
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import cases
from support.cases import trace
from support.examples import examples

from paceline.diagnosing import catalogues, chains
from paceline.diagnosing.cases import Case
from paceline.diagnosing.diagnoses import diagnose, judged, unmeasured
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import CpuPolicy, Host, RoleSpec
from paceline.model.jobs.runs import JobEvent, ReplicaRow
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.model.variables.variable_plans import PlacementRule, RowPartitioning, plan
from paceline.model.variables.variables import Variable
from paceline.stores import recordings as files

#: Of each cause that was recorded one job.
RECORDINGS = sorted(
    {
        path.name.split(".")[0]: path
        for path in (Path(__file__).parents[2] / "benchmarks/diagnosis/recordings").glob("*.parquet")
    }.values()
)
REPLICAS = [ReplicaId.parse(name) for name in ("ps-0", "ps-1", "worker-0", "worker-1", "evaluator-0")]
HOT, COLD = {"cpu_cores": 0.97, "cpu_limit_cores": 1.0}, {"cpu_cores": 0.05, "cpu_limit_cores": 1.0}
LOADS = {"ps-0": HOT, "ps-1": COLD, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
WHOLE = trace({("ps-0", "ids"): 9_000_000, ("ps-0", "bias"): 10, ("ps-1", "kernel"): 300_000})


def answer(recording: Recording) -> Explanation:
    situation = Situation.of(recording.run, recording.replicas, recording.events, now=recording.at)
    return diagnose(recording, situation)


def all_causes(found: Explanation) -> list[Cause]:
    return [each for cause in found.causes for each in (cause, *cause.effects)]


def test_one_primary_cause_with_what_follows_from_it() -> None:
    found = answer(cases.recording(LOADS, traces=(WHOLE,)))
    assert found.summary == ("clicks runs, for 30s, with all of its 4 replicas, and could be faster")
    first = found.causes[0]
    assert (first.name, [each.name for each in first.effects][-2:]) == (
        "giant-variable", ["hot-ps", "waiting-for-ps"]
    )  # fmt: skip
    assert found.outlook is not None
    assert found.outlook.binds == "CPU of ps-0"


def test_a_healthy_job_has_no_finding() -> None:
    even = {"ps-0": cases.SERVER, "ps-1": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
    found = answer(cases.recording(even))
    assert found.summary.startswith("nothing is wrong as far as can be seen: clicks runs")
    assert not [each for each in found.causes if each.severity is not Severity.INFO]


def test_what_was_not_measured_is_told_and_not_judged() -> None:
    found = answer(cases.recording({name: {} for name in LOADS}))
    assert not found.causes
    assert found.outlook is None
    assert any(re.search(r"not enough data: the CPU .* not judged: .*PS001", each) for each in found.unknown)


def test_a_job_of_which_nothing_can_be_read_is_fine_only_as_far_as_can_be_seen() -> None:
    recording = cases.recording(LOADS)
    situation = Situation.of(recording.run, recording.replicas, recording.events, now=recording.at)
    assert unmeasured(situation).summary == (
        "nothing is wrong as far as can be seen: clicks runs, for 30s, with all of its 4 replicas"
    )


def test_the_speed_of_a_job_that_has_not_begun_is_not_called_unknown() -> None:
    recording = cases.recording(LOADS)
    pending = dataclasses.replace(recording.run, phase=JobPhase.PENDING, started_at=None)
    found = answer(dataclasses.replace(recording, run=pending, samples=(), steps=()))
    assert not found.unknown


def test_whatever_follows_from_a_cause_is_a_cause() -> None:
    names = {topic.name for topic in catalogues.TOPICS}
    assert len(names) == len(catalogues.TOPICS)
    for name, effects in catalogues.EXPLAINS.items():
        assert name in names
        assert set(effects) <= names, name
    # No cause follows from itself, or none of a circle would be told.
    graphlib.TopologicalSorter(catalogues.EXPLAINS).prepare()


def test_topics_read_well() -> None:
    for topic in catalogues.TOPICS:
        assert re.fullmatch(r"[A-Z]{2,4}\d{3}", topic.code)
        assert len(topic.title) < 80, topic
        assert topic.why.endswith("."), topic
        assert topic.fix.endswith("."), topic
        assert not topic.risk or topic.risk.endswith("."), topic


def test_rules_stand_in_the_order_of_their_codes() -> None:
    groups: dict[str, list[str]] = {}
    for rule in catalogues.RULES:
        groups.setdefault(rule.topic.code[:3], []).append(rule.topic.code)
    assert all(codes == sorted(set(codes)) for codes in groups.values())


NUMBERS = st.none() | st.sampled_from([0.0, 1e-9, 0.5, 1.0, 64.0, 1e12]) | st.floats(0, 1e6)
COUNTS = st.none() | st.integers(0, 2**50)
TIMES = st.floats(-100, 100).map(lambda at: cases.START + at)


def _of(kind: type, **fixed: Any) -> st.SearchStrategy[Any]:
    fields = {}
    for field in dataclasses.fields(kind):
        if field.name in fixed:
            fields[field.name] = fixed[field.name]
        elif "int" in str(field.type):
            fields[field.name] = COUNTS
        else:
            fields[field.name] = NUMBERS
    return st.builds(kind, **fields)


KNOWN = {"replica": st.sampled_from(REPLICAS), "attempt": st.integers(1, 2), "at": TIMES}
SAMPLES = _of(Sample, **KNOWN, interval_seconds=st.floats(0, 1e4))
REPORTS = _of(StepReport, **KNOWN)
EVALUATIONS = _of(EvaluationReport, **KNOWN)
ROWS = st.builds(
    ReplicaRow,
    replica=st.sampled_from(REPLICAS),
    phase=st.sampled_from(ReplicaPhase),
    attempt=st.integers(1, 2),
    restarts=st.integers(0, 1),
    memory_bytes=COUNTS,
    host=st.sampled_from([None, "a", "b"]),
    cores=st.sampled_from([(), (0,), (0, 1)]),
)
ROLES = st.builds(
    RoleSpec,
    role=st.sampled_from(Role),
    replicas=st.integers(1, 3),
    cpu_cores=st.sampled_from([None, 0.25, 1.0, 4.0]),
    memory_bytes=COUNTS,
    threads=st.none() | st.integers(1, 64),
    cpu_policy=st.sampled_from(CpuPolicy),
)
HOSTS = st.lists(
    st.builds(
        Host, name=st.sampled_from("ab"), cpu_cores=st.sampled_from([None, 1.0]),
        bandwidth_bits_per_second=st.sampled_from([None, 10**6]),
    ),
    max_size=2,
)  # fmt: skip
KINDS = ["ResourceGather", "ResourceApplyAdam", "AssignSubVariableOp", "ResourceScatterAdd", "Mul"]
COMPUTED = st.dictionaries(
    st.tuples(
        st.sampled_from(["ps-0", "ps-9"]), st.sampled_from(["ids", "ids/1", "b"]), st.sampled_from(KINDS)
    ),
    st.floats(0, 1e9),
)
TRACES = st.lists(
    st.dictionaries(
        st.tuples(st.sampled_from(["ps-0", "ps-1", "ps-9"]), st.sampled_from(["ids", "ids/0", "ids/1", "b"])),
        st.integers(0, 2**40),
    ).flatmap(lambda moved: st.builds(trace, st.just(moved), pushed=st.just(moved), computed=COMPUTED)),
    max_size=2,
)
TRAININGS = st.none() | st.dictionaries(
    st.sampled_from([
        "optimizer", "wide_optimizer", "partitioning", "variable_plan", "batch_size", "max_steps",
        "steps_per_exchange", "transfers", "consistency",
    ]),
    st.none() | st.integers() | st.just({}) | st.just({"name": "adam"}) | st.just({"strategy": "none"}),
)  # fmt: skip
PLANS = st.none() | st.builds(
    lambda slots, size: plan(
        (Variable(name="ids", shape=(size, 4), sparse=True, slots=slots), Variable(name="b", shape=())),
        servers=2, cut=RowPartitioning(), rule=PlacementRule.ROUND_ROBIN,
    ),
    st.integers(0, 3),
    st.integers(1, 10**9),
)  # fmt: skip


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Return a recording of anything: clocks that differ, replicas that are unknown, half of it missing."""
    recording = cases.recording(LOADS, seconds=5)
    roles = {role.role: role for role in draw(st.lists(ROLES, max_size=4))}
    spec = dataclasses.replace(
        recording.run.spec, roles=tuple(roles.values()), hosts=tuple(draw(HOSTS)), training=draw(TRAININGS)
    )
    run = dataclasses.replace(
        recording.run,
        spec=spec,
        engine=draw(st.sampled_from(["local", "kubernetes"])),
        phase=draw(st.sampled_from(JobPhase)),
        started_at=draw(st.none() | TIMES),
        finished_at=draw(st.none() | TIMES),
    )
    events = st.builds(JobEvent, at=TIMES, kind=st.sampled_from(["started", "running"]), message=st.just("x"))
    return Recording(
        run=run,
        at=draw(TIMES),
        lost=draw(st.booleans()),
        replicas=draw(st.lists(ROWS, max_size=6, unique_by=lambda row: row.replica)),
        samples=sorted(draw(st.lists(SAMPLES, max_size=12)), key=lambda each: each.at),
        steps=sorted(draw(st.lists(REPORTS, max_size=12)), key=lambda each: each.at),
        evaluations=draw(st.lists(EVALUATIONS, max_size=3)),
        events=draw(st.lists(events, max_size=3)),
        facts=draw(st.sampled_from([(), (("cores", "2"),), (("cores", "many"),)])),
        traces=tuple(draw(TRACES)),
        plan=draw(PLANS),
        thresholds=draw(st.just({}) | SETTINGS),
    )


@st.composite
def settings_of_sites(draw: st.DrawFn) -> dict[str, float]:
    """Return numbers that a site may set, most of them about as large as the defaults."""
    numbers = {}
    for threshold in draw(st.lists(st.sampled_from(sorted(catalogues.THRESHOLDS)), unique=True)):
        known = catalogues.THRESHOLDS[threshold]
        number = known.default * draw(st.sampled_from([0.01, 0.5, 1.0, 1.001, 2.0, 1000.0]))
        numbers[threshold] = number if known.refusal(number) is None else known.default
    return numbers


SETTINGS = settings_of_sites()


@functools.cache
def _read(path: Path) -> Recording:
    return files.read(path)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
@settings(max_examples=examples(10))
@given(thresholds=SETTINGS)
def test_whatever_a_site_sets_a_real_job_has_an_answer(path: Path, thresholds: dict[str, float]) -> None:
    check(dataclasses.replace(_read(path), thresholds=thresholds))


@settings(max_examples=examples(300))
@given(recordings())
def test_any_evidence_has_an_answer(recording: Recording) -> None:
    check(recording)


def check(recording: Recording) -> None:
    found = answer(recording)
    assert found.thresholds == (recording.thresholds if recording.run.started_at is not None else {})
    for cause in all_causes(found):
        assert cause.what
        assert "nan" not in cause.what
        gain = cause.gain
        assert gain is None or (math.isfinite(gain.high) and 0 < gain.low <= gain.high)


@settings(max_examples=examples(100))
@given(st.sampled_from(sorted(LOADS)), st.sets(st.sampled_from(sorted(cases.SERVER | cases.STEPS))))
def test_without_what_a_rule_needs_it_claims_nothing(replica: str, kept: set[str]) -> None:
    """Of everything but one replica nothing was measured: no replica can be above the others."""
    loads = {
        name: {key: value for key, value in load.items() if name == replica and key in kept}
        for name, load in LOADS.items()
    }
    causes, unknown = judged(Case.of(cases.recording(loads, steps={})))
    assert not [each for each in causes if each.severity is not Severity.INFO]
    assert unknown


CAUSES = st.lists(
    st.builds(
        Cause,
        name=st.sampled_from("abcd"), what=st.just("It is so."), severity=st.sampled_from(Severity),
        subjects=st.lists(st.sampled_from(["ps-0", "ps-1"]), max_size=2).map(tuple), is_past=st.booleans(),
    ),
    max_size=8,
)  # fmt: skip


@given(CAUSES, st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from("abcd"), unique=True)))
def test_chains_lose_nothing_that_is_no_effect_and_tell_nothing_twice(
    found: list[Cause], explains: dict[str, list[str]]
) -> None:
    acyclic = {name: [each for each in effects if each > name] for name, effects in explains.items()}
    made = chains.chained(found, acyclic)
    told = [each for cause in made for each in (dataclasses.replace(cause, effects=()), *cause.effects)]
    assert len(told) == len(found)
    assert sorted(map(repr, told)) == sorted(map(repr, found))


def test_a_remark_has_no_effect_that_is_worse() -> None:
    remark = Cause(name="a", what="a", severity=Severity.INFO)
    effect = Cause(name="b", what="b", severity=Severity.WARNING)
    assert [each.name for each in chains.chained([remark, effect], {"a": ["b"]})] == ["b", "a"]
    (root,) = chains.chained([remark, dataclasses.replace(effect, severity=Severity.INFO)], {"a": ["b"]})
    assert [each.name for each in root.effects] == ["b"]


def test_what_binds_is_said_before_what_is_not_used() -> None:
    """Ranks of PyTorch at the limit of their cores, which asked for more memory than they use."""
    load = {**cases.TRAINER, "cpu_cores": 0.98, "cpu_limit_cores": 1.0, "memory_bytes": 130 * 2**20}
    recording = cases.recording(
        {f"worker-{number}": load for number in range(2)},
        roles={"worker": {"cpu_cores": 1, "memory_bytes": 2**30}},
        seconds=60,
    )
    assert [each.name for each in answer(recording).causes] == ["compute-bound", "memory-over-asked"]


def test_cores_that_a_program_gives_as_int_are_judged() -> None:
    loads = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER}
    roles = {"ps": {"cpu_cores": 4}, "worker": {"cpu_cores": 2}}
    recording = cases.recording(loads, roles=roles)
    situation = Situation.of(recording.run, recording.replicas, recording.events, now=recording.at)
    assert not diagnose(recording, situation).causes
