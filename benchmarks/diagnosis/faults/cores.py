"""Faults of cores: more threads than there are, quotas that cut bursts, others who use them."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.diagnosis import acts, changes, checks
from benchmarks.diagnosis.bases import BURSTS, FREE, PLAIN, WHOLE, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, of
from benchmarks.diagnosis.knowns import Known
from paceline.model.jobs.job_specs import CpuPolicy, JobSpec
from paceline.model.roles import Role


def too_many_threads(base: Base, severity: Severity) -> Fault:
    """Every replica has many threads on a part of a core."""
    threads = int(of(severity, 16, 32, 64))

    def change(spec: JobSpec, known: Known) -> JobSpec:
        for role in (Role.PS, Role.WORKER):
            spec = changes.role(spec, role, threads=threads)
        return spec

    return Fault(cause="too-many-threads", base=base.of_kind(PLAIN), felt=checks.slower(), change=change)


def throttled(base: Base, severity: Severity) -> Fault:
    """Bursts on two cores are cut by a quota that the worker does not use up on average."""
    share = of(severity, 1.5, 1.25, 1.05)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        cores = round(known.cores[Role.WORKER] * share, 3)
        return changes.role(spec, Role.WORKER, cpu_cores=cores, threads=2)

    return Fault(cause="throttled", base=base.of_kind(BURSTS), felt=checks.slower(), change=change)


def _crowded(severity: Severity) -> Callable[[Known], acts.Act]:
    """Return what takes a share of every core away."""
    return lambda known: acts.neighbours(of(severity, 0.45, 0.6, 0.75))


def noisy_neighbour(base: Base, severity: Severity) -> Fault:
    """Other programs use the cores of all replicas, which asked for whole ones and share them."""
    return Fault(
        cause="noisy-neighbour",
        base=base.of_kind(WHOLE),
        felt=checks.slower(),
        act=_crowded(severity),
    )


def fractional_cores(base: Base, severity: Severity) -> Fault:
    """Neighbours take the cores of replicas that asked for a part of one, so that none are their own."""
    return Fault(
        cause="fractional-cores",
        also=("noisy-neighbour",),
        base=base.of_kind(PLAIN),
        felt=checks.slower(),
        act=_crowded(severity),
    )


def exclusive_not_got(base: Base, severity: Severity) -> Fault:
    """Exclusive cores are asked for without saying how many, so there are none; neighbours are about."""

    def change(spec: JobSpec, known: Known) -> JobSpec:
        for role in (Role.PS, Role.WORKER):
            spec = changes.role(spec, role, cpu_policy=CpuPolicy.EXCLUSIVE)
        return spec

    return Fault(
        cause="exclusive-not-got",
        also=("noisy-neighbour",),
        base=base.of_kind(FREE),
        felt=checks.slower(),
        change=change,
        act=_crowded(severity),
    )
