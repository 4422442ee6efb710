"""Faults that end a replica: out of memory, killed, an error of the script."""

from __future__ import annotations

from benchmarks.diagnosis import acts, changes, checks
from benchmarks.diagnosis.bases import PLAIN, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, of
from benchmarks.diagnosis.knowns import Known
from benchmarks.diagnosis.trials import Ending
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.statuses import ExitKind
from paceline.model.roles import Role

_FINISHED = (Ending.FINISHED,)
_LEAK_BYTES = 48 << 20


def out_of_memory(base: Base, severity: Severity) -> Fault:
    """A worker loses memory until the kernel kills it; gross: before it has begun to train."""
    room = of(severity, 1.9, 1.6, 1.3)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        limit = round(known.memory_bytes[Role.WORKER] * room)
        spec = changes.arguments(spec, "--leaky", "worker-1", "--leak-bytes", str(_LEAK_BYTES))
        return changes.role(spec, Role.WORKER, memory_bytes=limit)

    return Fault(
        cause="out-of-memory",
        base=base.of_kind(PLAIN),
        felt=checks.ended(ExitKind.OUT_OF_MEMORY),
        change=change,
        endings=_FINISHED,
        starts=False,
    )


def killed(base: Base, severity: Severity) -> Fault:
    """A replica is killed."""
    victim = {Severity.MILD: "worker-1", Severity.MEDIUM: "ps-1", Severity.GROSS: "worker-0"}[severity]
    return Fault(
        cause="killed",
        base=base.of_kind(PLAIN),
        felt=checks.ended(ExitKind.SIGNAL),
        act=lambda known: acts.killed((victim,), 12.0),
        endings=_FINISHED,
    )


def command_failed(base: Base, severity: Severity) -> Fault:
    """A worker's script raises an error in the middle of training, early or late."""
    after = of(severity, 18, 10, 1)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.arguments(spec, "--failing", "worker-1", "--fail-after", f"{after:g}")

    return Fault(
        cause="command-failed",
        base=base.of_kind(PLAIN),
        felt=checks.ended(ExitKind.ERROR),
        change=change,
        endings=_FINISHED,
    )
