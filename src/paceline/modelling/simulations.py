"""A simulation of a job step by step: what each trainer and each resource does at which second.

It is event-driven, at the level of flows. An event is the start of a phase of a step; it determines at once
when each visit of the phase will be served, in the order of arrival. The same seed gives the same run.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from paceline.modelling.resources import Resource, TrainerGroup, drawn_by

_Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A change of speed: from then on a resource, or the trainers of a group, are ``times`` as fast.

    Attributes:
        at: seconds from the start.
        of: the name of the resource or of the group.
        times: the factor; 0 stops it. A slow trainer computes longer. A visit that is under way when a
            resource changes is served at the old speed.
        member: the index of the trainer in the group, or of the copy of the resource; None: all of them.
    """

    at: float
    of: str
    times: float
    member: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The result of a simulation.

    Attributes:
        seconds: the simulated time.
        step_ends: by group and trainer, when each step ended, in order.
        efforts: by group and trainer, how many times as long as usual the trainer computed for each step.
        first_phases: by group and trainer, the start and the end of the first phase of each step.
    """

    seconds: float
    step_ends: tuple[tuple[tuple[float, ...], ...], ...]
    efforts: tuple[tuple[tuple[float, ...], ...], ...]
    first_phases: tuple[tuple[tuple[tuple[float, float], ...], ...], ...]

    def steps_per_second(self, *, after_seconds: float = 0.0) -> float:
        """Return the steps a second of all trainers from a moment on."""
        ends = [end for group in self.step_ends for own in group for end in own if end > after_seconds]
        return len(ends) / max(self.seconds - after_seconds, 1e-12)


def simulate(
    resources: Sequence[Resource],
    groups: Sequence[TrainerGroup],
    *,
    seed: int,
    seconds: float = math.inf,
    steps: int | None = None,
    variation: float = 0.0,
    changes: Sequence[Incident] = (),
) -> Simulated:
    """Simulate groups of trainers until a moment, or until they have made a number of steps together.

    Args:
        resources: the resources that steps draw on.
        groups: the groups of trainers.
        seed: the seed of all random numbers.
        seconds: the latest end.
        steps: the number of steps of all trainers together; None: as many as the time allows.
        variation: standard deviation of the time that a trainer spends alone in a step, and of the units of
            each phase, as a share of them (gamma distributed).
        changes: changes of speed on the way.

    Raises:
        ValueError: neither seconds nor steps end it, or a step or a change names something unknown.
    """
    if steps is None and not math.isfinite(seconds):
        raise ValueError("a simulation ends after some seconds, or after some steps")
    run = _Run(resources, groups, seed=seed, variation=variation)
    run.schedule(changes)
    run.until(seconds, math.inf if steps is None else steps)
    return run.result(seconds)


class _Phase:
    """The draws of a phase as arrays with one entry for each resource."""

    def __init__(
        self, drawn: Mapping[str, tuple[float, float]], names: Mapping[str, tuple[int, int]], peaks: _Floats
    ) -> None:
        self._firsts, self._copies = np.array([names[name] for name in drawn], np.intp).T
        self.units = np.array([units for units, _ in drawn.values()])
        self.least_seconds = np.array([most for _, most in drawn.values()]) / peaks[self._firsts]
        self._is_shared = bool((self._copies == 1).all())

    def places(self, trainer: int) -> npt.NDArray[np.intp]:
        """Return the indices of the resources, or copies of them, that a trainer draws on."""
        found: npt.NDArray[np.intp] = self._firsts
        return found if self._is_shared else found + trainer % self._copies


class _Run:
    """A simulation under way. The debt of a token bucket is how many units it is below its burst."""

    def __init__(
        self, resources: Sequence[Resource], groups: Sequence[TrainerGroup], *, seed: int, variation: float
    ) -> None:
        self._chance = np.random.default_rng(seed)
        self._variation = variation
        copies = [each.copies for each in resources]
        firsts = [0, *itertools.accumulate(copies)]
        #: The index of the first copy of each resource, and the number of copies.
        self._names = {
            each.name: (first, each.copies) for each, first in zip(resources, firsts, strict=False)
        }
        self._groups = {each.name: number for number, each in enumerate(groups)}
        self._rates, self._peaks, self._bursts = (
            np.repeat(np.array([getattr(each, field) for each in resources], dtype=float), copies)
            for field in ("rate", "peak", "burst")
        )
        self._debts = np.zeros(len(self._rates))
        self._asked_at = np.zeros(len(self._rates))
        self._own_seconds = [group.own_seconds for group in groups]
        self._times = [[1.0] * group.trainers for group in groups]
        self._computes_in = [group.computes_in for group in groups]
        self._base_rates = self._rates.copy()
        self._phases = [self._arranged(group) for group in groups]
        self._ends: list[list[list[float]]] = [[[] for _ in range(group.trainers)] for group in groups]
        self._efforts: list[list[list[float]]] = [[[] for _ in range(group.trainers)] for group in groups]
        self._first_phases: list[list[list[tuple[float, float]]]] = [
            [[] for _ in range(group.trainers)] for group in groups
        ]
        self._events: list[tuple[float, int, int, int, int]] = []
        self._changes: list[Incident] = []
        #: The steps that stand still: group, trainer, phase (None: before the step), and since when.
        self._held: list[tuple[int, int, int | None, float]] = []
        self._order = 0
        self._steps = 0
        self._last = 0.0
        for number, group in enumerate(groups):
            for trainer in range(group.trainers):
                for _ in range(group.steps_in_flight):
                    self._begin(number, trainer, at=0.0)

    def _arranged(self, group: TrainerGroup) -> list[_Phase]:
        group.check(self._names)
        drawn = (drawn_by(phase) for phase in group.phases)
        return [_Phase(each, self._names, self._peaks) for each in drawn if each]

    def schedule(self, changes: Sequence[Incident]) -> None:
        """Record the changes to come."""
        for each in changes:
            group, (_, copies) = self._groups.get(each.of), self._names.get(each.of, (0, 0))
            count = copies if group is None else len(self._times[group])
            if not count:
                raise ValueError(f"nothing is called {each.of}")
            if group is None and math.isinf(self._rates[self._names[each.of][0]]):
                raise ValueError(f"{each.of} have no limit that could change")
            if each.member is not None and not 0 <= each.member < count:
                raise ValueError(f"of {each.of} there are {count}: there is no number {each.member}")
        self._changes = sorted(changes, key=lambda each: each.at, reverse=True)

    def until(self, seconds: float, steps: float) -> None:
        """Continue until a moment, or until a number of steps is made."""
        while self._steps < steps:
            at = self._events[0][0] if self._events else math.inf
            if self._changes and self._changes[-1].at <= min(at, seconds):
                self._change(self._changes.pop())
                continue
            if at > seconds or not self._events:
                return
            at, _, group, trainer, phase = heapq.heappop(self._events)
            self._last = at
            if phase < len(self._phases[group]):
                self._visit(group, trainer, phase, at)
            else:
                self._ends[group][trainer].append(at)
                self._efforts[group][trainer].append(1 / (self._times[group][trainer] or math.inf))
                self._steps += 1
                self._begin(group, trainer, at)

    def _begin(self, group: int, trainer: int, at: float) -> None:
        """Start a step with the time that its trainer spends alone."""
        if self._times[group][trainer] == 0:
            self._held.append((group, trainer, None, at))
            return
        own = self._own_seconds[group] / self._times[group][trainer]
        self._push(at + own * self._varied(), group, trainer, 0)

    def _varied(self) -> float:
        """Return a random factor with mean 1."""
        if not self._variation:
            return 1.0
        shape = 1 / self._variation**2
        return float(self._chance.gamma(shape, 1 / shape))

    def _push(self, at: float, group: int, trainer: int, phase: int) -> None:
        self._order += 1
        heapq.heappush(self._events, (at, self._order, group, trainer, phase))

    def _visit(self, group: int, trainer: int, number: int, at: float) -> None:
        """Make all visits of a phase; the next phase starts when the last visit has been served."""
        phase = self._phases[group][number]
        places = phase.places(trainer)
        rates = self._rates[places]
        if not rates.all() or (number == self._computes_in[group] and not self._times[group][trainer]):
            self._held.append((group, trainer, number, at))
            return
        times = self._varied()
        if number == self._computes_in[group]:
            times /= self._times[group][trainer]
        units = phase.units * times
        debts = self._debts_at(at, places) + units
        self._debts[places] = debts
        self._asked_at[places] = at
        waits = np.maximum(0.0, debts - self._bursts[places]) / rates
        done = at + float(np.maximum(phase.least_seconds * times, waits).max())
        if number == 0:
            self._first_phases[group][trainer].append((at, done))
        self._push(done, group, trainer, number + 1)

    def _debts_at(self, at: float, places: npt.NDArray[np.intp] | slice) -> _Floats:
        """Return what is left at a moment of the debts of some resources."""
        seconds = at - self._asked_at[places]
        refilled = np.multiply(self._rates[places], seconds, out=np.zeros_like(seconds), where=seconds > 0)
        debts: _Floats = np.maximum(0.0, self._debts[places] - refilled)
        return debts

    def _change(self, change: Incident) -> None:
        group = self._groups.get(change.of)
        if group is not None:
            own = self._times[group]
            members = range(len(own)) if change.member is None else (change.member,)
            for each in members:
                own[each] = change.times
        first, copies = self._names.get(change.of, (0, 0))
        if change.member is not None and copies:
            first, copies = first + change.member, 1
        which = slice(first, first + copies)
        self._debts[which] = self._debts_at(change.at, which)
        self._asked_at[which] = change.at
        self._rates[which] = self._base_rates[which] * change.times
        held, self._held = self._held, []
        for number, trainer, phase, since in held:
            if phase is None:
                self._begin(number, trainer, change.at)
                continue
            if phase == 0:
                self._first_phases[number][trainer].append((since, change.at))
            self._push(change.at, number, trainer, phase)

    def result(self, seconds: float) -> Simulated:
        """Return the result so far."""
        return Simulated(
            seconds=seconds if math.isfinite(seconds) else self._last,
            step_ends=tuple(tuple(tuple(own) for own in group) for group in self._ends),
            efforts=tuple(tuple(tuple(own) for own in group) for group in self._efforts),
            first_phases=tuple(tuple(tuple(own) for own in group) for group in self._first_phases),
        )
