"""Which parts of a job can be cut while it runs, and to what each is set for it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures.probes import CutPart
from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId, Role

#: With fewer cores a replica may answer too late for the replicas that wait for it.
LEAST_CORES = 0.05
#: By how much the share of a replica is raised where others want the same cores.
WEIGHT_TIMES = 8.0
#: Of the cores of a machine so much is used where replicas wait for each other's.
CROWDED = 0.85
#: Trainers do not wait for each other.
_ASYNCHRONOUS = "asynchronous"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ObservedReplica:
    """What is known of a replica before a probe.

    Attributes:
        cores: what it may take: its limit, or else the cores and the threads that it has; None: that is not
            known, so it cannot be cut.
        used_cores: what it takes; None: not measured.
        host: its emulated host; None: it has none.
    """

    replica: ReplicaId
    cores: float | None
    used_cores: float | None = None
    host: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProbedJob:
    """A job as a probe finds it.

    Attributes:
        replicas: those that live.
        machine_cores: that all replicas share; None: they do not share a machine.
        links: the bits a second of each emulated host whose link is shaped.
        may_pause: whether a worker may stand still for some seconds.
    """

    replicas: Sequence[ObservedReplica]
    machine_cores: float | None = None
    links: Mapping[str, int] = dataclasses.field(default_factory=dict)
    may_pause: bool = False

    def seen(self, name: str) -> ObservedReplica:
        """Return what is known of a replica by its name."""
        return next(each for each in self.replicas if str(each.replica) == name)


def may_pause(spec: JobSpec) -> bool:
    """Whether a worker of a job may stand still for some seconds: the others do not wait for it."""
    consistency = (spec.training or {}).get("consistency") or {}
    return str(consistency.get("mode", _ASYNCHRONOUS)) == _ASYNCHRONOUS


def last_seen(samples: Sequence[Sample]) -> tuple[float | None, float | None]:
    """Return the limit and the use of a replica, in cores, by its latest samples."""
    limit = next((each.cpu_limit_cores for each in reversed(samples) if each.cpu_limit_cores), None)
    used = [each.cpu_cores for each in samples if each.cpu_cores is not None]
    return limit, sum(used) / len(used) if used else None


def parts(scene: ProbedJob) -> tuple[tuple[CutPart, ...], tuple[CutPart, ...]]:
    """Return what can be cut: what is alike together, and of it what is not cut apart.

    Trainers that do not wait for each other are not: each brings its own share of the examples, and what
    cores bring is the same for all of them.
    """
    servers = _alike([each for each in scene.replicas if each.replica.role is Role.PS])
    trainers = _alike([each for each in scene.replicas if each.replica.role.trains])
    whole = [*trainers] if scene.may_pause else []
    found = [*servers, *trainers]
    if scene.links:
        found.append(CutPart(Knob.LINK, tuple(sorted(scene.links))))
    if _is_crowded(scene):
        shared = [CutPart(Knob.WEIGHT, part.targets) for part in (*servers, *trainers)]
        found += shared
        whole += shared
    workers = [each.replica for each in scene.replicas if each.replica.role is Role.WORKER]
    if scene.may_pause and len(workers) > 1:
        # One is enough to know what one less costs; the first may save, so it goes on.
        found.append(CutPart(Knob.PAUSE, (str(workers[-1]),)))
    return tuple(found), tuple(whole)


def _alike(replicas: Sequence[ObservedReplica]) -> list[CutPart]:
    """Return the cores of replicas, those of as many together."""
    found: dict[float, list[str]] = {}
    for each in replicas:
        if each.cores is not None and each.cores > LEAST_CORES:
            found.setdefault(each.cores, []).append(str(each.replica))
    return [CutPart(Knob.CPU, tuple(names)) for names in found.values()]


def _is_crowded(scene: ProbedJob) -> bool:
    used = sum(each.used_cores or 0.0 for each in scene.replicas)
    return scene.machine_cores is not None and used >= CROWDED * scene.machine_cores


def use(scene: ProbedJob, part: CutPart) -> float:
    """Return how much of their cores the replicas of a part use, at most; 1: that is not known."""
    if part.knob is not Knob.CPU:
        return 1.0
    found = [scene.seen(name) for name in part.targets]
    return max(
        1.0 if each.used_cores is None or not each.cores else each.used_cores / each.cores for each in found
    )


def factor_of(scene: ProbedJob, part: CutPart, factor: float) -> float:
    """Return to what share of it a part is set when others are cut to a factor."""
    match part.knob:
        case Knob.WEIGHT:
            return WEIGHT_TIMES
        case Knob.PAUSE:
            trainers = sum(each.replica.role.trains for each in scene.replicas)
            return (trainers - len(part.targets)) / trainers
    return factor


def adjustments(scene: ProbedJob, part: CutPart, factor: float, *, until: float) -> tuple[Adjustment, ...]:
    """Return what sets a part to a share of what it has until a moment (Unix seconds)."""
    return tuple(
        Adjustment(knob=part.knob, target=name, value=_value(scene, part.knob, name, factor), until=until)
        for name in part.targets
    )


def _value(scene: ProbedJob, knob: Knob, name: str, factor: float) -> float:
    match knob:
        case Knob.LINK:
            return math.floor(scene.links[name] * factor)
        case Knob.WEIGHT:
            return factor
        case Knob.PAUSE:
            return 1
    cores = scene.seen(name).cores
    assert cores is not None, "what cannot be cut is no part"
    return max(LEAST_CORES, cores * factor)
