"""Cases for rules of diagnosis: jobs of which every second is like the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Rule
from paceline.model.explanations.causes import Cause
from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import FACT, JobEvent, ReplicaRow, Run
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures import script_facts
from paceline.model.measures.probes import CutPart, Elasticity, Probe, RateUnit
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.model.traces.traced_steps import Direction, Operation, Split, Trace, Transfer

START = 1_700_000_000.0
#: What a healthy server and a healthy trainer look like.
SERVER = {"cpu_cores": 0.2, "cpu_limit_cores": 1.0}
TRAINER = {"cpu_cores": 0.6, "cpu_limit_cores": 1.0}
STEPS = {"steps": 40, "examples": 20_480, "input_wait_seconds": 0.02, "loss": 0.45}


def recording(
    loads: Mapping[str, Mapping[str, Any]],
    *,
    steps: Mapping[str, Mapping[str, Any]] | None = None,
    rows: Mapping[str, Mapping[str, Any]] | None = None,
    roles: Mapping[str, Mapping[str, Any]] | None = None,
    trained: Mapping[str, tuple[int, int]] | None = None,
    spec: Mapping[str, Any] | None = None,
    seconds: int = 30,
    phase: JobPhase = JobPhase.RUNNING,
    **more: Any,
) -> Recording:
    """Return the recording of a job of which every second is like the other.

    Args:
        loads: by replica, such as ``ps-0``: the fields of each of its samples.
        steps: by trainer the fields of each of its step reports; None: `STEPS` of each.
        rows: by replica further fields of its row, such as ``host``.
        roles: by role further fields of its spec.
        trained: by trainer from when until when (in seconds from the start) it has steps; others: always.
        spec: further fields of the job.
        seconds: how long it runs.
        phase: of the job; its replicas run, or have succeeded.
        more: further fields of the recording.
    """
    ids = [ReplicaId.parse(name) for name in loads]
    given = {Role(role): fields for role, fields in (roles or {}).items()}
    asked = tuple(
        RoleSpec(role=role, replicas=sum(each.role is role for each in ids), **given.get(role, {}))
        for role in dict.fromkeys(each.role for each in ids)
    )
    run = Run(
        name="clicks", spec=JobSpec(name="clicks", roles=asked, **(spec or {})), source="", engine="local",
        directory="/nowhere", submitted_at=START, started_at=START, phase=phase,
        finished_at=START + seconds if phase.is_final else None,
    )  # fmt: skip
    trainers = [str(each) for each in ids if each.role.trains]
    reports: Mapping[str, Mapping[str, Any]] = dict.fromkeys(trainers, STEPS) if steps is None else steps
    lasts = {name: (trained or {}).get(name, (0, seconds)) for name in reports}
    at = [START + second for second in range(1, seconds + 1)]
    own = ReplicaPhase.SUCCEEDED if phase.is_final else ReplicaPhase.RUNNING
    healthy: dict[str, Any] = {"phase": own, "attempt": 1, "restarts": 0}
    made = Recording(
        run=run,
        at=START + seconds,
        replicas=[
            ReplicaRow(**{**healthy, "replica": each, **(rows or {}).get(str(each), {})}) for each in ids
        ],
        samples=[
            Sample(replica=each, attempt=1, at=now, interval_seconds=1.0, **loads[str(each)])
            for now in at
            for each in ids
        ],
        steps=[
            StepReport(
                replica=ReplicaId.parse(name), attempt=1, at=now, interval_seconds=1.0,
                step=int(now - START) * 40, **fields,
            )
            for now in at
            for name, fields in reports.items()
            if START + lasts[name][0] < now <= START + lasts[name][1]
        ],
    )  # fmt: skip
    return dataclasses.replace(made, **more)


def edited(
    recording: Recording,
    *,
    samples: Callable[[Sample], Sample | None] = lambda sample: sample,
    steps: Callable[[StepReport], StepReport | None] = lambda report: report,
) -> Recording:
    """Return a recording with each sample and step report changed, or left out (None)."""
    return dataclasses.replace(
        recording,
        samples=[made for each in recording.samples if (made := samples(each)) is not None],
        steps=[report for each in recording.steps if (report := steps(each)) is not None],
    )


def asking(
    recording: Recording, facts: Mapping[str, Mapping[str, object]], *, at: float = START
) -> Recording:
    """Return the recording with facts of scripts, by replica and by name, seen at a moment."""
    events = tuple(
        JobEvent(
            at=at, kind=FACT, message=script_facts.text(name, value), replica=ReplicaId.parse(replica),
            attempt=1,
        )
        for replica, values in facts.items()
        for name, value in values.items()
    )  # fmt: skip
    return dataclasses.replace(recording, events=(*recording.events, *events))


def on_kubernetes(recording: Recording) -> Recording:
    """Return the recording as if its job ran on a cluster."""
    return dataclasses.replace(recording, run=dataclasses.replace(recording.run, engine="kubernetes"))


def trace(
    moved: Mapping[tuple[str, str], int],
    *,
    pushed: Mapping[tuple[str, str], int] | None = None,
    computed: Mapping[tuple[str, str, str], float] | None = None,
    trainer: str = "worker-0",
    waiting: float = 0.8,
) -> Trace:
    """Return a trace of one step of a second.

    Args:
        moved: bytes that are pulled by server and variable (``table/0`` is a part).
        pushed: the same of what is pushed.
        computed: microseconds by server, variable and kind of operation.
        trainer: whose.
        waiting: the share of the step that was pulling; the rest was computing.
    """
    transfers = [
        Transfer(
            step=1, server=server, direction=direction, bytes=size, microseconds=None,
            **_part(name),
        )
        for direction, sizes in ((Direction.PULL, moved), (Direction.PUSH, pushed or {}))
        for (server, name), size in sizes.items()
    ]  # fmt: skip
    operations = tuple(
        Operation(step=1, server=server, kind=kind, calls=1, microseconds=time, **_part(name))
        for (server, name, kind), time in (computed or {}).items()
    )
    split = Split(
        step=1, start_at=START + 5, input_wait_microseconds=0.0, pull_microseconds=1e6 * waiting,
        compute_microseconds=1e6 * (1 - waiting), push_microseconds=0.0, other_microseconds=0.0,
    )  # fmt: skip
    return Trace(
        trainer=trainer, attempt=1, at=START + 5, splits=(split,), transfers=tuple(transfers),
        operations=operations,
    )  # fmt: skip


def _part(name: str) -> dict[str, Any]:
    variable, _, shard = name.partition("/")
    return {"variable": variable, "shard": int(shard) if shard else None}


def found(rule: Rule, recording: Recording) -> Sequence[Cause]:
    """Return what a rule finds in a recording that has what it needs."""
    case = Case.of(recording)
    assert not rule.lacks(case), [need.what for need in rule.lacks(case)]
    return tuple(rule.causes(case))


def probe_of_workers(elasticity: float, input_wait_share: float | None = 0.8) -> Probe:
    """Return a probe that paused a worker, and found this elasticity of the rate to their number."""
    part = CutPart(Knob.PAUSE, ("worker-1",))
    found = Elasticity(part=part, value=elasticity, low=elasticity - 0.05, high=elasticity + 0.05, cuts=2)
    return Probe(
        run="clicks",
        began_at=START + 10,
        ended_at=START + 19,
        ended="all is known",
        unit=RateUnit.EXAMPLES,
        elasticities=(found,),
        input_wait_share=input_wait_share,
    )
