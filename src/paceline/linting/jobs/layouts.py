"""Rules on the number of replicas and on their hosts."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.linting.rules import LintHit, counted, rule
from paceline.model import quantities
from paceline.model.explanations.findings import Severity
from paceline.model.jobs import job_specs
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import Role
from paceline.specs import JobFile
from paceline.specs.yaml_text import documents

#: From this many trainers on, a single parameter server is certainly the bottleneck.
MANY_WORKERS = 16

HOSTNAME = "kubernetes.io/hostname"

_PS: documents.Path = ("spec", "roles", "ps")
_STRATEGY: documents.Path = ("spec", "placement", "strategy")


def _counts(spec: job_specs.JobSpec) -> tuple[int, int]:
    """Return the number of PS and the number of trainers."""
    ps = sum(role.replicas for role in spec.roles if role.role is Role.PS)
    return ps, sum(role.replicas for role in spec.roles if role.role.trains)


@rule(
    "JOB401",
    "More parameter servers than workers",
    Severity.WARNING,
    why="Every step of a worker calls every PS. With more PS than workers, each is mostly idle, the calls "
    "cost time, and the cores would train more as workers.",
    fix="Use at most as many PS as workers; most models need one for several workers.",
)
def more_ps_than_workers(job: JobFile) -> Iterator[LintHit]:
    """PS must not outnumber workers."""
    ps, trainers = _counts(job.spec)
    if ps > trainers:
        yield LintHit(job.document, (*_PS, "replicas"), f"{ps} PS serve {counted(trainers, 'trainer')}")


@rule(
    "JOB402",
    "One parameter server for many workers",
    Severity.WARNING,
    why="All pulls and pushes meet in one process and one network connection. One TensorFlow PS moves "
    "about half a gigabyte a second over gRPC, four move three to four times as much.",
    fix="Use several PS, and partition the big tables over them.",
)
def one_ps_for_many(job: JobFile) -> Iterator[LintHit]:
    """One PS is not enough for many workers."""
    ps, trainers = _counts(job.spec)
    if ps == 1 and trainers >= MANY_WORKERS:
        yield LintHit(job.document, (*_PS, "replicas"), f"1 PS serves {trainers} trainers")


@rule(
    "JOB501",
    "Colocation that does not come out even",
    Severity.WARNING,
    why="Colocation puts one PS with its share of the workers on each host. When the shares differ, some "
    "hosts carry more than others and their workers are stragglers.",
    fix="Make the number of workers a multiple of the number of PS.",
)
def uneven_colocation(job: JobFile) -> Iterator[LintHit]:
    """Colocated workers must divide evenly."""
    ps, trainers = _counts(job.spec)
    if job.spec.placement.strategy is PlacementStrategy.COLOCATE and ps and trainers % ps:
        message = (
            f"{trainers} trainers over {ps} PS: {counted(trainers % ps, 'host')} with one more than the rest"
        )
        yield LintHit(job.document, _STRATEGY, message)


@rule(
    "JOB502",
    "More parameter servers than hosts to spread them over",
    Severity.WARNING,
    why="Spreading is meant to give each PS the network of a host of its own. Two PS on one host share it.",
    fix="Use as many hosts as PS, or fewer PS.",
)
def too_few_hosts_to_spread(job: JobFile) -> Iterator[LintHit]:
    """Each PS needs a host."""
    ps, _ = _counts(job.spec)
    hosts = len(job.spec.hosts)
    if job.spec.placement.strategy is PlacementStrategy.SPREAD_PS and 0 < hosts < ps:
        yield LintHit(job.document, _STRATEGY, f"{ps} PS are to be spread over {counted(hosts, 'host')}")


@rule(
    "JOB503",
    "Isolation on a single host",
    Severity.WARNING,
    why="Isolation keeps PS and workers on separate hosts, which takes at least two.",
    fix="Name at least two hosts, or use another strategy.",
)
def isolation_on_one_host(job: JobFile) -> Iterator[LintHit]:
    """Isolation needs two hosts."""
    spec = job.spec
    if spec.placement.strategy is not PlacementStrategy.ISOLATE or len(spec.hosts) > 1:
        return
    if spec.hosts:
        yield LintHit(
            job.document, _STRATEGY, "PS and workers are to be on separate hosts, but there is only one host"
        )
    elif spec.image is None:
        message = (
            "PS and workers are to be on separate hosts, but without `hosts` this machine is the only one"
        )
        yield LintHit(job.document, _STRATEGY, message)


@rule(
    "JOB504",
    "Hosts too small for what is placed on them",
    Severity.ERROR,
    why="A replica that is bigger than every host cannot start. Replicas that together ask for more cores "
    "than the hosts have slow each other down, and more memory than there is ends in out-of-memory "
    "kills.",
    fix="Use larger or more hosts, or fewer or smaller replicas.",
)
def small_hosts(job: JobFile) -> Iterator[LintHit]:
    """Everything must fit."""
    spec = job.spec
    if not spec.hosts:
        return
    for resource, unit in (("cpu_cores", "CPU"), ("memory_bytes", "memory")):
        sizes = [getattr(host, resource) for host in spec.hosts]
        if any(size is None for size in sizes):
            continue
        key = "cpu" if resource == "cpu_cores" else "memory"
        alone = [role for role in spec.roles if (getattr(role, resource) or 0) > max(sizes)]
        for role in alone:
            asked = _amount(resource, getattr(role, resource))
            message = (
                f"a {role.role} asks for {asked} {unit}, the largest host has {_amount(resource, max(sizes))}"
            )
            yield LintHit(job.document, ("spec", "roles", str(role.role), key), message)
        total = sum((getattr(role, resource) or 0) * role.replicas for role in spec.roles)
        if total > sum(sizes) and not alone:
            here, there = _amount(resource, total), _amount(resource, sum(sizes))
            message = f"all replicas ask for {here} {unit}, all hosts have {there}"
            exclusive = any(role.cpu_policy is job_specs.CpuPolicy.EXCLUSIVE for role in spec.roles)
            hard = resource == "memory_bytes" or exclusive
            severity = Severity.ERROR if hard else Severity.WARNING
            yield LintHit(job.document, ("spec", "hosts"), message, severity=severity, key=True)


def _amount(resource: str, amount: float) -> str:
    if resource == "cpu_cores":
        return quantities.quantity_cores(amount)
    return quantities.format_bytes(amount)


@rule(
    "JOB505",
    "All replicas pinned to one node",
    Severity.WARNING,
    why="A node selector on the host name leaves exactly one node, so nothing can be spread or isolated, "
    "and the job waits for ever when that node is gone.",
    fix="Remove the selector, or select by a label that several nodes have.",
)
def pinned_to_one_node(job: JobFile) -> Iterator[LintHit]:
    """A host name selects one node only."""
    placement = job.spec.placement
    several = placement.strategy in (PlacementStrategy.SPREAD_PS, PlacementStrategy.ISOLATE)
    if HOSTNAME in placement.node_selector and several:
        message = f"strategy {placement.strategy} wants several nodes, {HOSTNAME} allows one"
        yield LintHit(job.document, ("spec", "placement", "node_selector", HOSTNAME), message, key=True)


@rule(
    "JOB506",
    "A name that no Service may have",
    Severity.WARNING,
    why="On Kubernetes a job has a Service of its name, and that has to begin with a letter (RFC 1035). On "
    "one machine any name will do.",
    fix="Let metadata.name begin with a letter.",
)
def name_of_no_service(job: JobFile) -> Iterator[LintHit]:
    """A name begins with a letter."""
    name = job.spec.name
    if name[:1].isdigit() and job.spec.image is not None:
        yield LintHit(job.document, ("metadata", "name"), f"{name} begins with a digit")


RULES = (
    more_ps_than_workers,
    one_ps_for_many,
    uneven_colocation,
    too_few_hosts_to_spread,
    isolation_on_one_host,
    small_hosts,
    pinned_to_one_node,
    name_of_no_service,
)
