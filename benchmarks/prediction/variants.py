"""The layouts: numbers and sizes of replicas, links, and how variables are cut and placed."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator
from typing import Any

from benchmarks.diagnosis import changes
from benchmarks.diagnosis.bases import PS_HOST, WORKER_HOST, Base
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

BASE = Base(model="wide-deep", size="middle", seed=7, speed=4.0)
#: As TensorFlow does it by itself: every variable whole, one after the other.
_WHOLE = {"partitioning": {"strategy": "none"}, "variable_placement": "round-robin"}
_WORKERS, _SERVERS = (1, 2, 4, 8), (1, 2, 3, 4)
_WORKER_CORES, _SERVER_CORES = (0.1, 0.3), (0.06, 0.15, 0.4)
#: Of all replicas together: the machine has two, and runs more than them.
MOST_CORES = 1.4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A layout.

    Attributes:
        workers, servers: how many.
        worker_cores, server_cores: of each.
        megabits: of the link of each host of a parameter server; None: as wide as it takes.
        whole: whether every variable is whole.
        learnt: whether the model learns from it.
    """

    workers: int
    servers: int
    worker_cores: float
    server_cores: float
    megabits: int | None = None
    whole: bool = False
    learnt: bool = False

    @property
    def name(self) -> str:
        """Return what names it among all."""
        link = "" if self.megabits is None else f", {self.megabits} Mbit/s"
        way = ", whole" if self.whole else ""
        return (
            f"{self.workers} x {self.worker_cores:g} workers, {self.servers} x {self.server_cores:g} PS"
            f"{link}{way}"
        )

    def job(self) -> JobSpec:
        """Return the job."""
        spec = changes.resized(BASE.job(), Role.WORKER, self.workers)
        spec = changes.resized(spec, Role.PS, self.servers)
        spec = changes.role(spec, Role.WORKER, cpu_cores=self.worker_cores, threads=1)
        spec = changes.role(spec, Role.PS, cpu_cores=self.server_cores, threads=1)
        spec = changes.hosts(spec, WORKER_HOST, bandwidth_bits_per_second=10**10)
        wide = 10**10 if self.megabits is None else self.megabits * 10**6
        spec = changes.hosts(spec, PS_HOST, bandwidth_bits_per_second=wide)
        more: dict[str, Any] = _WHOLE if self.whole else {}
        return changes.training(spec, **more)


def grid() -> tuple[Variant, ...]:
    """Return every combination that fits: what a search for the best one chooses from."""
    sizes = itertools.product(_WORKERS, _SERVERS, _WORKER_CORES, _SERVER_CORES, (False, True))
    return tuple(
        Variant(workers=workers, servers=servers, worker_cores=own, server_cores=theirs, whole=whole)
        for workers, servers, own, theirs, whole in sizes
        # One server holds all variables whole in any case.
        if workers * own + servers * theirs <= MOST_CORES and not (whole and servers == 1)
    )


def every() -> tuple[Variant, ...]:
    """Return all variants, those to learn from first."""
    learnt = (
        Variant(workers=1, servers=1, worker_cores=0.3, server_cores=0.4, learnt=True),
        Variant(workers=4, servers=4, worker_cores=0.3, server_cores=0.06, learnt=True),
        Variant(workers=8, servers=2, worker_cores=0.1, server_cores=0.15, whole=True, learnt=True),
    )
    narrow = (
        Variant(workers=workers, servers=servers, worker_cores=0.3, server_cores=0.4, megabits=megabits)
        for workers, servers, megabits in (
            (2, 1, 100),
            (2, 1, 300),
            (2, 2, 100),
            (2, 2, 60),
            (4, 1, 200),
            (1, 2, 50),
        )
    )
    alike = {dataclasses.replace(each, learnt=False) for each in learnt}
    return (*learnt, *(each for each in (*narrow, *grid()) if each not in alike))


def planned(*, rounds: int, most: int | None = None) -> Iterator[tuple[str, Variant]]:
    """Yield the runs in their order, each with a key of its own.

    The machine is not as fast at all times. So what is learnt from is run in several rounds, the first before
    and the last after all others, and the others once, in an order drawn at random.

    Args:
        rounds: of what is learnt from; at least two.
        most: of the others; None: all.
    """
    learnt = [each for each in every() if each.learnt]
    others = [each for each in every() if not each.learnt]
    others = random.Random(0).sample(others, len(others))[:most]
    for number in range(rounds):
        yield from ((f"{each.name} ({number + 1})", each) for each in learnt)
        yield from ((each.name, each) for each in others[number :: rounds - 1] if number < rounds - 1)
