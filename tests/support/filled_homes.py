"""Homes whose store is filled by hand, with runs that never ran."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from paceline.control import states
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import LOCAL, Run
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.model.traces import traced_steps
from paceline.services.local import state_dirs
from paceline.stores import Store, open_store
from paceline.training.tracing import trace_files


def spec_of(name: str, ps: int = 2, workers: int = 2) -> JobSpec:
    """Return a job."""
    roles = (
        RoleSpec(role=Role.PS, replicas=ps, cpu_cores=1, memory_bytes=1 << 30),
        RoleSpec(role=Role.WORKER, replicas=workers, cpu_cores=1, memory_bytes=1 << 30),
    )
    return JobSpec(name=name, command=("python", "train.py"), roles=roles, labels={"team": "ads"})


def fill(
    home: state_dirs.Home,
    name: str,
    *,
    phase: JobPhase = JobPhase.SUCCEEDED,
    submitted_at: float = 1e9,
    spec: JobSpec | None = None,
    message: str = "",
    loads: Sequence[float] = (),
    steps: int = 0,
) -> Run:
    """Keep a run as it would be, without ever running it; ``loads`` are the CPU cores of its PS."""
    spec = spec or spec_of(name)
    run = Run(
        name=name, spec=spec, source="", engine="local", directory=str(home.runs / name),
        submitted_at=submitted_at, notes=("network is not measured: no namespaces",),
    )  # fmt: skip
    state = states.initial(spec)
    final = {JobPhase.SUCCEEDED: ReplicaPhase.SUCCEEDED, JobPhase.FAILED: ReplicaPhase.FAILED}
    replica_phase = final.get(phase, ReplicaPhase.RUNNING)
    replicas = tuple(dataclasses.replace(r, phase=replica_phase, attempt=1) for r in state.replicas)
    with open_store(home.store_url) as store:
        store.create_run(run, state)
        started = dataclasses.replace(state, phase=JobPhase.RUNNING, replicas=replicas)
        store.save_state(name, started, at=submitted_at + 1)
        ps = [
            Sample(
                replica=ReplicaId(Role.PS, index), attempt=1, at=submitted_at + 2 + second,
                interval_seconds=1, cpu_cores=load, cpu_limit_cores=1, throttled_seconds=0.1,
                memory_bytes=1 << 29, memory_limit_bytes=1 << 30, threads=7,
            )
            for index, load in enumerate(loads) for second in range(3)
        ]  # fmt: skip
        store.append_samples(name, ps)
        worker = ReplicaId(Role.WORKER, 0)
        store.append_step_reports(
            name,
            [
                StepReport(
                    replica=worker, attempt=1, at=submitted_at + 2 + second, interval_seconds=1,
                    step=10 * (second + 1), steps=10, examples=5120, loss=0.5, input_wait_seconds=0.25,
                    total_steps=100,
                )
                for second in range(steps)
            ],
        )  # fmt: skip
        if steps:
            store.append_evaluations(
                name, [EvaluationReport(replica=worker, attempt=1, at=submitted_at + 4, step=20, auc=0.75)]
            )
        if phase is not JobPhase.RUNNING:
            outcome = phase if phase.is_final else None
            ended = dataclasses.replace(started, phase=phase, outcome=outcome, message=message)
            store.save_state(name, ended, at=submitted_at + 11)
        return store.get_run(name)


def keep(store: Store, recording: Recording, folder: Path) -> str:
    """Keep what a recording says as a run of this machine, whose files are in a folder; return its name."""
    run = dataclasses.replace(recording.run, engine=LOCAL, directory=str(folder))
    state = states.initial(run.spec)
    attempts = {row.replica: row for row in recording.replicas}
    replicas = tuple(
        dataclasses.replace(each, phase=attempts[each.replica].phase, attempt=attempts[each.replica].attempt)
        for each in state.replicas
    )
    store.create_run(run, dataclasses.replace(state, replicas=replicas))
    store.update_run(
        run.name, phase=run.phase, message=run.message, started_at=run.started_at, finished_at=run.finished_at
    )
    store.append_samples(run.name, recording.samples)
    store.append_step_reports(run.name, recording.steps)
    store.append_evaluations(run.name, recording.evaluations)
    store.append_events(run.name, recording.events)
    if recording.plan is not None:
        counted = {"variables": [dataclasses.asdict(each) for each in recording.plan.variables]}
        (folder / traced_steps.VARIABLES).write_text(json.dumps(counted))
    for trace in recording.traces:
        name = trace_files.name_of(trace.trainer, trace.attempt)
        trace_files.write(trace, folder / traced_steps.FOLDER / traced_steps.name_at(recording.at) / name)
    return run.name
