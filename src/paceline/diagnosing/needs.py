"""The data that rules need before they can judge, and how a user can provide it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable

from paceline.diagnosing import usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.model.jobs.job_specs import CpuPolicy, Framework

LEAST_SAMPLES = Threshold(
    "needs.least-samples", 5, Unit.COUNT,
    means="Fewer samples of a replica than this say nothing of its mean.",
)  # fmt: skip
LEAST_SECONDS = Threshold(
    "needs.least-seconds", 3, Unit.COUNT,
    means="This many counted seconds of each replica say how long threads wait for a core. An agent counts "
    "the waits of threads in one second of several (see docs/agent-protocol.md).",
)  # fmt: skip
LEAST_REPORTS = Threshold(
    "needs.least-reports", 3, Unit.COUNT,
    means="Fewer step reports than this say nothing of a trainer's speed.",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Data that a rule needs.

    Attributes:
        what: the data in words.
        remedy: how to provide it.
        lacks: returns whether a case does not have the data.
    """

    what: str
    remedy: str
    lacks: Callable[[Case], bool]


def _few_samples(case: Case, field: str, least: Threshold) -> bool:
    """Return whether more than half of the replicas have fewer than ``least`` samples with a field."""
    replicas, count = (*case.servers, *case.trainers), int(case.value(least))
    known = sum(_has(case.samples_by_replica.get(each.replica, ()), field, count) for each in replicas)
    return not replicas or known < len(replicas) - len(replicas) // 2


def _few_reports(case: Case) -> bool:
    reports = (case.steps_by_replica.get(each.replica, ()) for each in case.trainers)
    least = int(case.value(LEAST_REPORTS))
    return not any(_has(own, "steps", least) for own in reports)


def _has(measured: Iterable[object], field: str, least: int) -> bool:
    """Return whether a field is known at least this often.

    The count stops at ``least``, because hours of samples have millions of values.
    """
    known = (each for each in measured if getattr(each, field) is not None)
    return sum(1 for _ in itertools.islice(known, least)) == least


def _no_input_wait(case: Case) -> bool:
    return all(each.input_wait_share is None for each in case.trainers)


def _no_all_reduce(case: Case) -> bool:
    """Return whether the job has several PyTorch ranks and it is not measured how long they wait."""
    ranks = case.trainers if case.spec.framework is Framework.PYTORCH else ()
    return len(ranks) > 1 and all(each.all_reduce_share is None for each in ranks)


def _no_allowed_cpus(case: Case) -> bool:
    """Return whether the allowed CPUs, needed to see which replicas have exclusive cores, are not measured.

    The local engine itself records which cores it assigned.
    """
    wanted = [each for each in case.spec.roles if each.cpu_policy is CpuPolicy.EXCLUSIVE]
    return (
        case.recording.run.engine != "local"
        and bool(wanted)
        and all(each.allowed_cpus is None for role in wanted for each in case.of_role(role.role))
    )


CPU = Need(
    what="the CPU of parameter servers and trainers, for some seconds",
    remedy="wait a little, or see why nothing is measured: paceline describe {name}",
    lacks=lambda case: _few_samples(case, "cpu_cores", LEAST_SAMPLES),
)
NETWORK = Need(
    what="the network of parameter servers and trainers",
    remedy="on one machine it is measured with emulated hosts (spec.hosts, as root), on a cluster always",
    lacks=lambda case: _few_samples(case, "network_received_bytes", LEAST_SAMPLES),
)
MEMORY = Need(
    what="the memory of parameter servers and trainers",
    remedy="wait a little, or see why nothing is measured: paceline describe {name}",
    lacks=lambda case: _few_samples(case, "memory_bytes", LEAST_SAMPLES),
)
NEIGHBOURS = Need(
    what="what other programs use of the same cores",
    remedy="it is measured by agents that may read /proc/stat",
    lacks=lambda case: _few_samples(case, "neighbours_cpu_cores", LEAST_SAMPLES),
)
STOLEN = Need(
    what="what a hypervisor gives to others of the same cores",
    remedy="it is measured by agents of this version that may read /proc/stat",
    lacks=lambda case: _few_samples(case, "stolen_cpu_cores", LEAST_SAMPLES),
)
RUN_DELAY = Need(
    what="how long threads wait for a core",
    remedy="it is measured by agents of this version, on kernels that tell it (/proc/PID/task/TID/schedstat)",
    lacks=lambda case: _few_samples(case, "run_delay_seconds", LEAST_SECONDS),
)
ALLOWED_CPUS = Need(
    what="on which CPUs replicas may run",
    remedy="it is measured by agents of this version",
    lacks=_no_allowed_cpus,
)
STEPS = Need(
    what="step reports of the trainers",
    remedy="paceline describe {name} says what is seen of its scripts, and why not more",
    lacks=_few_reports,
)
INPUT_WAIT = Need(
    what="how long trainers wait for their input",
    remedy="it is seen of scripts that feed their batches, of a DataLoader of PyTorch, and of "
    "paceline.training; another may add input_wait_seconds to step reports of its own "
    "(docs/agent-protocol.md)",
    lacks=_no_input_wait,
)
ALL_REDUCE = Need(
    what="how long ranks wait for each other's gradients",
    remedy="it is seen of PyTorch's DistributedDataParallel and all_reduce (framework: pytorch)",
    lacks=_no_all_reduce,
)
RETRANSMISSIONS = Need(
    what="how many TCP segments are sent again",
    remedy="on one machine it is measured with emulated hosts (spec.hosts, as root), on a cluster always",
    lacks=lambda case: _few_samples(case, "retransmitted_segments", LEAST_SAMPLES),
)
TRAFFIC = Need(
    what="the traffic of variables",
    remedy="paceline trace {name}; paceline.training counts it all the time",
    lacks=lambda case: not case.traffic,
)
TRACE = Need(
    what="a trace",
    remedy="paceline trace {name} takes one of a job that runs",
    lacks=lambda case: not case.recording.traces,
)
PLAN = Need(
    what="sizes of the model's variables",
    remedy="paceline describe {name} says what is seen of its scripts, and why not more",
    lacks=lambda case: case.recording.plan is None,
)
PLAN_OR_TRACE = Need(
    what="sizes of the model's variables, or a trace",
    remedy="paceline trace {name}; paceline describe {name} says what is seen of its scripts",
    lacks=lambda case: case.recording.plan is None and not case.recording.traces,
)
LINKS = Need(
    what="the bandwidth of hosts",
    remedy="of emulated hosts it is in the job file (spec.hosts); of nodes it is not known",
    lacks=lambda case: not usages.links(case),
)
#: Data that only jobs with variables on parameter servers have: other jobs do not miss it.
_OF_SERVERS = (TRAFFIC, TRACE, PLAN, PLAN_OR_TRACE)


def applies(need: Need, case: Case) -> bool:
    """Return whether jobs of this framework can have the needed data at all."""
    return case.spec.framework is not Framework.PYTORCH or need not in _OF_SERVERS
