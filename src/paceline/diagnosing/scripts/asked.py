"""What scripts ask of TensorFlow, as far as the instrumentation has seen it (`script_facts`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paceline.diagnosing.cases import Case, once
from paceline.model.explanations.causes import Evidence
from paceline.model.measures import script_facts
from paceline.model.measures.script_facts import Facts, Name, Value
from paceline.model.roles import ReplicaId
from paceline.model.words import listed


class ReportedFact(NamedTuple):
    """A value that a trainer's script asks for, and when it was seen (Unix seconds)."""

    replica: ReplicaId
    value: Value
    at: float


@once
def _facts(case: Case) -> Mapping[ReplicaId, Facts]:
    return script_facts.of_replicas(case.recording.replicas, case.recording.events)


def of_trainers(case: Case, name: Name) -> list[ReportedFact]:
    """Return the values that the trainers' scripts ask for under a name, as far as they were seen."""
    return [
        ReportedFact(replica, facts[name].value, facts[name].at)
        for replica, facts in _facts(case).items()
        if replica.role.trains and name in facts
    ]


def of_replica(case: Case, replica: ReplicaId) -> Facts:
    """Return everything that the script of a replica asks for, as far as it was seen."""
    return _facts(case).get(replica, {})


def amount(case: Case, replica: ReplicaId, name: Name) -> float | None:
    """Return the number that a replica's script asks for under a name; None: it was not seen."""
    fact = of_replica(case, replica).get(name)
    return None if fact is None else float(fact.value)


def evidence(name: Name, asked: list[ReportedFact]) -> Evidence:
    """Return the evidence that some scripts ask for a value."""
    return Evidence(
        text=f"seen in the script of {listed(each.replica for each in asked)}: "
        f"{script_facts.text(name, asked[0].value)}",
        at=min(each.at for each in asked),
    )
