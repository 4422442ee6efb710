"""What was found in runs when they had ended, in each kind of database."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.errors import NotFound
from paceline.model.explanations.causes import (
    Cause,
    Evidence,
    EvidenceSource,
    Explanation,
    FieldChange,
    Gain,
    Option,
    Outlook,
)
from paceline.model.explanations.conclusions import Conclusion
from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import ReplicaId, Role

PS = ReplicaId(Role.PS, 0)
EFFECT = Cause(name="waits", what="workers wait", severity=Severity.INFO)
CAUSE = Cause(
    name="ps-cpu-bound",
    what="every PS is at its limit",
    severity=Severity.WARNING,
    subjects=("ps-0",),
    evidence=(
        Evidence(
            text="1 of 1 core", at=5.0, sources=(EvidenceSource(what="samples", field="at", replicas=(PS,)),)
        ),
    ),
    changes=(FieldChange(path=("spec", "roles", "ps", "cpu"), value=2),),
    gain=Gain(low=1.1, high=1.5),
    effects=(dataclasses.replace(EFFECT, effects=(EFFECT,)),),
)
FOUND = Explanation(
    job="demo",
    summary="it has ended",
    causes=(CAUSE,),
    outlook=Outlook(
        binds="CPU", uses=(("CPU", 0.9), ("network", 0.1)), knee_workers=None,
        options=(Option(what="2 x", gain=Gain(low=1.0, high=2.0), binds="network"),),
    ),
)  # fmt: skip
LAST = Conclusion(at=20.0, version="0.1", explanation=FOUND)


@pytest.fixture
def ended(filled):
    """A store with a run that has ended at 10."""
    state = filled.load_state("demo")
    filled.save_state("demo", dataclasses.replace(state, phase=JobPhase.FAILED), at=10.0)
    return filled


def test_what_is_concluded_stays(ended):
    assert ended.unconcluded(ended_before=9.0) == []
    assert ended.unconcluded(ended_before=10.0, engine="kubernetes") == []
    assert ended.unconcluded(ended_before=10.0, engine="local", limit=3) == ["demo"]
    assert ended.conclusion("demo") is None
    assert ended.conclude("demo", LAST, DiagnosisSummary(at=20.0, codes=("PS101",)))
    assert ended.conclusion("demo") == LAST
    assert ended.diagnosis("demo").codes == ("PS101",)
    other = dataclasses.replace(LAST, version="0.2")
    assert not ended.conclude("demo", other, DiagnosisSummary(at=30.0))
    assert ended.conclusion("demo") == LAST
    assert ended.unconcluded(ended_before=10.0) == []


def test_a_run_that_goes_on_again_is_not_concluded(ended):
    ended.conclude("demo", LAST, DiagnosisSummary(at=20.0))
    state = ended.load_state("demo")
    ended.save_state("demo", dataclasses.replace(state, phase=JobPhase.PENDING), at=30.0)
    assert ended.conclusion("demo") is None
    assert not ended.conclude("demo", LAST, DiagnosisSummary(at=20.0))
    assert ended.unconcluded(ended_before=100.0) == []


def test_it_goes_with_its_run(ended):
    ended.conclude("demo", LAST, DiagnosisSummary(at=20.0))
    ended.delete_run("demo")
    with pytest.raises(NotFound):
        ended.conclusion("demo")
    with pytest.raises(NotFound):
        ended.conclude("demo", LAST, DiagnosisSummary(at=20.0))
