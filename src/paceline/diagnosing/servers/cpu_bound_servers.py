"""Every parameter server is at its CPU limit, and the limit is small."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import saturations
from paceline.diagnosing.servers.saturations import Saturation, words
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import CpuPolicy, RoleSpec
from paceline.model.roles import Role

SMALL_CORES = Threshold(
    "cpu-bound-servers.small-cores", 1.0, Unit.CORES,
    means="Servers with fewer cores than this get more cores rather than more servers, if the cores of a "
    "worker are not known. Below one core a server is throttled in the middle of an update.",
)  # fmt: skip

TOPIC = Topic(
    code="PS101",
    name="ps-cpu-bound",
    title="Every parameter server is at its CPU limit, which is low",
    severity=Severity.WARNING,
    why="Servers look rows up, add gradients to them and pack what they send; all of it takes CPU, for each "
    "step of each worker. With a low limit they are out of it while workers wait, however evenly variables "
    "lie.",
    fix="Give each of them more cores. That is as good as more servers, and costs no more messages.",
    risk="None for the model. Where the node has no more cores to give, the job waits for room.",
)


def is_small(case: Case, saturation: Saturation) -> bool:
    """Return whether servers have fewer cores than a worker: then more cores come before more servers."""
    trainer = saturations.trainer_cores(case)
    return saturation.cores < (case.value(SMALL_CORES) if trainer is None else trainer)


@rule(TOPIC, needs=(needs.CPU, needs.STEPS), explains=("waiting-for-ps",))
def ps_cpu_bound(case: Case) -> Iterator[Hit]:
    """Servers that all use up their few cores while trainers wait."""
    saturation = saturations.of_cores(case)
    if saturation is None or not saturations.are_waiting(case) or not is_small(case, saturation):
        return
    role = case.spec.role(Role.PS)
    needed = _needed(case, saturation, role)
    gain = saturations.gain(case, saturation, needed / saturation.cores)
    by_hand = f"{words(needed)} for each PS: theirs are those of the host"
    yield Hit(
        what=f"Every PS is at its CPU limit: they use {saturation.use:.0%} of "
        f"{words(saturation.cores)} each.",
        subjects=saturation.names,
        evidence=saturations.seen(case, saturation),
        changes=_changes(role, needed) if saturation.own else (),
        next_steps=() if saturation.own else (by_hand,),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def _needed(case: Case, found: Saturation, role: RoleSpec | None) -> float:
    """Return the cores per server whose use is `saturations.TARGET` with trainers at full speed.

    The number is rounded up to a tenth, or to a whole number for exclusive cores.
    """
    cores = found.cores * saturations.planned_factor(case, found)
    if role is not None and role.cpu_policy is CpuPolicy.EXCLUSIVE:
        return float(math.ceil(cores))
    return math.ceil(cores * 10 - 1e-6) / 10


def _changes(role: RoleSpec | None, cores: float) -> tuple[FieldChange, ...]:
    path = ("spec", "roles", str(Role.PS))
    value = int(cores) if quantities.is_whole(cores) else cores
    threads = math.ceil(cores)
    few = role is not None and role.threads is not None and role.threads < threads
    return (
        FieldChange(path=(*path, "cpu"), value=value),
        *((FieldChange(path=(*path, "threads"), value=threads),) if few else ()),
    )
