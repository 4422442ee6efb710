"""Exclusive cores were requested, but the replicas did not get them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.cores import crowds
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import CpuPolicy, RoleSpec
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.words import listed

#: How the local engine's note begins on a machine where Paceline may not make cgroups.
NOT_LIMITED = "CPU and memory are not limited"

TOPIC = Topic(
    code="CPU005",
    name="exclusive-not-got",
    title="Exclusive cores were asked for and not given",
    severity=Severity.WARNING,
    why="Cores are exclusive only where a program assigns them: on Kubernetes a kubelet whose CPU manager "
    "has the policy static, to pods of whole cores with as much CPU and memory in their requests as in "
    "their limits; on one machine Paceline itself, if it may make cgroups. Elsewhere the wish is silently "
    "ignored. Exclusive cores trained over 20 % faster than shared ones beside busy neighbours.",
    fix="paceline doctor --engine kubernetes FILE says which kubelets give exclusive cores, and what to "
    "configure; each role needs a whole cpu and a memory.",
)


@rule(
    TOPIC,
    needs=(needs.CPU, needs.ALLOWED_CPUS),
    explains=("noisy-neighbour", "slow-host", "slow-decoding", "waiting-for-ps"),
)
def exclusive_not_got(case: Case) -> Iterator[Hit]:
    """Exclusive roles whose replicas have no cores of their own."""
    for role in case.spec.roles:
        if role.cpu_policy is not CpuPolicy.EXCLUSIVE:
            continue
        shared = [(each, seen) for each in case.of_role(role.role) if (seen := _shared(case, each))]
        if not shared:
            continue
        names = [str(each.replica) for each, _ in shared]
        crowd = tuple(each for each in crowds.hurt(case) if str(each.replica.replica) in names)
        gain = crowds.gain_without(case, crowd)
        yield Hit(
            what=f"{listed(names)} should have cores of their own (cpu_policy: exclusive), and "
            f"{'share' if len(names) > 1 else 'shares'} them with others.",
            subjects=tuple(names),
            evidence=(shared[0][1],),
            changes=tuple(_changes(role)),
            next_steps=tuple(_next_steps(case)),
            gain=gain if headrooms.matters(gain, case) else None,
        )


def _shared(case: Case, replica: ReplicaSnapshot) -> Evidence | None:
    """Return evidence that a replica shares its cores; None: it does not share them, or this is not known.

    The local engine records which cores it assigned. A kubelet does not, but a container with exclusive cores
    may run only on these, and every other container on all the remaining cores (Kubernetes, "Control CPU
    Management Policies").
    """
    if case.recording.run.engine == "local":
        note = next((each for each in case.recording.run.notes if each.startswith(NOT_LIMITED)), None)
        if replica.measured_at is None or (replica.row.cores and note is None):
            return None
        text = note or f"no cores were given to {replica.replica}"
        return Evidence(text=text, sources=(EvidenceSource(what="job file", field="cpu_policy", count=1),))
    role, allowed = case.role(replica), replica.allowed_cpus
    asked = math.ceil(role.cpu_cores or 1.0) if role else None
    if asked is None or allowed is None or allowed <= asked:
        return None
    return Evidence(
        text=f"{replica.replica} may run on {allowed} CPUs, as others may, and not on {asked} of its own",
        sources=(case.source("allowed_cpus", (replica,)),),
    )


def _changes(role: RoleSpec) -> Iterator[FieldChange]:
    """Yield the changes of the job file that exclusive cores need."""
    cores = role.cpu_cores
    if cores is None or not quantities.is_whole(cores):
        yield FieldChange(path=("spec", "roles", str(role.role), "cpu"), value=math.ceil(cores or 1))


def _next_steps(case: Case) -> Iterator[str]:
    if case.recording.run.engine == "local":
        yield "run it as a user who may make cgroups; paceline doctor says what is missing"
        return
    yield "paceline doctor --engine kubernetes FILE says which kubelets give exclusive cores"
    for role in case.spec.roles:
        if role.cpu_policy is CpuPolicy.EXCLUSIVE and role.memory_bytes is None:
            yield f"spec.roles.{role.role}.memory: without a memory no cores are given"
