"""Rules on requests for cores and memory that cannot have the intended effect."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.linting.rules import LintHit, rule
from paceline.model import quantities
from paceline.model.explanations.findings import Severity
from paceline.model.jobs import job_specs
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import Role
from paceline.specs import JobFile

EXCLUSIVE = job_specs.CpuPolicy.EXCLUSIVE


def _exclusive(job: JobFile) -> Iterator[job_specs.RoleSpec]:
    return (role for role in job.spec.roles if role.cpu_policy is EXCLUSIVE)


@rule(
    "JOB101",
    "Fractional CPU under exclusive cores",
    Severity.ERROR,
    why="Only whole cores can be exclusive. The kubelet's static CPU manager silently puts a container "
    "with a fraction of a core into the shared pool; exclusive cores trained over 20 % faster than "
    "shared ones where this was measured, and that gain is lost.",
    fix="Write a whole number of cores, or cpu_policy: shared.",
)
def fractional_exclusive_cpu(job: JobFile) -> Iterator[LintHit]:
    """Exclusive cores must be whole."""
    for role in _exclusive(job):
        if role.cpu_cores is not None and not quantities.is_whole(role.cpu_cores):
            path = ("spec", "roles", str(role.role), "cpu")
            written = quantities.quantity_cores(role.cpu_cores)
            yield LintHit(
                job.document, path, f"{role.role} asks for {written} cores of its own; only whole ones can be"
            )


@rule(
    "JOB102",
    "Exclusive cores without a number of cores",
    Severity.ERROR,
    why="Without a number there is nothing to reserve, so the replicas share cores like all others.",
    fix="Give the role a whole number of cores: cpu: 2.",
)
def exclusive_without_cpu(job: JobFile) -> Iterator[LintHit]:
    """Exclusive needs a number of cores."""
    for role in _exclusive(job):
        if role.cpu_cores is None:
            path = ("spec", "roles", str(role.role))
            yield LintHit(
                job.document, path, f"{role.role} wants exclusive cores but does not say how many", key=True
            )


@rule(
    "JOB103",
    "Exclusive cores without memory",
    Severity.WARNING,
    why="Kubernetes gives exclusive cores only to pods of the Guaranteed quality-of-service class, which "
    "must limit memory as well as CPU. Without memory the pod is Burstable and shares cores.",
    fix="Give the role a memory, such as memory: 2Gi.",
)
def exclusive_without_memory(job: JobFile) -> Iterator[LintHit]:
    """The Guaranteed class needs a memory limit, too."""
    for role in _exclusive(job):
        if role.memory_bytes is None:
            path = ("spec", "roles", str(role.role))
            message = f"{role.role} has exclusive cores but no memory, so Kubernetes will not grant them"
            yield LintHit(job.document, path, message, key=True)


@rule(
    "JOB104",
    "Unlimited shared replicas beside exclusive ones",
    Severity.WARNING,
    why="Exclusive cores are taken out of the pool that the shared replicas use. Replicas without any "
    "limit then crowd on what is left, and how much that is differs from host to host: their speeds "
    "differ, and the slowest holds up the job.",
    fix="Give every role the same cpu_policy, give the shared one a cpu, or use placement strategy isolate.",
)
def mixed_policies(job: JobFile) -> Iterator[LintHit]:
    """Shared replicas beside exclusive ones need a CPU limit."""
    if job.spec.placement.strategy is PlacementStrategy.ISOLATE or not any(_exclusive(job)):
        return
    for role in job.spec.roles:
        if role.role is not Role.EVALUATOR and role.cpu_policy is not EXCLUSIVE and role.cpu_cores is None:
            others = ", ".join(str(other.role) for other in _exclusive(job))
            message = (
                f"{role.role} shares cores without a limit on the hosts where {others} has exclusive ones"
            )
            yield LintHit(job.document, ("spec", "roles", str(role.role)), message, key=True)


@rule(
    "JOB105",
    "A chief with fewer cores than the workers",
    Severity.WARNING,
    why="The chief trains like a worker and also saves checkpoints. With fewer cores it is the straggler "
    "of the job, and with success: chief the whole job waits for it.",
    fix="Give the chief at least the cores of a worker.",
)
def small_chief(job: JobFile) -> Iterator[LintHit]:
    """The chief must not be smaller than a worker."""
    chief, worker = job.spec.role(Role.CHIEF), job.spec.role(Role.WORKER)
    if chief is None or worker is None or chief.cpu_cores is None or worker.cpu_cores is None:
        return
    if chief.cpu_cores < worker.cpu_cores:
        mine, theirs = (
            quantities.quantity_cores(role.cpu_cores) for role in (chief, worker) if role.cpu_cores
        )
        message = f"the chief has {mine} CPU, each worker has {theirs}"
        yield LintHit(job.document, ("spec", "roles", "chief", "cpu"), message)


@rule(
    "JOB106",
    "A quantity that cannot be meant",
    Severity.WARNING,
    why="Kubernetes reads memory without a unit as bytes, and cpu without one as whole cores. A Python "
    "process does not start in a megabyte, and no node has a thousand cores: the pod is killed at its start, "
    "or waits for ever.",
    fix="Write the unit: memory: 1024Mi, cpu: 500m.",
)
def odd_quantity(job: JobFile) -> Iterator[LintHit]:
    """Memory and cores must be plausible for a process."""
    for role in job.spec.roles:
        path = ("spec", "roles", str(role.role))
        if role.memory_bytes is not None and role.memory_bytes < quantities.LEAST_PROCESS_BYTES:
            message = f"{role.role} has {quantities.format_bytes(role.memory_bytes)} of memory"
            yield LintHit(job.document, (*path, "memory"), message)
        if role.cpu_cores is not None and role.cpu_cores > quantities.MOST_NODE_CORES:
            message = f"{role.role} asks for {quantities.quantity_cores(role.cpu_cores)} cores"
            yield LintHit(job.document, (*path, "cpu"), message)


RULES = (
    fractional_exclusive_cpu,
    exclusive_without_cpu,
    exclusive_without_memory,
    mixed_policies,
    small_chief,
    odd_quantity,
)
