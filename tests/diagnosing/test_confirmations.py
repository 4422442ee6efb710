"""What a probe says of what rules have found: confirmed, refuted, or that nothing else names it."""

from __future__ import annotations

import dataclasses

import pytest
from support import cases

from paceline.diagnosing import confirmations
from paceline.diagnosing.cases import Case
from paceline.diagnosing.diagnoses import diagnose, judged
from paceline.diagnosing.progress.bound_parts import bound_part
from paceline.diagnosing.situations import Situation
from paceline.model.explanations.causes import Cause, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.job_specs import Host
from paceline.model.jobs.runs import RESIZED, JobEvent
from paceline.model.measures.probes import CutPart, Elasticity, Probe, RateUnit
from paceline.model.measures.recordings import Recording

LOADS = {
    "ps-0": {"cpu_cores": 0.98, "cpu_limit_cores": 1.0},
    "ps-1": {"cpu_cores": 0.98, "cpu_limit_cores": 1.0},
    "worker-0": {"cpu_cores": 0.3, "cpu_limit_cores": 1.0},
}
ROLES = {"ps": {"cpu_cores": 1.0}, "worker": {"cpu_cores": 1.0}}
CPU_BOUND = Cause(name="ps-cpu-bound", what="ps-0 is busy.", severity=Severity.WARNING, subjects=("ps-0",))


def elasticity(*targets: str, value: float, knob: Knob = Knob.CPU) -> Elasticity:
    part = CutPart(knob, targets)
    return Elasticity(part=part, value=value, low=value - 0.05, high=value + 0.05, cuts=2)


def probed(*found: Elasticity, at: float = cases.START + 10, **more: object) -> Recording:
    probe = Probe(
        run="clicks",
        began_at=at,
        ended_at=at + 9,
        ended="all is known",
        unit=RateUnit.EXAMPLES,
        elasticities=found,
    )
    return cases.recording(LOADS, roles=ROLES, probes=(probe,), **more)


def said(recording: Recording, cause: Cause = CPU_BOUND) -> Cause:
    (found,) = confirmations.confirmed([cause], Case.of(recording))
    return found


def test_a_cause_that_an_experiment_confirms_says_so_first() -> None:
    found = said(probed(elasticity("ps-0", value=0.9)))
    assert found.severity is Severity.WARNING
    assert found.evidence[0].text == (
        "confirmed by experiment: cores of ps-0: costs 27% of the rate (elasticity 0.90, 0.85 to 0.95)"
    )


@pytest.mark.parametrize("name", ["giant-variable", "skewed-shards", "uneven-placement", "dense-update"])
def test_what_makes_a_server_hot_is_confirmed_by_what_binds_on_it(name: str) -> None:
    cause = Cause(name=name, what="", severity=Severity.WARNING, subjects=("user_vectors", "ps-0"))
    case = Case.of(probed(elasticity("ps-0", value=0.9), elasticity("ps-1", value=0.0)))
    (found,) = confirmations.confirmed([cause], case)
    assert found.evidence[0].text.startswith("confirmed by experiment: cores of ps-0: costs 27% of the rate")


def test_one_that_it_refutes_is_only_worth_knowing() -> None:
    found = said(probed(elasticity("ps-0", "ps-1", value=0.02)))
    assert found.severity is Severity.INFO
    assert found.gain is None
    assert "does not slow down the job" in found.what


@pytest.mark.parametrize(
    "recording",
    [
        cases.recording(LOADS, roles=ROLES),
        probed(elasticity("worker-0", value=0.9)),
        probed(elasticity("ps-0", value=0.9, knob=Knob.LINK)),
        probed(
            elasticity("ps-0", value=0.02),
            events=(JobEvent(at=cases.START + 20, kind=RESIZED, message="ps-0 has 2 CPU"),),
        ),
    ],
    ids=["no probe", "of another replica", "of something else", "before a change"],
)
def test_of_others_nothing_is_said(recording: Recording) -> None:
    assert said(recording) == CPU_BOUND


def test_a_probe_that_was_not_brought_to_its_end_says_nothing() -> None:
    recording = probed(elasticity("ps-0", value=0.02))
    (probe,) = recording.probes
    killed = dataclasses.replace(probe, ended=None, ended_at=None)
    assert said(dataclasses.replace(recording, probes=(killed,))) == CPU_BOUND


def test_while_a_probe_goes_on_nothing_is_said_of_what_it_does() -> None:
    recording = probed(elasticity("ps-0", value=0.9))
    (probe,) = recording.probes
    going_on = dataclasses.replace(recording, probes=(dataclasses.replace(probe, ended=None, ended_at=None),))
    situation = Situation.of(going_on.run, going_on.replicas, (), now=going_on.at)
    found = diagnose(going_on, situation)
    assert not found.causes
    assert found.unknown == (confirmations.UNDER_WAY,)
    late = dataclasses.replace(going_on, at=going_on.at + confirmations.SILENT_SECONDS.default)
    assert not confirmations.is_under_way(Case.of(late)), "it was killed"


def test_a_link_is_that_of_the_host_of_a_replica() -> None:
    rows = {"ps-0": {"host": "a"}, "worker-0": {"host": "b"}, "ps-1": {"host": "b"}}
    hosts = {"hosts": (Host(name="a", bandwidth_bits_per_second=10**7), Host(name="b"))}
    recording = probed(elasticity("a", value=0.95, knob=Knob.LINK), rows=rows, spec=hosts)
    cause = dataclasses.replace(CPU_BOUND, name="ps-network-bound")
    assert "link of a: costs" in said(recording, cause).evidence[0].text


def test_what_binds_and_no_rule_names_is_a_cause_with_a_change() -> None:
    loads = {name: {"cpu_cores": 0.2, "cpu_limit_cores": 1.0} for name in LOADS}
    recording = dataclasses.replace(
        probed(elasticity("ps-0", value=1.0)), samples=cases.recording(loads, roles=ROLES).samples
    )
    causes, _ = judged(Case.of(recording))
    (cause,) = (each for each in causes if each.name == "bound-part")
    assert cause.what == "By experiment the cores of ps-0 bind."
    assert cause.changes == (FieldChange(path=("spec", "overrides", "ps-0", "cpu"), value="1500m"),)
    assert cause.gain is not None
    assert cause.gain.low < 1.5 < cause.gain.high


def test_where_a_rule_says_why_the_probe_only_confirms() -> None:
    causes, _ = judged(Case.of(probed(elasticity("ps-0", "ps-1", value=0.9))))
    names = [each.name for each in causes if each.severity is not Severity.INFO]
    assert "bound-part" not in names
    assert names


def test_a_link_that_binds_is_named_without_a_change() -> None:
    (cause,) = cases.found(bound_part, probed(elasticity("a", value=0.9, knob=Knob.LINK)))
    assert cause.what == "By experiment the link of a binds."
    assert not cause.changes
    assert cause.gain is None
