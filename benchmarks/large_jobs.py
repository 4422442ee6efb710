"""A large job as a store would have it: 220 replicas with a sample a second, as noisy as real ones."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable

from paceline.control import states
from paceline.control.states import JobState
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.services.local import state_dirs
from paceline.stores import Store

NAME = "large"
SERVERS, WORKERS = 20, 200
#: From when it was submitted until it runs.
WAITED_SECONDS = 10.0
SPEC = JobSpec(
    name=NAME,
    roles=(
        RoleSpec(role=Role.PS, replicas=SERVERS, cpu_cores=4.0, memory_bytes=16 << 30),
        RoleSpec(role=Role.WORKER, replicas=WORKERS, cpu_cores=2.0, memory_bytes=8 << 30),
    ),
    command=("train",),
)


def begin(store: Store, home: state_dirs.Home, *, at: float) -> JobState:
    """Let a store know the job, which runs since a moment (Unix seconds); return its state."""
    made = Run(
        name=NAME, spec=SPEC, source="", engine="local", directory=str(home.runs / NAME),
        submitted_at=at - WAITED_SECONDS,
    )  # fmt: skip
    state = states.initial(SPEC)
    replicas = tuple(
        dataclasses.replace(row, phase=ReplicaPhase.RUNNING, attempt=1) for row in state.replicas
    )
    running = dataclasses.replace(state, phase=JobPhase.RUNNING, replicas=replicas)
    store.create_run(made, state)
    store.save_state(NAME, running, at=at)
    return running


def samples(moments: Iterable[float], chance: random.Random) -> list[Sample]:
    """Return a sample of each replica at each moment (Unix seconds), every digit of it random."""
    known = list(moments)
    return [_sample(each, at + chance.uniform(0, 0.01), chance) for each in SPEC.replicas() for at in known]


def _sample(of: ReplicaId, at: float, chance: random.Random) -> Sample:
    server = of.role is Role.PS
    load = (3.9 if of.index == 0 else 0.4) if server else 0.9
    moved = 2e8 * load if server else 2e7

    def noisy(mean: float) -> float:
        return mean * chance.gauss(1.0, 0.1)

    return Sample(
        replica=of, attempt=1, at=at, interval_seconds=1.0 + chance.uniform(-0.005, 0.005),
        cpu_cores=min(4.0, abs(noisy(load))), cpu_limit_cores=4.0 if server else 2.0,
        throttled_seconds=abs(noisy(0.3)) if load > 3 else 0.0,
        memory_bytes=int(noisy(3e9)), memory_limit_bytes=16 << 30 if server else 8 << 30,
        network_received_bytes=int(abs(noisy(moved))), network_sent_bytes=int(abs(noisy(moved))),
        voluntary_switches=int(abs(noisy(9000))), involuntary_switches=int(abs(noisy(300))), threads=40,
        neighbours_cpu_cores=abs(noisy(0.2)), stolen_cpu_cores=abs(chance.gauss(0.0, 0.02)),
        run_delay_seconds=abs(noisy(0.1)), allowed_cpus=64,
        sent_segments=int(abs(noisy(moved / 8000))), retransmitted_segments=int(abs(chance.gauss(0.0, 3.0))),
    )  # fmt: skip


def reports(seconds: Iterable[int], *, start: float, total: int, chance: random.Random) -> list[StepReport]:
    """Return a report of each worker for each of some seconds after the start (Unix seconds)."""
    known = list(seconds)
    return [
        StepReport(
            replica=ReplicaId(Role.WORKER, index), attempt=1, at=start + second, interval_seconds=1.0,
            step=second * 800, steps=4, examples=2048, loss=0.45 * chance.gauss(1, 0.05),
            input_wait_seconds=abs(chance.gauss(0.02, 0.01)), total_steps=total * 800,
        )
        for index in range(WORKERS)
        for second in known
    ]  # fmt: skip
