"""Experiments: variants of a job, each of which runs several times, in turn with the others."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from paceline.model.explanations.causes import FieldChange
from paceline.model.studies.studies import Study, TrialOutcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A job file with changes; a variant without changes is the file itself."""

    name: str
    changes: tuple[FieldChange, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A run of a variant.

    Attributes:
        variant: the name of the variant.
        number: the round, from 0; the runs of a round follow each other.
        run: the name of the run.
        outcome: what was measured.
        cause: the primary cause why it was no faster; empty: none was found.
    """

    variant: str
    number: int
    run: str
    outcome: TrialOutcome
    cause: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Study):
    """A comparison of variants, with its measurements so far.

    Attributes:
        baseline: the name of the variant with which the others are compared.
        repeats: the number of runs of each variant.
        seconds: how long each run is measured.
        done: the finished runs, in the order in which they were made.
        facts: facts of the place where it ran.
        origin: what was simulated instead of run; empty: it ran.
    """

    variants: tuple[Variant, ...]
    baseline: str
    repeats: int
    seconds: float
    done: tuple[Repeat, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    origin: str = ""

    @property
    def done_runs(self) -> int:
        """Return how many planned runs are done."""
        return self.planned_runs - len(self.left())

    @property
    def planned_runs(self) -> int:
        """Return how many runs all repeats of all variants are."""
        return len(self.plan())

    @property
    def is_complete(self) -> bool:
        """Whether all planned runs are done."""
        return not self.left()

    def plan(self) -> Sequence[tuple[Variant, int]]:
        """Return all runs in order: all variants in turn, in every other round backwards.

        This way the first variants gain nothing if the machine becomes slower or a neighbour arrives.
        """
        rounds = (self.variants if number % 2 == 0 else self.variants[::-1] for number in range(self.repeats))
        return [(variant, number) for number, each in enumerate(rounds) for variant in each]

    def left(self) -> Sequence[tuple[Variant, int]]:
        """Return the runs that are still to be made."""
        known = {(each.variant, each.number) for each in self.done}
        return [(variant, number) for variant, number in self.plan() if (variant.name, number) not in known]


def combined(variants: Sequence[Variant], fields: Sequence[Sequence[Variant]]) -> tuple[Variant, ...]:
    """Return all combinations of variants and values of fields; the last field varies fastest."""
    found = []
    for parts in itertools.product(variants, *fields):
        names = [each.name for each in parts if each.name]
        changes = tuple(change for each in parts for change in each.changes)
        found.append(Variant(name=", ".join(names), changes=changes))
    return tuple(found)
