"""How many cuts and how long a probe of 6, 22 and 220 replicas takes, and whether it names what binds.

No machine here runs 220 replicas, so the decisions of a probe are tried against the performance model in the
place of a job: each cut is one of its layout, each rate has noise. What binds is known by construction. The
parts, their order, how deep a cut is and when the probe ends are those of a real one; the time is that of its
windows. Both engines see which replicas a cut holds back; that is left out in half of the probes.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import plots
from benchmarks.protocols import Bench, Check, Result, Row, at_most, reported
from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import Cut, CutPart, Elasticity, PartVerdict
from paceline.model.roles import ReplicaId, Role
from paceline.modelling import elasticities, predictions
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers
from paceline.modelling.predictions import Speed
from paceline.probing import estimates, plans
from paceline.probing.plans import Scope
from paceline.services.studying.probes import ProbeTimes

#: Parameter servers and workers of each job, and how long a probe of it may take.
SIZES: Mapping[str, tuple[int, int, float]] = {
    "6 replicas": (2, 4, 120.0),
    "22 replicas": (4, 18, 600.0),
    "220 replicas": (20, 200, 600.0),
}
CAUSES = ("one server", "all servers", "workers", "nothing")
#: Standard deviations of the logarithm of a rate: of a quiet machine, and of a busy one.
NOISES = (0.01, 0.03)
NAMED = 0.95
#: Of what the job does in that time a probe may cost.
MOST_SHARE = 0.05
_SEEDS, _QUICK_SEEDS = 20, 2
#: A replica that uses so much of its cores is held back by its quota now and then.
_HELD = 0.8
_BASELINES = 10
_COSTS = Costs(
    trainer_seconds=0.01, trainer_visit_seconds=4e-4, server_visit_seconds=2e-4, server_byte_seconds=1e-9,
    server_row_seconds=1e-7, own_seconds=0.03, trainer_background_cores=0.01, server_background_cores=0.01,
)  # fmt: skip
#: Cores of a worker: enough, and too few; those of a server that is never short.
_ENOUGH, _FEW, _MANY = 2.0, 0.1, 8.0
#: Of what the busiest server would use with enough cores, each has that, where they bind and where not.
_SHORT, _PLENTY = 0.4, 3.0
#: Bytes that a step moves to and from a server, and how many times as many of one that is hot.
_BYTES, _HOT = 4e5, 10


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A job, and what binds in it.

    Attributes:
        binding: the replicas whose cores bind.
    """

    layout: ModelLayout
    binding: frozenset[str]


def scene(size: str, cause: str, seed: int) -> Scene:
    """Return a job of a size in which one thing binds, or nothing that can be cut.

    All of its servers have the same cores: one that binds has more to do.
    """
    servers, workers, _ = SIZES[size]
    hot = random.Random(seed).randrange(servers)
    moved = [_HOT * _BYTES if cause == "one server" and index == hot else _BYTES for index in range(servers)]
    if cause == "workers":
        names = frozenset(str(ReplicaId(Role.WORKER, index)) for index in range(workers))
        return Scene(layout=_layout(moved, _MANY, workers, _FEW), binding=names)
    used = max(predictions.speed(_layout(moved, _MANY, workers, _ENOUGH), _COSTS).server_cores)
    short = {"one server": [hot], "all servers": list(range(servers))}.get(cause, [])
    cores = used * (_SHORT if short else _PLENTY)
    names = frozenset(str(ReplicaId(Role.PS, index)) for index in short)
    return Scene(layout=_layout(moved, cores, workers, _ENOUGH), binding=names)


def _layout(moved: Sequence[float], server_cores: float, workers: int, worker_cores: float) -> ModelLayout:
    replicas = tuple(ReplicaId(Role.WORKER, index) for index in range(workers))
    return ModelLayout(
        servers=tuple(ParameterServer(cores=server_cores, host=None, step_bytes=each) for each in moved),
        trainers=(Trainers(replicas=replicas, cores=worker_cores, host=None),),
        hosts=(),
        machine_cores=None,
        batch_size=512,
    )


class Job:
    """A job that is the performance model, with noise.

    Args:
        layout: of the job.
        noise: see `NOISES`.
        seed: of the noise.
    """

    def __init__(self, layout: ModelLayout, *, noise: float, seed: int) -> None:
        self.layout, self._noise, self._random = layout, noise, random.Random(seed)

    def rate(self, speed: Speed) -> float:
        """Return what is measured of a speed."""
        return speed.steps_per_second * math.exp(self._random.gauss(0.0, self._noise))

    @functools.lru_cache(maxsize=1024)  # noqa: B019 - a job is thrown away with what it remembers
    def speed(self, part: CutPart | None = None, factor: float = 1.0) -> Speed:
        """Return how fast it is, with a part of it cut."""
        cut = self.layout if part is None else elasticities.cut(self.layout, part, factor)
        return predictions.speed(cut or self.layout, _COSTS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What came of a probe.

    Attributes:
        found: what is known in the end.
        lost_share: of the examples of the time that it may take.
    """

    found: Sequence[Elasticity]
    cuts: int
    seconds: float
    lost_share: float


def _use(speed: Speed, part: CutPart) -> float:
    """Return how much of their cores the replicas of a part use, at most."""
    return max(_used(speed, each) for each in part.targets)


def _used(speed: Speed, replica: str) -> float:
    """Return how much of its cores a replica uses; workers are all alike."""
    name = "cores of trainers" if replica.startswith(Role.WORKER) else f"cores of {replica}"
    return speed.uses.get(name, 0.0)


def _held(speed: Speed, part: CutPart) -> tuple[str, ...]:
    """Return the replicas of a part that their quota holds back."""
    return tuple(each for each in part.targets if _used(speed, each) >= _HELD)


def probed(job: Job, *, seen: bool, seed: int, most_seconds: float) -> Probed:
    """Probe a job.

    Args:
        job: the job.
        seen: whether it is measured who is held back.
        seed: of the order of cuts.
        most_seconds: the probe ends after.
    """
    order, times = random.Random(seed), ProbeTimes(most=most_seconds)
    servers = tuple(str(ReplicaId(Role.PS, index)) for index in range(len(job.layout.servers)))
    workers = tuple(str(each) for alike in job.layout.trainers for each in alike.replicas)
    trainers = CutPart(Knob.CPU, workers)
    scope = Scope(
        parts=(CutPart(Knob.CPU, servers), trainers),
        whole=(trainers,),
        shuffled=lambda parts: order.sample(list(parts), len(parts)),
    )
    base = job.speed()
    baselines, cuts = [job.rate(base) for _ in range(_BASELINES)], list[Cut]()
    each_seconds = times.cut + times.settle + times.window + times.known
    seconds, lost = times.window, 0.0

    def affords(part: CutPart) -> bool:
        factor = plans.factor(*estimates.noise(cuts, baselines))
        cost = plans.expected_cost(part, factor, cuts, _use(base, part)) * times.cut
        return lost + cost <= MOST_SHARE * statistics.median(baselines) * most_seconds

    while seconds + each_seconds <= most_seconds:
        wanted = plans.following(scope, estimates.known(cuts, baselines))
        part = next(filter(affords, wanted), None)
        if part is None:
            break
        factor = plans.factor(*estimates.noise(cuts, baselines))
        speed = job.speed(part, factor)
        before, rate, after = job.rate(base), job.rate(speed), job.rate(base)
        cuts.append(
            Cut(
                part=part, factor=factor, since=0.0, until=times.cut, rate=rate, before=before, after=after,
                felt=_held(speed, part) if seen else None,
                at_limit=_held(base, part) if seen else None,
            )
        )  # fmt: skip
        baselines += [before, after]
        seconds += each_seconds
        lost += max(0.0, cuts[-1].base - rate) * times.cut
    return Probed(
        found=list(plans.ends(scope, estimates.known(cuts, baselines))),
        cuts=len(cuts), seconds=seconds, lost_share=lost / (statistics.median(baselines) * most_seconds),
    )  # fmt: skip


def run(bench: Bench) -> list[Check]:
    """Probe jobs of all sizes."""
    seeds = _QUICK_SEEDS if bench.quick else _SEEDS
    bench.plan(len(SIZES) * len(CAUSES))
    for size, cause in itertools.product(SIZES, CAUSES):
        bench.repeat(f"{size}, {cause}", functools.partial(_row, size, cause, seeds))
    return list(_checks(bench.rows))


def _row(size: str, cause: str, seeds: int) -> Row:
    found = [
        _probe(size, cause, seed, noise=noise, seen=seen)
        for seed, noise, seen in itertools.product(range(seeds), NOISES, (True, False))
    ]
    return {"size": size, "cause": cause, "probes": found}


def _probe(size: str, cause: str, seed: int, *, noise: float, seen: bool) -> dict[str, object]:
    it = scene(size, cause, seed)
    job = Job(it.layout, noise=noise, seed=seed)
    came = probed(job, seen=seen, seed=seed, most_seconds=SIZES[size][2])
    binds = {name for each in came.found if each.verdict is PartVerdict.BINDS for name in each.part.targets}
    return {
        "noise": noise, "seen": seen, "named": binds == it.binding, "cuts": came.cuts,
        "seconds": came.seconds, "lost_share": came.lost_share,
    }  # fmt: skip


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    for size, (_, _, most) in SIZES.items():
        own = [each for row in rows if row["size"] == size for each in row["probes"]]
        for seen in (True, False):
            some = [each for each in own if each["seen"] is seen]
            named = sum(each["named"] for each in some) / len(some)
            how = "it is seen who is held back" if seen else "it is not seen"
            yield Check(
                name=f"{size}: named right, {how}", value=named, low=None, high=None,
                target=f">= {NAMED:g}", holds=named >= NAMED,
            )  # fmt: skip
        yield at_most(f"{size}: seconds of a probe", [each["seconds"] for each in own], most)
        yield reported(f"{size}: cuts", [each["cuts"] for each in own])
        yield reported(f"{size}: share of the examples lost", [each["lost_share"] for each in own])


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what came of each kind of job."""
    yield "| job | what binds | noise | seen | named right | cuts | seconds |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        for noise, seen in itertools.product(NOISES, (True, False)):
            own = [each for each in row["probes"] if each["noise"] == noise and each["seen"] is seen]
            cuts, seconds = (sum(each[name] for each in own) / len(own) for name in ("cuts", "seconds"))
            right = sum(each["named"] for each in own)
            yield (
                f"| {row['size']} | {row['cause']} | {noise:.0%} | {'yes' if seen else 'no'} "
                f"| {right} of {len(own)} | {cuts:.1f} | {seconds:.0f} |"
            )


def draw(result: Result, path: Path) -> None:
    """Draw how long probes take."""
    groups = {
        f"{row['size']}, {row['cause']}": [each["seconds"] for each in row["probes"]] for row in result.rows
    }
    plots.strips(path, groups, label="seconds of a probe", title="Probes of 6, 22 and 220 replicas")
