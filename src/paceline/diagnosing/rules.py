"""What a rule of diagnosis is: words for people, what it needs to know, and a pure function of a case."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from paceline.diagnosing.cases import Case
from paceline.diagnosing.needs import Need
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Cause, Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One thing that a rule found (see `Cause`); severity and risk are the rule's own if not given."""

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
        topic: its code, its name, and words for people.
        needs: without any of these it cannot judge.
        explains: names of causes that follow from what it finds, nearest first.
        find: yields what it finds in a case that has what it needs.
    """

    topic: Topic
    needs: tuple[Need, ...]
    explains: tuple[str, ...]
    find: Callable[[Case], Iterator[Hit]]

    def lacks(self, case: Case) -> tuple[Need, ...]:
        """Return what a case does not have of what the rule needs."""
        return tuple(need for need in self.needs if need.lacks(case))

    def causes(self, case: Case) -> Iterator[Cause]:
        """Yield what the rule finds in a case that lacks nothing."""
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
    topic: Topic, *, needs: tuple[Need, ...], explains: tuple[str, ...] = ()
) -> Callable[[Callable[[Case], Iterator[Hit]]], Rule]:
    """Return the decorator that makes a rule of the function that finds."""

    def decorate(find: Callable[[Case], Iterator[Hit]]) -> Rule:
        return Rule(topic=topic, needs=needs, explains=explains, find=find)

    return decorate
