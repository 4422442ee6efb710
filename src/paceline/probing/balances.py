"""Balancing of a job's cores: they move from replicas that do not need them to replicas that bind.

One round is one probe and one set of small changes: a replica gets at most half as much again, and no replica
gets less than it uses plus a margin. Nothing changes if nothing binds for sure, or if the cores that could be
moved would bring next to nothing. So rounds do not undo each other: cores that a replica was given because it
binds are taken back only when it rests.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from paceline.model import quantities
from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.job_specs import Autoscale, JobSpec
from paceline.model.measures.probes import Elasticity, PartVerdict
from paceline.model.roles import ReplicaId
from paceline.probing import raises, sayings

#: The largest factor on the cores of a replica in one round.
MOST_RAISE = sayings.RAISE
#: A replica that rests keeps at least `SPARE` times the cores that it uses, and gives at most `MOST_GIVEN` of
#: its cores in one round.
SPARE, MOST_GIVEN = 1.3, 0.3
#: Changes with a smaller predicted speed-up are not made.
LEAST_GAIN = 1.05
#: Cores are moved in steps of this size.
STEP_CORES = 0.01
#: By so many steps floating point may be wrong.
_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A change of a replica's cores, and the reason."""

    replica: ReplicaId
    before: float
    after: float
    why: str

    @property
    def text(self) -> str:
        """Return the change for users: ``ps-0: 500m -> 750m CPU (it binds)``."""
        had, has = (quantities.quantity_cores(each) for each in (self.before, self.after))
        return f"{self.replica}: {had} -> {has} CPU ({self.why})"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """The changes of one round.

    Attributes:
        moves: the changes; empty: nothing is changed.
        why: the reason, in a sentence.
        times: the predicted speed-up, and its interval of 95 %; None: nothing is changed.
    """

    moves: tuple[Move, ...]
    why: str
    times: tuple[float, float, float] | None = None


def balance(
    spec: JobSpec, scale: Autoscale, elasticities: Sequence[Elasticity], used: Mapping[ReplicaId, float]
) -> Balance:
    """Return what to change in a job after a probe.

    Args:
        spec: the job as it is.
        scale: the limits of its autoscaling.
        elasticities: the elasticities that the probe found.
        used: the cores that each replica uses; a replica without a value gives no cores.
    """
    by_replica = _by_replica(elasticities)
    scaled = {
        replica: cores
        for replica in spec.replicas()
        if replica.role in scale.ranges and (cores := spec.role_of(replica).cpu_cores) is not None
    }
    binding = [
        replica
        for replica in scaled
        if replica in by_replica and by_replica[replica].verdict is PartVerdict.BINDS
    ]
    if not binding:
        return Balance(moves=(), why="nothing that may be scaled binds")
    wanted_cores = {
        replica: min(scaled[replica] * MOST_RAISE, scale.ranges[replica.role].high) - scaled[replica]
        for replica in binding
    }
    wanted_cores = {replica: more for replica, more in wanted_cores.items() if more >= STEP_CORES}
    if not wanted_cores:
        return Balance(moves=(), why="what binds has as much as it may have")
    resting = [
        replica
        for replica in scaled
        if replica in by_replica and by_replica[replica].verdict is PartVerdict.RESTS
    ]
    spare = {
        replica: _spare(scaled[replica], used.get(replica), scale.ranges[replica.role].low)
        for replica in resting
    }
    total = spec.asked_cores or sum(scaled.values())
    free = max(0.0, (scale.most_cores if scale.most_cores is not None else total) - total)
    there = free + sum(spare.values())
    share = min(1.0, there / sum(wanted_cores.values()))
    given = {replica: _stepped(more * share) for replica, more in wanted_cores.items()}
    moved = sum(given.values())
    factor = min((scaled[replica] + given[replica]) / scaled[replica] for replica in wanted_cores)
    raised = list({by_replica[replica].part: by_replica[replica] for replica in wanted_cores}.values())
    times = raises.times(raised, elasticities, factor)
    if times[0] < LEAST_GAIN:
        return Balance(moves=(), why="too few cores are left to give for it to be worth a change")
    taken = max(0.0, moved - free)
    moves = [
        Move(replica=replica, before=scaled[replica], after=_exact(scaled[replica] - less), why="it rests")
        for replica, less in _taken(spare, taken).items()
        if less >= STEP_CORES
    ]
    moves += [
        Move(replica=replica, before=scaled[replica], after=_exact(scaled[replica] + more), why="it binds")
        for replica, more in given.items()
    ]
    names = ", ".join(str(replica) for replica in wanted_cores)
    return Balance(
        moves=tuple(moves), why=f"{names} {'binds' if len(wanted_cores) == 1 else 'bind'}", times=times
    )


def _by_replica(found: Sequence[Elasticity]) -> dict[ReplicaId, Elasticity]:
    """Return the elasticity to each replica's cores, from the smallest part that contains the replica."""
    known: dict[ReplicaId, Elasticity] = {}
    for each in sorted(found, key=lambda each: -len(each.part.targets)):
        if each.part.knob is Knob.CPU:
            known.update({ReplicaId.parse(name): each for name in each.part.targets})
    return known


def _spare(cores: float, used: float | None, least: float) -> float:
    """Return the cores that a resting replica can give; none if they are less than a step."""
    if used is None:
        return 0.0
    kept = max(least, used * SPARE, cores * (1 - MOST_GIVEN))
    spare = _exact(cores - kept)
    return spare if spare >= STEP_CORES else 0.0


def _taken(spare: Mapping[ReplicaId, float], wanted: float) -> dict[ReplicaId, float]:
    """Return the cores that each replica gives, in proportion to what it can spare."""
    there = sum(spare.values())
    share = min(1.0, wanted / there) if there > 0 else 0.0
    return {each: min(_stepped(less * share, up=True), less) for each, less in spare.items()}


def _stepped(cores: float, *, up: bool = False) -> float:
    steps = cores / STEP_CORES
    whole = math.ceil(steps - _TOLERANCE) if up else int(steps + _TOLERANCE)
    return _exact(whole * STEP_CORES)


def _exact(cores: float) -> float:
    """Return cores without what floating point adds."""
    return round(cores, 6)
