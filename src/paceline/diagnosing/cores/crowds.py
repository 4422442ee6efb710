"""Crowded cores: who shares them, and which replicas lose time to other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paceline.diagnosing import outlooks, usages
from paceline.diagnosing.cases import Case, once
from paceline.diagnosing.progress import silences
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.explanations.causes import Evidence, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.words import listed

#: Cores that are used to this share are full: who wants more waits (see `outlooks.BINDING_USE`).
FULL = outlooks.BINDING_USE
LEAST_SHARE = Threshold(
    "crowds.least-share", 0.1, Unit.SHARE,
    means="Programs that use a smaller share of the cores than this disturb a job less than runs differ by "
    "themselves.",
)  # fmt: skip
LEAST_CORES = Threshold(
    "crowds.least-cores", 0.2, Unit.CORES,
    means="Other programs that use fewer cores than this are agents and supervisors, or ticks that are "
    "counted in one place and not in the other.",
)  # fmt: skip
AT_LIMIT = Threshold(
    "crowds.at-limit", 0.9, Unit.SHARE,
    means="A replica that uses this share of its limit gets what it asked for: it is the limit that binds.",
)  # fmt: skip
LEAST_WAITS = Threshold(
    "crowds.least-waits", 2.0, Unit.TIMES,
    means="Other programs hurt a replica if its threads wait because of them for this many seconds for each "
    "second on a core.",
    source="fit runs: up to 1.8 beside programs of the lowest priority, which give way at once; from 5 where "
    "neighbours take more than half of each core",
)  # fmt: skip
LEAST_WAITED = Threshold(
    "crowds.least-waited", 0.4, Unit.TIMES,
    means="Other programs hurt a replica only if its threads also wait because of them for this many seconds "
    "in each second. A replica that rests most of the time waits for a core whenever it wakes up, which is "
    "long beside what it then does, and short beside a step.",
    source="fit runs: from 0.8 where neighbours hurt; half of it, for this is the second of two conditions",
)  # fmt: skip
START_SECONDS = Threshold(
    "crowds.start-seconds", 120.0, Unit.SECONDS,
    means="A start takes no longer than this. A job without a step by then is taken for a job whose steps "
    "are not seen.",
)  # fmt: skip


class SharedCores(NamedTuple):
    """Cores that some replicas of the job share, possibly with other programs.

    Attributes:
        name: the cores in words.
        cores: the number of cores.
        replicas: the job's replicas on the cores.
    """

    name: str
    cores: float
    replicas: tuple[ReplicaSnapshot, ...]

    @property
    def used(self) -> float:
        """The number of these cores that the job uses."""
        return rates.total(each.cpu_cores for each in self.replicas) or 0.0


class Hurt(NamedTuple):
    """A replica that gets less than its limit because of other programs.

    Attributes:
        replica: the replica.
        others: the number of cores that programs outside the job use where the replica may run.
        waits: seconds that its threads wait for a core because of these programs, per second on a core.
        place: the cores, if their number is known.
    """

    replica: ReplicaSnapshot
    others: float
    waits: float
    place: SharedCores | None


def places(case: Case, replica: ReplicaSnapshot) -> Iterator[SharedCores]:
    """Yield the cores that a replica shares, as far as their number is known."""
    host = case.host(replica)
    if host is not None and host.cpu_cores:
        beside = tuple(each for each in case.snapshot.replicas if each.row.host == host.name)
        yield SharedCores(f"host {host.name}", host.cpu_cores, beside)
    measured = _measured_place(case, replica)
    if measured is not None:
        yield measured


def _measured_place(case: Case, replica: ReplicaSnapshot) -> SharedCores | None:
    """Return the cores on which other programs are measured: for an emulated host, those of the machine."""
    if case.recording.run.engine != "local":
        return None
    everybody, own = case.snapshot.replicas, set(replica.row.cores)
    if own:
        sharers = (each for each in everybody if not each.row.cores or own & set(each.row.cores))
        return SharedCores(f"cores {', '.join(map(str, sorted(own)))}", float(len(own)), tuple(sharers))
    return SharedCores("this machine", case.machine_cores, everybody) if case.machine_cores else None


@once
def hurt(case: Case) -> tuple[Hurt, ...]:
    """Return the parameter servers and trainers that other programs keep from using their cores."""
    hurt_replicas: list[Hurt] = []
    least_waits, least_waited = case.value(LEAST_WAITS), case.value(LEAST_WAITED)
    at_limit, least_cores = case.value(AT_LIMIT), case.value(LEAST_CORES)
    for replica in (*case.servers, *case.trainers) if silences.trains(case) else ():
        others, use = usages.neighbours(case, replica), usages.cpu(case, replica)
        waits = waits_for_others(case, replica)
        if others is None or use is None or waits is None:
            continue
        hurts = waits >= least_waits and waits * (replica.cpu_cores or 0.0) >= least_waited
        if use < at_limit and others >= least_cores and hurts:
            hurt_replicas.append(Hurt(replica, others, waits, _measured_place(case, replica)))
    return tuple(hurt_replicas)


def waits_for_others(case: Case, replica: ReplicaSnapshot) -> float | None:
    """Return the seconds that a replica's threads wait for a core that other programs use, per second on one.

    The waiting is divided among the programs on these cores by how much each of them uses (own reasoning).
    Time in which a quota throttles the threads is subtracted: no other program takes it from them.
    """
    others, used, delay = usages.neighbours(case, replica), replica.cpu_cores, replica.run_delay_share
    if others is None or not used or delay is None or replica.neighbours_cpu_cores is None:
        return None
    theirs = others / (replica.neighbours_cpu_cores + used)
    return max(0.0, delay - (replica.throttled_share or 0.0)) * theirs / used


def bound_elsewhere(case: Case) -> bool:
    """Return whether servers at their own limits, or full links, bound the job instead of crowded cores."""
    at_limit = case.value(AT_LIMIT)
    are_at_limit = (
        each.cpu_limit_cores is not None and (usages.cpu(case, each) or 0.0) >= at_limit
        for each in case.servers
    )
    return any(are_at_limit) or max(usages.links(case).values(), default=0.0) >= case.value(FULL)


def weight(case: Case, gain: Gain) -> tuple[Gain | None, Severity | None]:
    """Return the gain to promise if the other programs left, and the severity; None: that of the rule.

    A promise needs measured steps. The cause is a mere remark while the job starts, because a start uses all
    cores for a while, and also if something else is the bottleneck.
    """
    if bound_elsewhere(case) or _is_starting(case):
        return None, Severity.INFO
    return (gain, None) if case.active_trainers else (None, None)


def _is_starting(case: Case) -> bool:
    """Return whether a job has just started and made no step: it imports TensorFlow and builds its graph."""
    elapsed = case.snapshot.elapsed_seconds
    return not case.recording.steps and (elapsed is None or elapsed < case.value(START_SECONDS))


def gain_without(case: Case, crowd: tuple[Hurt, ...]) -> Gain | None:
    """Return the gain if the other programs left: between nothing and all the time spent waiting for them.

    No replica gets more than its limit, and all hurt replicas share the cores that the other programs free.
    """
    bounds = [
        min(1 / use, 1 + each.waits, 1 + each.others / _used_beside(case, each, crowd))
        for each in crowd
        if (use := usages.cpu(case, each.replica))
    ]
    if not bounds:
        return None
    trainers = {each.replica for each in case.trainers}
    hit = [each.replica.replica for each in crowd]
    # A parameter server delays all trainers; a trainer of an asynchronous job delays only itself.
    share = 1.0 if any(each not in trainers for each in hit) else len(hit) / max(1, len(trainers))
    return Gain(low=1.0, high=1 + share * (max(bounds) - 1))


def got(case: Case, replica: ReplicaSnapshot) -> Evidence:
    """Return the evidence of how many of its allowed cores a replica gets."""
    used, limit = replica.cpu_cores or 0.0, usages.cores(case, replica) or 0.0
    return Evidence(
        text=f"{replica.replica} gets {used:.2f} of the {limit:.2f} cores that it may use",
        sources=(case.source("cpu_cores", (replica,)),),
    )


def get_less(names: Sequence[str]) -> str:
    """Return a clause saying that these replicas get less than they may use."""
    get = "gets less than it may" if len(names) == 1 else "get less than they may"
    return f"{listed(names)} {get} use"


def _used_beside(case: Case, one: Hurt, crowd: tuple[Hurt, ...]) -> float:
    """Return the cores that one replica of a crowd and the crowd's other replicas on its machine use."""
    local, host = case.recording.run.engine == "local", one.replica.row.host
    beside = (each.replica.cpu_cores for each in crowd if local or each.replica.row.host == host)
    return rates.total(beside) or 1.0
