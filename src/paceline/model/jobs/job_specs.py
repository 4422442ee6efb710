"""A job as its user describes it: its roles, their resources, and the rules for its start and end."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from paceline.model.jobs import code_sources, placements
from paceline.model.roles import ReplicaId, Role

API_VERSION = "paceline.dev/v1alpha1"
KIND = "TrainingJob"
#: A running job may get as many more workers as it has, but at least 16 and at most 256 more
#: (`RoleSpec.most_replicas`).
SPARE_WORKERS = 16, 256

#: Placeholders that commands and environment values may have in braces; the agent fills them in.
PLACEHOLDERS = (
    "job", "role", "index", "attempt", "address", "threads", "run_dir", "checkpoint_dir", "code_dir",
    "ps_hosts", "worker_hosts", "chief_hosts", "evaluator_hosts", "cluster_spec",
    "replicas.ps", "replicas.worker", "replicas.chief", "replicas.evaluator",
)  # fmt: skip


class Framework(enum.StrEnum):
    """The framework whose environment variables replicas use to find each other."""

    TENSORFLOW = "tensorflow"  # TF_CONFIG
    PYTORCH = "pytorch"  # MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE and their kin
    PLAIN = "plain"  # none but Paceline's own


class Instrumentation(enum.StrEnum):
    """Whether Paceline instruments a script that does not report by itself."""

    AUTO = "auto"  # if the script uses a supported version of TensorFlow or PyTorch
    OFF = "off"


class CpuPolicy(enum.StrEnum):
    """Whether a replica has its cores for itself (cpuset) or shares them (quota)."""

    EXCLUSIVE = "exclusive"
    SHARED = "shared"


class SuccessPolicy(enum.StrEnum):
    """Whose completion makes the job a success."""

    CHIEF = "chief"
    ALL_WORKERS = "all-workers"


class CleanUp(enum.StrEnum):
    """What is removed after the job has ended; logs, samples and exit reasons always stay."""

    RUNNING = "running"  # end what still runs, keep each replica's scratch files
    SUCCEEDED = "succeeded"  # and remove the scratch files of those that did not fail
    ALL = "all"  # and remove all scratch files


class FitPolicy(enum.StrEnum):
    """What happens to a job that a cluster has no room for at the moment."""

    HOLD = "hold"  # it waits as a whole until all of it fits
    FAIL = "fail"  # it fails at once
    GANG = "gang"  # the scheduler of the cluster places all of its pods at once
    OFF = "off"  # the fit is not checked: its pods wait one by one

    @property
    def is_for_scheduler(self) -> bool:
        """Whether the job begins at once, and the scheduler decides when its pods run."""
        return self in (FitPolicy.GANG, FitPolicy.OFF)


class SecurityProfile(enum.StrEnum):
    """What containers may do."""

    IMAGE = "image"  # run as the image says, as root too
    RESTRICTED = "restricted"  # as Kubernetes' Pod Security Standard "restricted" requires


class RestartWhen(enum.StrEnum):
    """After which exits a replica is started again."""

    NEVER = "never"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """When a replica is started again, and how often at most (``limit`` restarts for each replica)."""

    when: RestartWhen = RestartWhen.ON_FAILURE
    limit: int = 3
    backoff_seconds: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGrowth:
    """After an out-of-memory kill: start again with ``factor`` times the memory, up to ``cap_bytes``."""

    factor: float = 1.5
    cap_bytes: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RoleSpec:
    """All replicas of one role.

    A resource of None is not limited. ``threads`` of None stands for the number of cores that the replica
    really has, which is found out in the replica itself. ``max_replicas`` of None stands for the default of
    `most_replicas`.
    """

    role: Role
    replicas: int = 1
    max_replicas: int | None = None
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    gpus: int = 0
    cpu_policy: CpuPolicy = CpuPolicy.SHARED
    threads: int | None = None
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    restart: RestartPolicy = dataclasses.field(default_factory=RestartPolicy)
    memory_growth: MemoryGrowth | None = None

    @property
    def most_replicas(self) -> int:
        """The most replicas that a running job may get: its parameter servers know this many addresses."""
        least, most = SPARE_WORKERS
        return self.max_replicas or self.replicas + min(max(self.replicas, least), most)

    @property
    def requested_millicores(self) -> int:
        """What a replica requests of a Kubernetes node, in thousandths of a core.

        With shared cores it requests a thousandth less than its limit, so its pod is Burstable. If the
        request equalled the limit in whole cores, the kubelet's static CPU manager would take these cores
        from all others (``policy_static.go``), and a Guaranteed pod cannot be resized on a node with it.
        """
        millicores = round((self.cpu_cores or 0) * 1000)
        return millicores - (1 if millicores > 1 and self.cpu_policy is CpuPolicy.SHARED else 0)


@dataclasses.dataclass(frozen=True, slots=True)
class CoreRange:
    """The fewest and the most cores that a replica may have."""

    low: float
    high: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Autoscale:
    """Autoscaling: cores are moved between the replicas of a running job, by the results of probes.

    Attributes:
        ranges: the range of cores for each role that takes part.
        most_cores: the most cores of all replicas together; None: as many as the job asks for.
        every_seconds: the least time between two rounds.
    """

    ranges: Mapping[Role, CoreRange]
    most_cores: float | None = None
    every_seconds: float = 1800.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Resources of a single replica instead of those of its role; None: as its role."""

    cpu_cores: float | None = None
    memory_bytes: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An emulated host of the local engine; None means: not limited."""

    name: str
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    bandwidth_bits_per_second: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A folder, claim or secret by name, and where the replicas see it."""

    name: str
    mount_path: str
    host_path: str | None = None
    claim: str | None = None
    secret: str | None = None
    read_only: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingSpec:
    """When a cluster lets the job begin: waiting jobs of higher priority come first.

    With a ``queue``, Kueue or Volcano decides, and ``fit`` and ``priority`` do not count. The
    ``priority_class`` is that of the pods, and of the job in its queue; None: the cluster's default.
    """

    fit: FitPolicy = FitPolicy.HOLD
    priority: int = 0
    queue: str | None = None
    priority_class: str | None = None

    @property
    def is_gang(self) -> bool:
        """Whether the scheduler of the cluster places all pods of the job at once, and no queue does."""
        return self.queue is None and self.fit is FitPolicy.GANG


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What containers may do, and the number of the user they run as; None: the user of the image."""

    profile: SecurityProfile = SecurityProfile.IMAGE
    user: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A whole job, as its job file describes it, with every default filled in."""

    name: str
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    framework: Framework = Framework.TENSORFLOW
    instrumentation: Instrumentation = Instrumentation.AUTO
    image: str | None = None
    command: tuple[str, ...] = ()
    code: code_sources.Code | None = None
    working_dir: str | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    roles: tuple[RoleSpec, ...] = ()
    overrides: Mapping[ReplicaId, Override] = dataclasses.field(default_factory=dict)
    placement: placements.PodPlacement = dataclasses.field(default_factory=placements.PodPlacement)
    scheduling: SchedulingSpec = dataclasses.field(default_factory=SchedulingSpec)
    hosts: tuple[Host, ...] = ()
    success: SuccessPolicy = SuccessPolicy.ALL_WORKERS
    clean_up: CleanUp = CleanUp.RUNNING
    active_deadline_seconds: float | None = None
    ttl_after_finished_seconds: float | None = None
    termination_grace_seconds: float = 30.0
    volumes: tuple[Volume, ...] = ()
    secrets: tuple[str, ...] = ()
    security: Security = dataclasses.field(default_factory=Security)
    autoscale: Autoscale | None = None
    training: Mapping[str, Any] | None = None

    @property
    def asked_cores(self) -> float | None:
        """Return the cores of all replicas together; None: the cores of a replica are not limited."""
        cores = [self.role_of(each).cpu_cores for each in self.replicas()]
        return None if None in cores else sum(each or 0.0 for each in cores)

    def role(self, role: Role) -> RoleSpec | None:
        """Return the spec of one role, or None when the job has no such replicas."""
        return next((spec for spec in self.roles if spec.role is role), None)

    def core_range(self, role: Role) -> CoreRange | None:
        """Return the range in which autoscaling keeps the cores of a role's replicas; None: it does not."""
        return None if self.autoscale is None else self.autoscale.ranges.get(role)

    def role_of(self, replica: ReplicaId) -> RoleSpec:
        """Return the spec of a replica's role, with the cores and the memory of this replica.

        Raises:
            KeyError: the job has no such role.
        """
        role, own = self.role(replica.role), self.overrides.get(replica)
        if role is None:
            raise KeyError(f"the job has no {replica.role}")
        if own is None:
            return role
        return dataclasses.replace(
            role,
            cpu_cores=role.cpu_cores if own.cpu_cores is None else own.cpu_cores,
            memory_bytes=role.memory_bytes if own.memory_bytes is None else own.memory_bytes,
        )

    def trainers(self) -> int:
        """Return how many replicas train."""
        return sum(replica.role.trains for replica in self.replicas())

    def replicas(self) -> tuple[ReplicaId, ...]:
        """Return every replica of the job, in the order of its roles."""
        return tuple(ReplicaId(s.role, i) for s in self.roles for i in range(s.replicas))

    def has(self, replica: ReplicaId) -> bool:
        """Whether the job has this replica."""
        role = self.role(replica.role)
        return role is not None and replica.index < role.replicas

    def spares(self) -> tuple[ReplicaId, ...]:
        """Return the workers that the job does not have, but may get while it runs."""
        role = self.role(Role.WORKER)
        indices = range(role.replicas, role.most_replicas) if role else ()
        return tuple(ReplicaId(Role.WORKER, index) for index in indices)

    def with_workers(self, workers: int, *, most: int | None = None) -> JobSpec:
        """Return the job with a number of workers; the most it may get stays unless ``most`` is given."""
        roles = tuple(
            dataclasses.replace(role, replicas=workers, max_replicas=most or role.most_replicas)
            if role.role is Role.WORKER
            else role
            for role in self.roles
        )
        return dataclasses.replace(self, roles=roles)

    def with_queue(self, queue: str) -> JobSpec:
        """Return the job in another queue of Kueue or Volcano."""
        return dataclasses.replace(self, scheduling=dataclasses.replace(self.scheduling, queue=queue))

    def command_of(self, role: Role) -> tuple[str, ...]:
        """Return the command of a role: its own, or the job's."""
        spec = self.role(role)
        return (spec.command if spec else ()) or self.command

    def environment_of(self, role: Role) -> dict[str, str]:
        """Return the environment of a role: the job's variables, overridden by the role's own."""
        spec = self.role(role)
        return {**self.environment, **(spec.environment if spec else {})}
