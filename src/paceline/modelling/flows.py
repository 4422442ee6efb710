"""The long-run throughput of groups of trainers by approximate mean value analysis, found in milliseconds."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from paceline.modelling.resources import Resource, TrainerGroup, drawn_by

#: The largest use of a token bucket; the rest is lost at the ends of periods. Measured: 0.98 to 1.00 of a
#: quota.
FULL = 0.99
_ROUNDS = 2000
#: Networks solved side by side; with more, all would wait longer for the last of them to converge.
_AT_ONCE = 256
#: A network has converged when no wait moves by more than `_CLOSE` of a step. Waits for two resources that
#: bind equally may alternate for ever, so it has also converged when waits move by less than `_NEAR` of a
#: step and the length of a step by less than `_SAME` of itself.
_CLOSE, _NEAR, _SAME = 1e-6, 1e-4, 1e-9
_DAMPING = 0.5

_Floats = npt.NDArray[np.float64]
_Places = npt.NDArray[np.intp]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The throughput of a network of resources.

    Attributes:
        steps_per_second: steps of all trainers of each group, by the name of the group.
        uses: the share of its rate that is used of each resource, by the name of the resource.
    """

    steps_per_second: Mapping[str, float]
    uses: Mapping[str, float]

    @property
    def binds(self) -> str | None:
        """Return the most used resource; None: there is none."""
        return most_used(self.uses)


def most_used(uses: Mapping[str, float]) -> str | None:
    """Return the resource with the largest used share of its rate; None: there is none."""
    return max(uses, key=uses.__getitem__, default=None)


def flow(resources: Sequence[Resource], groups: Sequence[TrainerGroup]) -> Flow:
    """Return the throughput of each group, and the use of each resource.

    A step that arrives at a resource waits for the steps that are there, as many as it would find with one
    fewer step of its own group (Schweitzer 1979; Bard 1979). Resources that serve several steps at once are
    treated as in Seidmann and others (1987). A token bucket whose burst is large compared with a visit makes
    hardly any trainer wait until the bucket is used up: then all that draw on it are held up until they use
    `FULL` of its rate.

    Raises:
        ValueError: a group draws on a resource that does not exist.
    """
    return flows([(resources, groups)])[0]


def flows(networks: Sequence[tuple[Sequence[Resource], Sequence[TrainerGroup]]]) -> list[Flow]:
    """Return the `flow` of each network; hundreds together take little longer than one.

    Raises:
        ValueError: a group draws on a resource that does not exist.
    """
    found: list[Flow] = []
    for begin in range(0, len(networks), _AT_ONCE):
        found += _flows(networks[begin : begin + _AT_ONCE])
    return found


def _flows(networks: Sequence[tuple[Sequence[Resource], Sequence[TrainerGroup]]]) -> Iterator[Flow]:
    """Yield the flow of each network; all are solved as one network whose parts share nothing."""
    network = _Network.of(networks)
    waits = np.zeros(len(network.units))
    holds = np.zeros(len(network.rates))
    last_seconds = np.full(len(network.own), np.inf)
    rested = np.zeros(len(networks), dtype=bool)
    rested_speeds, rested_uses = np.zeros(len(network.own)), np.zeros(len(network.rates))
    for round_number in range(1, _ROUNDS + 1):
        # The times and speeds of this round, from the waits and holds of the round before.
        seconds = network.alone + waits + network.units * holds[network.resource]
        step_seconds = network.step_seconds(seconds)
        speeds = network.customers / step_seconds
        uses = network.uses(speeds)
        # The waits and holds that these speeds cause, damped, so that they do not swing.
        new_waits = waits + _DAMPING * (network.waits(speeds, seconds) - waits)
        hold_change = (uses / network.full - 1) * network.hold_seconds(speeds, step_seconds)
        new_holds = np.maximum(0.0, holds + _DAMPING * hold_change)
        # Which networks rest now: those that have converged. They keep the speeds and uses of this round.
        moves = np.abs(new_waits - waits + network.units * (new_holds - holds)[network.resource])
        wait_change = _most(
            moves / step_seconds[network.group], network.part_of_group[network.group], len(networks)
        )
        length_change = _most(np.abs(last_seconds / step_seconds - 1), network.part_of_group, len(networks))
        waits, holds, last_seconds = new_waits, new_holds, step_seconds
        rests = (wait_change < _CLOSE) | ((wait_change < _NEAR) & (length_change < _SAME))
        rest_now = ~rested & (rests | (round_number == _ROUNDS))
        rested_speeds = np.where(rest_now[network.part_of_group], speeds, rested_speeds)
        rested_uses = np.where(rest_now[network.part_of_resource], uses, rested_uses)
        rested |= rest_now
        if rested.all():
            break
    every_speed, every_use = iter(rested_speeds.tolist()), iter(rested_uses.tolist())
    for resources, groups in networks:
        yield Flow(
            steps_per_second={group.name: next(every_speed) for group in groups},
            uses={each.name: next(every_use) for each in resources},
        )


def _most(values: _Floats, parts: _Places, count: int) -> _Floats:
    """Return the largest value of each part; zero for a part without values."""
    most = np.zeros(count)
    np.maximum.at(most, parts, values)
    return most


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Network:
    """All draws of all groups of all networks as arrays; the draws of a phase are adjacent.

    Attributes:
        part_of_group, part_of_resource: the index of the network of each group and of each resource.
        group, resource: the index of the group and of the resource of each draw.
        units: units of each draw in a step; all visits of a phase to a resource are one draw.
        alone: seconds of each draw at an idle resource.
        weights: seconds that each draw waits for each step that it finds at its resource.
        own: seconds in which a step of each group uses no limited resource.
        customers: the number of steps under way in each group.
        first_of_phase, group_of_phase: the index of the first draw and of the group of each phase.
        rates: the rate of each resource, all its copies together.
        full: the largest use of each resource.
        copies: the number of copies of the resource of each draw.
    """

    part_of_group: _Places
    part_of_resource: _Places
    group: _Places
    resource: _Places
    units: _Floats
    alone: _Floats
    weights: _Floats
    own: _Floats
    customers: _Floats
    first_of_phase: _Places
    group_of_phase: _Places
    rates: _Floats
    full: _Floats
    copies: _Floats

    @classmethod
    def of(cls, networks: Sequence[tuple[Sequence[Resource], Sequence[TrainerGroup]]]) -> _Network:
        resources = [resource for those, _ in networks for resource in those]
        groups = [group for _, those in networks for group in those]
        rows: list[tuple[int, int, float, float]] = []
        first, owner = [], []
        first_group, first_resource = 0, 0
        for its_resources, its_groups in networks:
            places = {resource.name: place for place, resource in enumerate(its_resources, first_resource)}
            for number, group in enumerate(its_groups, first_group):
                group.check(places)
                for phase in group.phases:
                    if drawn := drawn_by(phase):
                        first.append(len(rows))
                        owner.append(number)
                        rows += [(number, places[name], *units) for name, units in drawn.items()]
            first_group += len(its_groups)
            first_resource += len(its_resources)
        group_of, resource_of, units, most = np.array(rows).reshape(-1, 4).T
        resource_places = resource_of.astype(np.intp)
        rates, peaks, bursts, copies = (
            np.array([getattr(resource, field) for resource in resources], dtype=float)
            for field in ("rate", "peak", "burst", "copies")
        )
        burst, rate = bursts[resource_places], rates[resource_places]
        places_of_networks = np.arange(len(networks))
        return cls(
            part_of_group=np.repeat(places_of_networks, [len(those) for _, those in networks]),
            part_of_resource=np.repeat(places_of_networks, [len(those) for those, _ in networks]),
            group=group_of.astype(np.intp),
            resource=resource_places,
            units=units,
            alone=np.maximum(most / peaks[resource_places], np.maximum(0.0, units - burst) / rate),
            weights=units / rate * (units / (units + burst)),
            own=np.array([group.own_seconds for group in groups]),
            customers=np.array([float(group.trainers * group.steps_in_flight) for group in groups]),
            first_of_phase=np.array(first, np.intp),
            group_of_phase=np.array(owner, np.intp),
            rates=rates * copies,
            copies=copies[resource_places],
            full=np.where(bursts > 0, FULL, 1.0),
        )

    def step_seconds(self, seconds: _Floats) -> _Floats:
        """Return how long a step of each group takes: a phase takes as long as its longest draw."""
        found = self.own.copy()
        if len(seconds):
            longest = np.maximum.reduceat(seconds, self.first_of_phase)
            np.add.at(found, self.group_of_phase, longest)
        return np.maximum(found, 1e-12)

    def uses(self, speeds: _Floats) -> _Floats:
        """Return the share of each resource's rate that groups of these speeds draw."""
        drawn = np.bincount(self.resource, speeds[self.group] * self.units, minlength=len(self.rates))
        return drawn / self.rates

    @functools.cached_property
    def group_resource(self) -> _Places:
        """Return for each draw a number that identifies its pair of group and resource."""
        pairs = self.group * len(self.rates) + self.resource
        places: _Places = np.unique(pairs, return_inverse=True)[1]
        return places

    def waits(self, speeds: _Floats, seconds: _Floats) -> _Floats:
        """Return how long each draw waits for others, by the number of steps there (Little 1961).

        Steps are alike, so half of the step in service is left on average (as in M/D/1).
        """
        rate = self.rates[self.resource] / self.copies
        served = speeds[self.group] * self.units / rate
        there = speeds[self.group] * (seconds - self.alone) + served / 2
        crowd = np.bincount(self.resource, there, minlength=len(self.rates))[self.resource] / self.copies
        # A step is in one phase at a time, so it must not wait for its own share in any phase.
        group_there = np.bincount(self.group_resource, there)[self.group_resource]
        return self.weights * np.maximum(0.0, crowd - group_there / self.customers[self.group])

    def hold_seconds(self, speeds: _Floats, step_seconds: _Floats) -> _Floats:
        """Return for each resource the hold of a unit that would double the length of steps (Newton)."""
        asked = speeds[self.group] * self.units
        slope = np.bincount(
            self.resource, asked * self.units / step_seconds[self.group], minlength=len(self.rates)
        )
        drawn = np.bincount(self.resource, asked, minlength=len(self.rates))
        return np.divide(drawn, slope, out=np.zeros(len(self.rates)), where=slope > 0)
