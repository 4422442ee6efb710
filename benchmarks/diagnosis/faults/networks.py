"""Faults of links: full ones, shared ones, and ones that lose packets."""

from __future__ import annotations

from benchmarks.diagnosis import acts, changes, checks
from benchmarks.diagnosis.bases import FOUR, KINDS, PLAIN, PS_HOST, TRIO, WORKER_HOST, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, of
from benchmarks.diagnosis.knowns import Known
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.roles import Role


def shared_link(base: Base, severity: Severity) -> Fault:
    """All parameter servers are on one host, whose link is no faster than each of theirs was."""
    share = of(severity, 0.75, 0.5, 0.3)
    base = base.of_kind(FOUR)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        workers = [host for host in spec.hosts if host.name.startswith(WORKER_HOST)]
        spec = changes.isolated(spec, (Host(name=PS_HOST), *workers))
        total = known.bits_per_second[Role.PS] * KINDS[base.kind].servers
        return changes.narrowed(spec, PS_HOST, total * share)

    return Fault(
        cause="shared-link",
        also=("waiting-for-ps", "ps-network-bound"),
        base=base,
        felt=checks.slower(),
        change=change,
    )


def worker_link(base: Base, severity: Severity) -> Fault:
    """The links of all workers carry less than what would go over them."""
    share = of(severity, 0.8, 0.5, 0.3)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.narrowed(spec, WORKER_HOST, known.bits_per_second[Role.WORKER] * share)

    return Fault(
        cause="worker-link",
        also=("waiting-for-ps",),
        base=base.of_kind(PLAIN),
        felt=checks.slower(),
        change=change,
    )


def one_worker_link(base: Base, severity: Severity) -> Fault:
    """The link of the last worker carries less than what would go over it."""
    share = of(severity, 0.6, 0.4, 0.2)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.narrowed(spec, f"{WORKER_HOST}-2", known.bits_per_second[Role.WORKER] * share)

    return Fault(
        cause="worker-link",
        base=base.of_kind(TRIO),
        felt=checks.straggles("worker-2"),
        change=change,
    )


def retransmissions(base: Base, severity: Severity) -> Fault:
    """Packets for the workers are lost on their way."""
    share = of(severity, 0.02, 0.03, 0.05)
    base = base.of_kind(PLAIN)
    names = [f"worker-{number}" for number in range(KINDS[base.kind].workers)]
    return Fault(
        cause="retransmissions",
        also=("waiting-for-ps",),
        base=base,
        felt=checks.slower(),
        act=lambda known: acts.lossy(names, share),
    )
