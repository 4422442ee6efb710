"""Faults of the optimizer: it updates, or keeps, much more than a step uses."""

from __future__ import annotations

from benchmarks.diagnosis import changes, checks
from benchmarks.diagnosis.bases import PLAIN, PS_HOST, SLOTS, WORKER_HOST, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, of
from benchmarks.diagnosis.knowns import Known
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

_WAITING = "waiting-for-ps"
_FLOAT_BYTES = 4


def dense_update(base: Base, severity: Severity) -> Fault:
    """Adam updates every row of the table in each step; the larger the table, the grosser.

    Its first feature has a row for each word of a vocabulary, most of which never come.
    """
    base = base.of_kind(PLAIN)
    wanted_bytes = of(severity, 3e6, 8e6, 24e6)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        dimension = (spec.training or {})["embedding_dimension"]
        rows = int(wanted_bytes / (_FLOAT_BYTES * dimension))
        spec = changes.training(spec, optimizer={"name": "adam", "learning_rate": 0.001})
        return changes.arguments(spec, "--first-rows", str(rows))

    return Fault(
        cause="dense-update",
        also=(_WAITING, "ps-cpu-bound"),
        base=base,
        felt=checks.slower(),
        change=change,
    )


def dense_gradient(base: Base, severity: Severity) -> Fault:
    """An op makes the gradient of the table dense: a step pushes all of it; mild: over faster links."""
    faster = int(of(severity, 4, 2, 1))
    base = base.of_kind(PLAIN)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        for role, names in ((Role.PS, PS_HOST), (Role.WORKER, WORKER_HOST)):
            bandwidth = base.bandwidth(role) * faster
            spec = changes.hosts(spec, names, bandwidth_bits_per_second=bandwidth)
        return changes.arguments(spec, "--dense-gradients")

    return Fault(
        cause="dense-gradient",
        also=(_WAITING, "ps-cpu-bound", "ps-network-bound", "worker-link"),
        base=base,
        felt=checks.slower(),
        change=change,
    )


def slots_memory(base: Base, severity: Severity) -> Fault:
    """Two slots for each value of a large table bring the parameter servers near their memory limit."""
    room = of(severity, 1.10, 1.06, 1.03)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        assert known.plan is not None
        # The twin's optimizer has one slot, this one two.
        more = max(known.plan.memory_bytes()) // 2
        limit = round((known.memory_bytes[Role.PS] + more) * room)
        optimizer = {"name": "lazy-adam", "learning_rate": 0.001}
        spec = changes.training(spec, optimizer=optimizer)
        return changes.role(spec, Role.PS, memory_bytes=limit)

    return Fault(
        cause="slots-memory",
        also=("memory-near-limit",),
        base=base.of_kind(SLOTS),
        felt=checks.memory(Role.PS, least=0.88),
        change=change,
    )
