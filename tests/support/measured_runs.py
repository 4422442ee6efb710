"""Runs with measurements, made up so that every number of theirs can be worked out by hand."""

from __future__ import annotations

import random
from typing import Any

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId, Role

START = 1_700_000_000.0
COMPLETED = ExitReason(kind=ExitKind.COMPLETED, code=0)
GIB = 1024**3


def replica(role: Role, index: int) -> ReplicaId:
    """Return the id of a replica."""
    return ReplicaId(role, index)


def run(
    *, name: str = "clicks", ps: int = 2, workers: int = 2, phase: JobPhase = JobPhase.SUCCEEDED, **facts: Any
) -> Run:
    """Return a run that started at ``START``; it ended 100 seconds later when its phase is final."""
    roles = (RoleSpec(role=Role.PS, replicas=ps), RoleSpec(role=Role.WORKER, replicas=workers))
    given: dict[str, Any] = {
        "name": name,
        "spec": JobSpec(name=name, roles=roles, command=("python", "train.py")),
        "source": "kind: TrainingJob\n",
        "engine": "local",
        "directory": "/nowhere/runs/clicks",
        "submitted_at": START - 1,
        "phase": phase,
        "started_at": START,
        "finished_at": START + 100 if phase.is_final else None,
        **facts,
    }
    return Run(**given)


def sample(of: ReplicaId, second: float, **values: Any) -> Sample:
    """Return a sample of the second that ends so many seconds after the start."""
    return Sample(replica=of, attempt=1, at=START + second, **{"interval_seconds": 1.0, **values})


def report(of: ReplicaId, second: float, **values: Any) -> StepReport:
    """Return a step report of the second that ends so many seconds after the start."""
    return StepReport(replica=of, attempt=1, at=START + second, **{"interval_seconds": 1.0, **values})


def recording(
    *,
    ps: int = 2,
    workers: int = 2,
    seconds: int = 60,
    skew: float = 1.0,
    auc: float | None = 0.78,
    network: bool = True,
    **facts: Any,
) -> Recording:
    """Return a whole run that looks real: some noise, start-up, training, an evaluation.

    Args:
        ps: how many.
        workers: how many.
        seconds: of training, after 10 seconds of start-up.
        skew: how many times the load of the others the first PS has.
        auc: of its evaluation; None for none.
        network: whether network was measured.
        facts: of the run.
    """
    made = run(ps=ps, workers=workers, **{"finished_at": START + seconds + 20, **facts})
    chance = random.Random(1)
    ids = made.spec.replicas()
    rows, samples, steps, events = [], [], [], []
    for of in ids:
        rows.append(
            ReplicaRow(
                replica=of, phase=ReplicaPhase.SUCCEEDED, attempt=1, restarts=0, exit=COMPLETED,
                host=f"host-{of.index % 2}",
            )
        )  # fmt: skip
        load = (skew if of.index == 0 else 1.0) * 0.4 if of.role is Role.PS else 0.9
        for second in range(1, seconds + 20):
            busy = 10 < second <= seconds + 10
            noise = chance.uniform(0.9, 1.1)
            samples.append(
                sample(
                    of, second,
                    cpu_cores=(load if busy else 0.2) * noise, cpu_limit_cores=1.0,
                    throttled_seconds=0.02 * noise if busy else 0.0,
                    memory_bytes=int(min(1.0, 0.3 + second / 60) * 0.8 * GIB), memory_limit_bytes=2 * GIB,
                    network_received_bytes=int(busy * load * 5e7 * noise) if network else None,
                    network_sent_bytes=int(busy * load * 6e7 * noise) if network else None,
                    voluntary_switches=int(3000 * noise), involuntary_switches=200, threads=30,
                )
            )  # fmt: skip
            if busy and of.role is Role.WORKER:
                steps.append(
                    report(
                        of, second, step=40 * (second - 10) * workers, steps=40, examples=20_480,
                        loss=0.45 + 0.2 / (second - 9) * noise, input_wait_seconds=0.03 * noise,
                        total_steps=40 * seconds * workers,
                    )
                )  # fmt: skip
        events.append(JobEvent(at=START + 1, kind="started", message="", replica=of, attempt=1))
        ended = JobEvent(at=START + seconds + 19, kind="replica-exited", message="", replica=of, attempt=1)
        events.append(ended)
    evaluations = []
    if auc is not None:
        chief = replica(Role.WORKER, 0)
        at = START + seconds + 15
        evaluations = [EvaluationReport(replica=chief, attempt=1, at=at, step=4800, auc=auc, log_loss=0.48)]
    return Recording(
        run=made,
        at=START + seconds + 140,
        replicas=rows,
        samples=sorted(samples, key=lambda s: s.at),
        steps=sorted(steps, key=lambda s: s.at),
        evaluations=evaluations,
        events=sorted(events, key=lambda e: e.at),
    )
