"""Experiments: variants of a job, each run several times, in turn with the others."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from paceline.model.explanations.causes import FieldChange
from paceline.model.studies.tunings import TrialOutcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A job file with changes; without any it is the file as it is."""

    name: str
    changes: tuple[FieldChange, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A run of a variant.

    Attributes:
        variant: its name.
        number: from 0; repeats of one number were run one after the other.
        run: the name of the run.
        outcome: what was measured.
        cause: the primary cause of its being no faster; empty: none.
    """

    variant: str
    number: int
    run: str
    outcome: TrialOutcome
    cause: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is compared, and what was measured of it so far.

    Attributes:
        source: the job file that variants change.
        base: the folder that relative paths in it start from.
        baseline: the name of the variant with which the others are compared.
        repeats: of each variant.
        seconds: that each run is measured.
        done: in the order in which they were run.
        facts: of where it ran.
    """

    name: str
    source: str
    base: str
    variants: tuple[Variant, ...]
    baseline: str
    repeats: int
    seconds: float
    done: tuple[Repeat, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    def plan(self) -> Sequence[tuple[Variant, int]]:
        """Return what is run, in order: all variants in turn, every other time backwards.

        So a machine that grows slower, or a neighbour that comes, is no advantage of those that are first.
        """
        rounds = (self.variants if number % 2 == 0 else self.variants[::-1] for number in range(self.repeats))
        return [(variant, number) for number, each in enumerate(rounds) for variant in each]

    def left(self) -> Sequence[tuple[Variant, int]]:
        """Return what is still to be run."""
        known = {(each.variant, each.number) for each in self.done}
        return [(variant, number) for variant, number in self.plan() if (variant.name, number) not in known]


def combined(variants: Sequence[Variant], fields: Sequence[Sequence[Variant]]) -> tuple[Variant, ...]:
    """Return every variant with every combination of values of some fields, the last one fastest."""
    found = []
    for parts in itertools.product(variants, *fields):
        names = [each.name for each in parts if each.name]
        changes = tuple(change for each in parts for change in each.changes)
        found.append(Variant(name=", ".join(names), changes=changes))
    return tuple(found)
