"""Faults of workers: too weak, too many, one of them behind the others."""

from __future__ import annotations

from benchmarks.diagnosis import acts, changes, checks
from benchmarks.diagnosis.bases import PAIR, PLAIN, TRIO, WORKER_HOST, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, fewer_cores, of
from benchmarks.diagnosis.knowns import Known
from benchmarks.diagnosis.trials import Ending
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import Role

_LAST = "worker-2"
_OTHERS_SECONDS = 9.0
_FEW_CORES = 0.25


def compute_bound(base: Base, severity: Severity) -> Fault:
    """The workers have fewer cores than they would use."""
    return Fault(
        cause="compute-bound",
        also=("throttled",),
        base=base.of_kind(PLAIN),
        felt=checks.slower(),
        change=fewer_cores(Role.WORKER, of(severity, 0.75, 0.6, 0.42)),
    )


def slow_host(base: Base, severity: Severity) -> Fault:
    """The last worker's host has fewer cores than those of the others."""
    share = of(severity, 0.55, 0.4, 0.2)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        cores = round(known.cores[Role.WORKER] * share, 3)
        return changes.hosts(spec, f"{WORKER_HOST}-2", cpu_cores=cores)

    return Fault(cause="slow-host", base=base.of_kind(TRIO), felt=checks.straggles(_LAST), change=change)


def crowded_host(base: Base, severity: Severity) -> Fault:
    """The last worker's host is as large as the others', and other programs use it."""
    burners = int(of(severity, 2, 4, 8))
    return Fault(
        cause="noisy-neighbour",
        also=("slow-host",),
        base=base.of_kind(TRIO),
        felt=checks.straggles(_LAST),
        act=lambda known: acts.neighbours_on(_LAST, burners=burners),
    )


def slow_disk(base: Base, severity: Severity) -> Fault:
    """The last worker reads from a disk that is slower than those of the others."""
    base = base.of_kind(TRIO)
    share = of(severity, 0.6, 0.35, 0.15)

    def act(known: Known) -> acts.Act:
        return acts.slow_disk((_LAST,), base.folder(), known.rate * base.bytes_per_example() * share)

    return Fault(cause="slow-disk", base=base, felt=checks.straggles(_LAST), act=act)


def big_shard(base: Base, severity: Severity) -> Fault:
    """Files are shared out once and for all, and the last worker has larger ones."""
    share = of(severity, 2, 3, 5)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        examples = str(int(known.rate * _OTHERS_SECONDS))
        return changes.arguments(spec, "--shares", f"1,1,{share:g}", "--share-examples", examples)

    return Fault(
        cause="big-shard",
        base=base.of_kind(TRIO),
        felt=checks.outlasts(_LAST, 1.4),
        change=change,
        endings=(Ending.LIVE, Ending.FINISHED) if share > 2 else (Ending.FINISHED,),
    )


def idle_workers(base: Base, severity: Severity) -> Fault:
    """There are fewer files than workers."""
    workers = int(of(severity, 3, 4, 5))
    names = ("worker-0", "worker-1")

    def change(spec: JobSpec, known: Known) -> JobSpec:
        spec = changes.resized(spec, Role.WORKER, workers)
        shares = ",".join(["1", "1"] + ["0"] * (workers - 2))
        return changes.arguments(spec, "--shares", shares, "--share-examples", str(10**9))

    return Fault(
        cause="idle-workers",
        base=base.of_kind(TRIO),
        felt=checks.idle(_LAST),
        change=change,
        steps_from=names,
    )


def too_many_workers(base: Base, severity: Severity) -> Fault:
    """More workers than one parameter server can serve, which has as many cores as each of them."""
    workers = int(of(severity, 10, 12, 14))

    def change(spec: JobSpec, known: Known) -> JobSpec:
        for role in (Role.PS, Role.WORKER):
            spec = changes.role(spec, role, cpu_cores=_FEW_CORES)
        return changes.resized(changes.resized(spec, Role.PS, 1), Role.WORKER, workers)

    return Fault(
        cause="too-many-workers",
        also=("ps-cpu-bound", "too-few-ps", "waiting-for-ps"),
        base=base.of_kind(PAIR),
        felt=checks.not_faster(1.35, per_worker=0.65),
        change=change,
    )
