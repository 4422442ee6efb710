"""Faults of memory: nearly used up, or asked for and not used."""

from __future__ import annotations

from benchmarks.diagnosis import changes, checks
from benchmarks.diagnosis.bases import PLAIN, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, of
from benchmarks.diagnosis.knowns import Known
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

_GIB = 1 << 30
_LEAK_BYTES = 4 << 20


def memory_near_limit(base: Base, severity: Severity) -> Fault:
    """The workers have hardly more memory than they use."""
    room = of(severity, 1.08, 1.05, 1.03)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.role(spec, Role.WORKER, memory_bytes=round(known.memory_bytes[Role.WORKER] * room))

    return Fault(
        cause="memory-near-limit",
        base=base.of_kind(PLAIN),
        felt=checks.memory(Role.WORKER, least=0.9),
        change=change,
    )


def memory_grows(base: Base, severity: Severity) -> Fault:
    """A worker loses memory, and will reach its limit soon."""
    speed = int(_LEAK_BYTES * of(severity, 1, 2, 3))

    def change(spec: JobSpec, known: Known) -> JobSpec:
        # It starts to lose when its process does; at the end of the run it is not there yet.
        limit = round(known.memory_bytes[Role.WORKER] * 1.05) + speed * 60
        spec = changes.arguments(spec, "--leaky", "worker-1", "--leak-bytes", str(speed))
        return changes.role(spec, Role.WORKER, memory_bytes=limit)

    return Fault(
        cause="memory-near-limit",
        base=base.of_kind(PLAIN),
        felt=checks.memory(Role.WORKER, least=0.6),
        change=change,
    )


def memory_over_asked(base: Base, severity: Severity) -> Fault:
    """All replicas ask for several times the memory that they use."""
    servers, workers = of(severity, 1.5, 3, 6), of(severity, 2.5, 4, 8)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        spec = changes.role(spec, Role.PS, memory_bytes=round(servers * _GIB))
        return changes.role(spec, Role.WORKER, memory_bytes=round(workers * _GIB))

    return Fault(
        cause="memory-over-asked",
        base=base.of_kind(PLAIN),
        felt=checks.memory(Role.WORKER, most=0.3),
        change=change,
    )
