"""The parts of a job that can be cut while it runs, and the adjustments that cut them."""

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
#: The factor by which the weight of replicas is raised on a crowded machine.
WEIGHT_TIMES = 8.0
#: A machine is crowded, so that replicas wait for cores, if at least this share of its cores is used.
CROWDED = 0.85
#: The consistency mode in which trainers do not wait for each other.
_ASYNCHRONOUS = "asynchronous"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ObservedReplica:
    """A replica as it is before a probe.

    Attributes:
        cores: the cores that it can use: its limit, or else what its cores and threads allow; None: not
            known, so its cores cannot be cut.
        used_cores: the cores that it uses; None: not measured.
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
        replicas: the live replicas.
        machine_cores: the cores of the machine that all replicas share; None: they do not share a machine.
        links: the bits a second of each emulated host whose link is shaped.
        may_pause: whether a worker may be paused for some seconds.
    """

    replicas: Sequence[ObservedReplica]
    machine_cores: float | None = None
    links: Mapping[str, int] = dataclasses.field(default_factory=dict)
    may_pause: bool = False

    def seen(self, name: str) -> ObservedReplica:
        """Return a replica by its name."""
        return next(each for each in self.replicas if str(each.replica) == name)


def may_pause(spec: JobSpec) -> bool:
    """Whether a worker of a job may be paused for some seconds: the others do not wait for it."""
    consistency = (spec.training or {}).get("consistency") or {}
    return str(consistency.get("mode", _ASYNCHRONOUS)) == _ASYNCHRONOUS


def last_seen(samples: Sequence[Sample]) -> tuple[float | None, float | None]:
    """Return the latest limit and the mean use of a replica, in cores, from its latest samples."""
    limit = next((each.cpu_limit_cores for each in reversed(samples) if each.cpu_limit_cores), None)
    used = [each.cpu_cores for each in samples if each.cpu_cores is not None]
    return limit, sum(used) / len(used) if used else None


def parts(scene: ProbedJob) -> tuple[tuple[CutPart, ...], tuple[CutPart, ...]]:
    """Return the parts that can be cut, like targets together, and those of these parts that are not divided.

    Trainers that do not wait for each other are not divided: each brings its own share of the examples, and
    cores bring the same for all of them.
    """
    servers = _alike([observed for observed in scene.replicas if observed.replica.role is Role.PS])
    trainers = _alike([observed for observed in scene.replicas if observed.replica.role.trains])
    whole = [*trainers] if scene.may_pause else []
    cut_parts = [*servers, *trainers]
    if scene.links:
        cut_parts.append(CutPart(Knob.LINK, tuple(sorted(scene.links))))
    if _is_crowded(scene):
        shared = [CutPart(Knob.WEIGHT, part.targets) for part in (*servers, *trainers)]
        cut_parts += shared
        whole += shared
    workers = [observed.replica for observed in scene.replicas if observed.replica.role is Role.WORKER]
    if scene.may_pause and len(workers) > 1:
        # Pausing one worker shows what one less costs. The first worker may save, so it is not paused.
        cut_parts.append(CutPart(Knob.PAUSE, (str(workers[-1]),)))
    return tuple(cut_parts), tuple(whole)


def _alike(replicas: Sequence[ObservedReplica]) -> list[CutPart]:
    """Return the cores of replicas as parts; replicas with equally many cores are one part."""
    found: dict[float, list[str]] = {}
    for each in replicas:
        if each.cores is not None and each.cores > LEAST_CORES:
            found.setdefault(each.cores, []).append(str(each.replica))
    return [CutPart(Knob.CPU, tuple(names)) for names in found.values()]


def _is_crowded(scene: ProbedJob) -> bool:
    used = sum(each.used_cores or 0.0 for each in scene.replicas)
    return scene.machine_cores is not None and used >= CROWDED * scene.machine_cores


def use(scene: ProbedJob, part: CutPart) -> float:
    """Return the largest share of its cores that a replica of a part uses; 1 if that is not known."""
    if part.knob is not Knob.CPU:
        return 1.0
    found = [scene.seen(name) for name in part.targets]
    return max(
        1.0 if each.used_cores is None or not each.cores else each.used_cores / each.cores for each in found
    )


def factor_of(scene: ProbedJob, part: CutPart, factor: float) -> float:
    """Return the factor on a part if cores and links are cut to ``factor``; it depends on the knob."""
    match part.knob:
        case Knob.WEIGHT:
            return WEIGHT_TIMES
        case Knob.PAUSE:
            trainers = sum(each.replica.role.trains for each in scene.replicas)
            return (trainers - len(part.targets)) / trainers
    return factor


def adjustments(scene: ProbedJob, part: CutPart, factor: float, *, until: float) -> tuple[Adjustment, ...]:
    """Return the adjustments that set a part to a share of its resources until a moment (Unix seconds)."""
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
