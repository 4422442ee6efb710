"""Rules of diagnosis: a rule is a topic with words for people, its needs, and a pure function of a case."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from types import ModuleType

from paceline.diagnosing.cases import Case
from paceline.diagnosing.needs import Need
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Cause, Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One finding of a rule (see `Cause`); severity and risk default to those of the rule's topic."""

    what: str
    subjects: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    changes: tuple[FieldChange, ...] = ()
    next_steps: tuple[str, ...] = ()
    gain: Gain | None = None
    severity: Severity | None = None
    risk: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the catalogue.

    Attributes:
        topic: the code, the name and words for people.
        needs: the data that the rule needs, all of it.
        explains: names of causes that follow from the rule's cause, nearest first.
        facts: modules that work out what the rule judges; what they compare with belongs to the rule, too.
        find: yields the hits in a case that has all needed data.
    """

    topic: Topic
    needs: tuple[Need, ...]
    explains: tuple[str, ...]
    facts: tuple[ModuleType, ...]
    find: Callable[[Case], Iterator[Hit]]

    def lacks(self, case: Case) -> tuple[Need, ...]:
        """Return the rule's needs that a case does not meet."""
        return tuple(need for need in self.needs if need.lacks(case))

    def causes(self, case: Case) -> Iterator[Cause]:
        """Yield the causes that the rule finds in a case that meets all its needs."""
        for hit in self.find(case):
            yield Cause(
                name=self.topic.name,
                what=hit.what,
                severity=hit.severity or self.topic.severity,
                subjects=hit.subjects,
                evidence=hit.evidence,
                next_steps=hit.next_steps,
                changes=hit.changes,
                risk=self.topic.risk if hit.risk is None else hit.risk,
                gain=hit.gain,
            )


def rule(
    topic: Topic,
    *,
    needs: tuple[Need, ...],
    explains: tuple[str, ...] = (),
    facts: tuple[ModuleType, ...] = (),
) -> Callable[[Callable[[Case], Iterator[Hit]]], Rule]:
    """Return the decorator that turns a function which finds hits into a rule."""

    def decorate(find: Callable[[Case], Iterator[Hit]]) -> Rule:
        return Rule(topic=topic, needs=needs, explains=explains, facts=facts, find=find)

    return decorate
