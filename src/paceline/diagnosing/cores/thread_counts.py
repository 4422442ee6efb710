"""More threads than cores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from paceline.diagnosing import headrooms, needs, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence, EvidenceSource, FieldChange, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Framework, RoleSpec
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.words import listed

#: Variables that say how many threads compute in one operation; a user's own win over the job's `threads`.
#: TF_NUM_INTEROP_THREADS is not one: those mostly wait, and 2 are needed on one core.
VARIABLES = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
LEAST_RATIO = Threshold(
    "thread-counts.least-ratio", 2.0, Unit.TIMES,
    means="Threads cost something from this many threads for each core on.",
    source="the benchmark cpu-limits of this project: 0.96 to 1.13 times the speed with 2 threads on a core",
)  # fmt: skip
COST_LOW = Threshold(
    "thread-counts.cost-low", 0.08, Unit.SHARE,
    means="Each doubling of threads over cores costs this share of the speed at least.",
    source="the benchmark cpu-limits of this project: 1.40 to 1.59 with 24 threads on a core, and 1.55 to "
    "1.76 with 48",
)  # fmt: skip
COST_HIGH = Threshold(
    "thread-counts.cost-high", 0.14, Unit.SHARE,
    means="Each doubling of threads over cores costs this share of the speed at most.",
    source="the benchmark cpu-limits of this project: 1.40 to 1.59 with 24 threads on a core, and 1.55 to "
    "1.76 with 48",
)  # fmt: skip

TOPIC = Topic(
    code="CPU001",
    name="too-many-threads",
    title="More threads than cores",
    severity=Severity.WARNING,
    why="Libraries divide an operation among all of their threads and wait for the last one. Threads beyond "
    "the cores only take turns: they are interrupted in the middle of their part, lose what they had in the "
    "cache, and use up the quota of all in a fraction of its period.",
    fix="Write threads: auto, which gives a replica as many as it has cores.",
    risk="None that is known: cores do no more than they can.",
)


class _Threads(NamedTuple):
    """The number of threads that a role asks for, and the fields of the job file that set it."""

    threads: int
    said: Mapping[tuple[str, ...], int]


@rule(
    TOPIC,
    needs=(needs.CPU,),
    explains=("throttled", "compute-bound", "slow-decoding", "ps-cpu-bound", "slow-host", "waiting-for-ps"),
)
def too_many_threads(case: Case) -> Iterator[Hit]:
    """Roles whose job file asks for more threads than their replicas have cores."""
    least_ratio = case.value(LEAST_RATIO)
    for role in case.spec.roles:
        asked = _asked(case, role)
        replicas = [replica for replica in case.of_role(role.role) if usages.cpu(case, replica) is not None]
        if asked is None or not replicas:
            continue
        cores = min(usages.cores(case, replica) or math.inf for replica in replicas)
        ratio = asked.threads / math.ceil(cores)
        if ratio < least_ratio:
            continue
        gain = _gain(case, replicas, ratio)
        yield Hit(
            what=f"Each {role.role} computes with {asked.threads} threads on {cores:.2f} cores.",
            subjects=tuple(str(replica.replica) for replica in replicas),
            evidence=tuple(_evidence(case, asked, replicas)),
            changes=tuple(_change(role, path) for path in asked.said),
            gain=gain if headrooms.matters(gain, case) else None,
            severity=headrooms.severity(gain, case),
        )


def _asked(case: Case, role: RoleSpec) -> _Threads | None:
    """Return the threads that a job file asks for; None: it leaves them to the agent, which counts cores."""
    if case.spec.framework is Framework.PLAIN:
        return None
    own = ("spec", "roles", str(role.role))
    given = case.spec.environment_of(role.role)
    said = {
        (*(own if name in role.environment else ("spec",)), "environment", name): int(given[name][:9])
        for name in VARIABLES
        if given.get(name, "").isdecimal()
    }
    # TensorFlow's own threads follow the environment variable if the user set it, and `threads` otherwise.
    if role.threads is not None and VARIABLES[0] not in given:
        said[*own, "threads"] = role.threads
    return _Threads(max(said.values()), said) if said else None


def _change(role: RoleSpec, path: tuple[str, ...]) -> FieldChange:
    return FieldChange(path=path, value="auto" if path[-1] == "threads" else None)


def _gain(case: Case, replicas: list[ReplicaSnapshot], ratio: float) -> Gain:
    """Return the gain from as many threads as cores: the measured cost, scaled by the replicas' CPU use."""
    busy = min(1.0, mean(replicas, lambda each: usages.cpu(case, each)) or 0.0)
    cost_low, cost_high = sorted((case.value(COST_LOW), case.value(COST_HIGH)))
    doublings = math.log2(ratio)
    return Gain(low=1 + cost_low * doublings * busy, high=1 + cost_high * doublings * busy)


def _evidence(case: Case, asked: _Threads, replicas: list[ReplicaSnapshot]) -> Iterator[Evidence]:
    for path, count in asked.said.items():
        field = ".".join(path)
        yield Evidence(
            text=f"{field}: {count}", sources=(EvidenceSource(what="job file", field=field, count=1),)
        )
    switched = mean(replicas, lambda each: each.involuntary_switches_per_second)
    used = mean(replicas, lambda each: each.cpu_cores)
    if switched is not None and used is not None:
        names = listed(each.replica for each in replicas)
        yield Evidence(
            text=f"{names}: {used:.2f} cores used, and {switched:.0f} times a second a thread had to make "
            "room for another",
            sources=(case.source("involuntary_switches", replicas),),
        )
