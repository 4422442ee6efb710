"""Faults of the parameter servers as a whole: too weak, too few, too many."""

from __future__ import annotations

from benchmarks.diagnosis import changes, checks
from benchmarks.diagnosis.bases import PAIR, PLAIN, PS_HOST, WHOLE, WORKER_HOST, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, fewer_cores, of
from benchmarks.diagnosis.knowns import Known
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

_WAITING = "waiting-for-ps"
_LARGER = 12
_LARGE_LAYERS = [512, 256]


def ps_cpu_bound(base: Base, severity: Severity) -> Fault:
    """All parameter servers have fewer cores than they would use."""
    return Fault(
        cause="ps-cpu-bound",
        also=(_WAITING, "throttled"),
        base=base.of_kind(PLAIN),
        felt=checks.slower(),
        change=fewer_cores(Role.PS, of(severity, 0.7, 0.45, 0.25)),
    )


def too_few_ps(base: Base, severity: Severity) -> Fault:
    """One parameter server, no smaller than a worker, does the work of two; gross: for more workers."""
    workers = int(of(severity, 3, 4, 5))

    def change(spec: JobSpec, known: Known) -> JobSpec:
        spec = changes.resized(spec, Role.PS, 1)
        return changes.resized(spec, Role.WORKER, workers)

    return Fault(
        cause="too-few-ps",
        also=(_WAITING, "too-many-workers"),
        base=base.of_kind(PAIR),
        felt=checks.busy(Role.PS, 0.85),
        change=change,
    )


def ps_network_bound(base: Base, severity: Severity) -> Fault:
    """The links of all parameter servers carry less than what would go over them."""
    share = of(severity, 0.8, 0.5, 0.3)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.narrowed(spec, PS_HOST, known.bits_per_second[Role.PS] * share)

    return Fault(
        cause="ps-network-bound",
        also=(_WAITING,),
        base=base.of_kind(PLAIN),
        felt=checks.slower(),
        change=change,
    )


def too_many_ps(base: Base, severity: Severity) -> Fault:
    """Parameter servers with a core each that have next to nothing to do for one worker's large layers."""
    count = int(of(severity, 5, 6, 8))

    def change(spec: JobSpec, known: Known) -> JobSpec:
        spec = changes.resized(changes.resized(spec, Role.PS, count), Role.WORKER, 1)
        batch_size = (spec.training or {})["batch_size"] * _LARGER
        # One worker's link has to carry larger batches, and is not to bind.
        spec = changes.hosts(spec, WORKER_HOST, bandwidth_bits_per_second=4 * base.bandwidth(Role.WORKER))
        return changes.training(spec, batch_size=batch_size, hidden_units=_LARGE_LAYERS)

    return Fault(
        cause="too-many-ps", base=base.of_kind(WHOLE), felt=checks.resting(Role.PS, 0.08), change=change
    )
