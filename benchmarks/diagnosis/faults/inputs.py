"""Faults of input: all workers wait for reading, or for decoding."""

from __future__ import annotations

from benchmarks.diagnosis import acts, changes, checks
from benchmarks.diagnosis.bases import KINDS, PLAIN, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, of
from benchmarks.diagnosis.knowns import Known
from paceline.model.jobs.job_specs import JobSpec


def slow_storage(base: Base, severity: Severity) -> Fault:
    """All workers read from slow disks."""
    base = base.of_kind(PLAIN)
    share = of(severity, 0.7, 0.45, 0.25)

    def act(known: Known) -> acts.Act:
        names = [f"worker-{number}" for number in range(KINDS[base.kind].workers)]
        return acts.slow_disk(names, base.folder(), known.rate * base.bytes_per_example() * share)

    return Fault(cause="slow-storage", base=base, felt=checks.slower(), act=act)


def slow_decoding(base: Base, severity: Severity) -> Fault:
    """The script decodes ids in Python, with many hashes for each."""
    hashings = str(int(of(severity, 4, 8, 16)))

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.arguments(spec, "--hashings", hashings)

    return Fault(cause="slow-decoding", base=base.of_kind(PLAIN), felt=checks.slower(), change=change)
