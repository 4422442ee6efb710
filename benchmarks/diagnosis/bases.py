"""The healthy jobs of the corpus: what every fault is done to, and what its effect is measured against.

Each replica has an emulated host of its own, so its network is measured. Cores and bandwidths are such that
nothing is near its limit: parameter servers and workers have some work, links are half full at most.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.diagnosis import models
from benchmarks.protocols import ROOT
from paceline.examples.clicks import generate
from paceline.model.jobs.job_specs import Host, JobSpec, RestartPolicy, RestartWhen, RoleSpec
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement
from paceline.model.roles import Role

SCRIPT = "benchmarks.diagnosis.train"
PS_HOST, WORKER_HOST = "ps-host", "worker-host"
#: The last checkpoint of a job that is stopped is not needed.
GRACE_SECONDS = 1.0
_OPTIMIZERS = {
    "optimizer": {"name": "adagrad", "learning_rate": 0.05},
    "wide_optimizer": {"name": "ftrl", "learning_rate": 0.1},
}
_NEVER = RestartPolicy(when=RestartWhen.NEVER)
_LARGE_TABLES = (900_000, 400, 200, 100, 60, 40, 20, 10)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a healthy job is made up; cores are those of each replica, or of each host.

    Attributes:
        cores_of_hosts: the hosts are limited, not the replicas.
        together: all of a role are on one host, with the cores and links of all.
        links: bandwidth of a worker's host over that of its size.
        server_links: the same of a parameter server's host.
        training: more of the training block.
        data: more of the data's parameters.
        arguments: more of the script's.
    """

    servers: int = 2
    workers: int = 2
    server_cores: float | None = 0.5
    worker_cores: float | None = 0.75
    cores_of_hosts: bool = False
    together: bool = False
    links: float = 1.0
    server_links: float = 1.0
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    arguments: tuple[str, ...] = ()


PLAIN, FOUR, TRIO, WHOLE, FREE = "plain", "four", "trio", "whole", "free"
EVALUATED, BURSTS, SLOTS, PAIR = "evaluated", "bursts", "slots", "pair"
KINDS: Mapping[str, Kind] = {
    PLAIN: Kind(),
    # So many parameter servers that one of them can be hot.
    FOUR: Kind(
        servers=4,
        server_cores=0.3,
        links=2.0,
        server_links=0.7,
        training={"embedding_dimension": 48, "batch_size": 768, "hidden_units": [32]},
    ),
    # So many workers that one of them can be behind the others.
    TRIO: Kind(
        workers=3,
        server_cores=0.5,
        worker_cores=0.55,
        cores_of_hosts=True,
    ),
    WHOLE: Kind(server_cores=1.0, worker_cores=1.0),
    FREE: Kind(server_cores=None, worker_cores=None),
    # An evaluator finds checkpoints, and beside the workers there are cores for it.
    EVALUATED: Kind(
        server_cores=0.5,
        worker_cores=0.6,
        cores_of_hosts=True,
        together=True,
        training={"checkpoint": {"every_seconds": 2, "keep": 2}},
    ),
    # A burst of two cores in each step, and then a wait for something else.
    BURSTS: Kind(
        workers=1,
        worker_cores=2.0,
        links=2.0,
        server_links=2.0,
        training={"batch_size": 4096, "hidden_units": [512, 256]},
        arguments=("--pause", "0.5"),
    ),
    # A table that takes most of the memory.
    SLOTS: Kind(
        links=2.0,
        server_links=2.0,
        data={"tables": _LARGE_TABLES},
        training={"embedding_dimension": 96, "batch_size": 128},
    ),
    # More work on the parameter servers: a table for each feature, whose ids they sort out themselves.
    PAIR: Kind(
        workers=3,
        server_cores=0.6,
        worker_cores=0.5,
        links=4.0,
        server_links=8.0,
        training={
            "optimizer": {"name": "lazy-adam", "learning_rate": 0.001},
            "wide_optimizer": {"name": "lazy-adam", "learning_rate": 0.001},
            "fused_tables": False,
            "hidden_units": [16],
        },
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A healthy job: a kind of it for a model of a size, on data and first values of a seed.

    Attributes:
        speed: how many times as fast the machine is as the machine that sizes were made for: links are so
            many times as wide, and jobs that end by themselves have so many times as many steps.
    """

    model: str
    size: str
    seed: int
    kind: str = PLAIN
    speed: float = 1.0

    @property
    def name(self) -> str:
        """Return what names it among all."""
        return f"{self.model}-{self.size}-{self.kind}-{self.seed}"

    def of_kind(self, kind: str) -> Base:
        """Return the job of another kind for the same model, size and seed."""
        return dataclasses.replace(self, kind=kind)

    def folder(self) -> Path:
        """Return the folder of its data."""
        return models.folder(self.size, self.seed, self.kind if KINDS[self.kind].data else "")

    def make_data(self) -> None:
        """Make its data if they are not there."""
        generate.generate(self.folder(), models.parameters(self.size, self.seed, **KINDS[self.kind].data))

    def bandwidth(self, role: Role) -> int:
        """Return the bits a second of each host of a role."""
        kind = KINDS[self.kind]
        factor = kind.server_links if role is Role.PS else kind.links
        return round(models.SIZES[self.size].bandwidth * factor * self.speed)

    def job(self) -> JobSpec:
        """Return the job."""
        kind = KINDS[self.kind]
        return JobSpec(
            name=self.name,
            command=(
                sys.executable, "-m", SCRIPT, "--model", self.model, "--data", str(self.folder()),
                *kind.arguments,
            ),
            working_dir=str(ROOT),
            roles=(
                self._role(Role.PS, kind.servers, kind.server_cores),
                self._role(Role.WORKER, kind.workers, kind.worker_cores),
            ),
            placement=PodPlacement(
                strategy=PlacementStrategy.ISOLATE if kind.together else PlacementStrategy.ANY
            ),
            hosts=self._hosts(),
            termination_grace_seconds=GRACE_SECONDS,
            training={
                **_OPTIMIZERS,
                **models.SIZES[self.size].training,
                "epochs": 10_000,
                "checkpoint": {"every_seconds": 10_000},
                # Traces are asked for.
                "trace": {"every_seconds": 0},
                "seed": self.seed,
                **kind.training,
            },
        )  # fmt: skip

    def _role(self, role: Role, replicas: int, cores: float | None) -> RoleSpec:
        # Where the host is limited, threads would be as many as cores while it is not yet.
        own, threads = (None, 1) if KINDS[self.kind].cores_of_hosts else (cores, None)
        return RoleSpec(role=role, replicas=replicas, cpu_cores=own, threads=threads, restart=_NEVER)

    def _hosts(self) -> tuple[Host, ...]:
        kind = KINDS[self.kind]
        found = []
        for role, name, count, cores in (
            (Role.PS, PS_HOST, kind.servers, kind.server_cores),
            (Role.WORKER, WORKER_HOST, kind.workers, kind.worker_cores),
        ):
            bandwidth = self.bandwidth(role)
            limit = cores if kind.cores_of_hosts else None
            if kind.together:
                total = None if limit is None else limit * count
                found.append(Host(name=name, cpu_cores=total, bandwidth_bits_per_second=bandwidth * count))
                continue
            found += [
                Host(name=f"{name}-{number}", cpu_cores=limit, bandwidth_bits_per_second=bandwidth)
                for number in range(count)
            ]
        return tuple(found)

    def bytes_per_example(self) -> float:
        """Return the bytes of its data's files for each example."""
        folder = self.folder()
        total = sum(path.stat().st_size for path in folder.glob("train-*"))
        return total / models.parameters(self.size, self.seed).train_rows
