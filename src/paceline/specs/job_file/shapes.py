"""The shape of a job file as pydantic models, one for each mapping in it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from paceline.model.jobs import job_specs
from paceline.specs.job_file import fields, sections
from paceline.specs.job_file.sections import Section
from paceline.specs.job_file.trainings import TrainingSection

MAX_REPLICAS = 10_000
OPERATORS = ("Equal", "Exists")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_Environment = dict[fields.VariableName, fields.EnvironmentValue]
_Labels = dict[fields.LabelKey, fields.LabelValue]
_Kind = Annotated[Literal["TrainingJob"], fields.choice((job_specs.KIND,))]
_Replicas = Annotated[int, fields.whole(0, MAX_REPLICAS)]
_Gpus = Annotated[int, fields.whole(0, 1024)]
_Limit = Annotated[int, fields.whole(0, 10_000)]
_Operator = Annotated[str, fields.choice(OPERATORS)]
_Effect = Annotated[str, fields.choice(EFFECTS)]
_TolerationSeconds = Annotated[int, fields.whole(0, 315_360_000)]
_Priority = Annotated[int, fields.whole(-1_000_000, 1_000_000)]
_User = Annotated[int, fields.whole(1, 2**31 - 1)]
_Factor = Annotated[
    float,
    fields.Leaf(fields.number(1, 16, above=True), {"type": "number", "exclusiveMinimum": 1, "maximum": 16}),
]


class MetadataSection(Section):
    """The job's name and labels."""

    name: fields.Name = Field(description="the job's name, unique in the store")
    labels: _Labels = Field({}, description="labels for your own sorting, passed on to Kubernetes")


class RestartSection(Section):
    """When a replica is started again."""

    when: fields.RestartWhen | None = Field(
        None, description="never, on-failure or always; default: on-failure"
    )
    limit: _Limit | None = Field(None, description="restarts of each replica at most; default: 3")
    backoff: fields.Seconds | None = Field(
        None, description="wait before the first restart, doubled each time; default: 1s"
    )


class MemoryGrowthSection(Section):
    """More memory after an out-of-memory kill."""

    factor: _Factor | None = Field(
        None, description="memory of the next attempt over this one's; default: 1.5"
    )
    cap: fields.Bytes | None = Field(None, description="memory beyond which it does not grow")


class RoleSection(Section):
    """All replicas of one role."""

    replicas: _Replicas = Field(1, description="how many; 0 leaves the role out")
    max_replicas: _Replicas | None = Field(
        None,
        description="workers: up to how many a running job may be scaled; "
        "default: as many again, at least 16 and at most 256 more",
    )
    cpu: fields.CpuCores | None = Field(None, description="cores of each replica; default: no limit")
    memory: fields.Bytes | None = Field(None, description="memory of each replica; default: no limit")
    gpu: _Gpus = Field(0, description="GPUs of each replica")
    cpu_policy: fields.CpuPolicy | None = Field(
        None, description="shared (quota) or exclusive (cores of its own); default: the job's"
    )
    threads: fields.Threads | None = Field(
        None, description="auto (as many as cores) or a number; default: the job's"
    )
    command: fields.Command | None = Field(None, description="words of the command; default: the job's")
    environment: _Environment = Field({}, description="variables over the job's own")
    restart: RestartSection | None = Field(None, description="when a replica is started again")
    memory_growth: MemoryGrowthSection | None = Field(
        None, description="more memory after an out-of-memory kill"
    )


class RolesSection(Section):
    """The replicas of the job by role, in the order in which they are listed.

    A role with nothing after its colon is there, with one replica and every default.
    """

    ps: RoleSection | None = Field(None, description="parameter servers: hold the variables")
    worker: RoleSection | None = Field(None, description="workers: run training steps")
    chief: RoleSection | None = Field(
        None, description="the worker that also saves checkpoints; at most one replica"
    )
    evaluator: RoleSection | None = Field(None, description="evaluates checkpoints beside the training")

    @model_validator(mode="before")
    @classmethod
    def _fill_empty(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: {} if sections.is_empty(role) else role for key, role in value.items()}


class OverrideSection(Section):
    """What one replica has instead of what its role says."""

    cpu: fields.CpuCores | None = Field(None, description="its cores; default: as its role")
    memory: fields.Bytes | None = Field(None, description="its memory; default: as its role")


class CoreRangeSection(Section):
    """How few and how many cores a replica may have."""

    min: fields.CpuCores = Field(description="at least so many cores")
    max: fields.CpuCores = Field(description="at most so many cores")


class ScaledRoleSection(Section):
    """What of a role is scaled while the job runs."""

    cpu: CoreRangeSection = Field(description="the cores of each of its replicas")


class AutoscaleSection(Section):
    """Cores that are moved between replicas while the job runs, to those that bind by experiment."""

    ps: ScaledRoleSection | None = Field(None, description="of the parameter servers")
    worker: ScaledRoleSection | None = Field(None, description="of the workers")
    chief: ScaledRoleSection | None = Field(None, description="of the chief")
    cpu: fields.CpuCores | None = Field(
        None, description="cores of all replicas together; default: as many as the job asks for"
    )
    every: fields.Seconds | None = Field(
        None, description="how long all stays as it is between two rounds, at least; default: 30m"
    )


class TolerationSection(Section):
    """A Kubernetes toleration."""

    key: fields.LabelKey | None = Field(None, description="the taint's key; without it: all taints")
    operator: _Operator = Field("Equal", description="Equal or Exists")
    value: fields.LabelValue | None = Field(None, description="the taint's value, under Equal")
    effect: _Effect | None = Field(
        None, description="NoSchedule, PreferNoSchedule or NoExecute; default: all"
    )
    toleration_seconds: _TolerationSeconds | None = Field(
        None, description="seconds that a NoExecute taint is tolerated; default: for ever"
    )


class PlacementSection(Section):
    """Which replicas go on which hosts."""

    strategy: fields.Strategy | None = Field(
        None, description="any, spread-ps, colocate (a PS with its workers) or isolate; default: any"
    )
    node_selector: _Labels = Field({}, description="labels that a Kubernetes node must have")
    tolerations: list[TolerationSection] = Field([], description="taints that the replicas put up with")


class SchedulingSection(Section):
    """When a cluster lets the job begin."""

    fit: fields.FitPolicy | None = Field(
        None,
        description="hold (until all of it fits), fail (if it does not), gang (the scheduler places all or "
        "none) or off; default: hold",
    )
    priority: _Priority = Field(0, description="of the jobs that wait, higher ones begin first")
    queue: fields.ObjectName | None = Field(
        None, description="a queue of Kueue or Volcano that decides instead; default: none"
    )
    priority_class: fields.ObjectName | None = Field(
        None, description="the PriorityClass of the pods, also in a queue; default: the cluster's"
    )


class HostSection(Section):
    """An emulated host of the local engine."""

    name: fields.Name = Field(description="its name")
    cpu: fields.CpuCores | None = Field(None, description="cores; default: not limited")
    memory: fields.Bytes | None = Field(None, description="memory; default: not limited")
    bandwidth: fields.BitsPerSecond | None = Field(
        None, description="bits per second of its network; default: not limited"
    )


class VolumeSection(Section):
    """A folder, claim or secret, and where the replicas see it."""

    name: fields.VolumeName = Field(description="its name")
    host_path: fields.AbsolutePath | None = Field(None, description="a folder of the host")
    claim: fields.ObjectName | None = Field(None, description="a PersistentVolumeClaim")
    secret: fields.ObjectName | None = Field(None, description="a Secret, its keys as files")
    mount_path: fields.AbsolutePath = Field(description="where the replicas see it")
    read_only: fields.Boolean = Field(False, description="whether the replicas may only read")


class SecuritySection(Section):
    """What containers may do."""

    profile: fields.SecurityProfile | None = Field(
        None,
        description="image (run as the image says) or restricted (the Pod Security Standard); default: image",
    )
    user: _User | None = Field(
        None,
        description="number of the user that runs the command and may write to volumes; default: the image's",
    )


class GitSection(Section):
    """Code from a git repository."""

    url: fields.GitUrl = Field(description="of the repository: https, http, ssh, git, file, or host:path")
    revision: fields.Revision = Field(description="a commit (best: it cannot move), a tag or a branch")


class ArchiveSection(Section):
    """Code from a tar, tar.gz or zip archive."""

    url: fields.ArchiveUrl = Field(description="of the archive: https, http, s3, hdfs, webhdfs or file")
    sha256: fields.Sha256 = Field(description="its checksum, as sha256sum prints it")


class CodeSection(Section):
    """Where the code of the replicas comes from."""

    git: GitSection | None = Field(None, description="a commit of a git repository")
    archive: ArchiveSection | None = Field(None, description="an archive by its URL, with its checksum")
    folder: fields.RelativePath | None = Field(
        None, description="a folder, relative to the job file's, of at most 1 MiB packed; it goes with submit"
    )
    config_map: fields.ObjectName | None = Field(
        None, description="such a folder as it is on a cluster: a ConfigMap with code.tar.gz in it"
    )
    path: fields.InnerPath | None = Field(
        None, description="the folder within it that is the code; default: all of it"
    )


_Overrides = dict[fields.ReplicaName, OverrideSection]


class SpecSection(Section):
    """What the job is to do."""

    framework: fields.Framework | None = Field(
        None,
        description="tensorflow (TF_CONFIG), pytorch (RANK, MASTER_ADDR ...) or plain; default: tensorflow",
    )
    instrumentation: fields.Instrumentation | None = Field(
        None,
        description="auto (a script of TensorFlow or PyTorch is looked into as it is) or off; default: auto",
    )
    image: fields.Image | None = Field(None, description="container image; only Kubernetes uses it")
    command: fields.Command | None = Field(
        None, description="words of the command of every role that has none of its own"
    )
    code: CodeSection | None = Field(
        None, description="where the code comes from; default: the image, or the job file's folder"
    )
    working_dir: fields.RelativePath | None = Field(
        None,
        description="folder in which commands start, relative to the code or else the job file's folder; "
        "default: that folder",
    )
    environment: _Environment = Field({}, description="variables of every replica; numbers as written")
    cpu_policy: fields.CpuPolicy | None = Field(
        None, description="shared (quota) or exclusive (cores of its own); default: shared"
    )
    threads: fields.Threads | None = Field(
        None, description="auto (as many as the replica has cores) or a number; default: auto"
    )
    roles: RolesSection = Field(description="the replicas, by role; at least one worker or chief")
    overrides: _Overrides = Field(
        {}, description="what single replicas have instead of what their role says, by name: ps-0, worker-3"
    )
    placement: PlacementSection | None = Field(None, description="which replicas go on which hosts")
    scheduling: SchedulingSection | None = Field(None, description="when a cluster lets the job begin")
    hosts: list[HostSection] = Field(
        [], description="emulated hosts of the local engine; default: this machine"
    )
    success: fields.Success | None = Field(
        None, description="chief or all-workers; default: chief when there is one, else all-workers"
    )
    clean_up: fields.CleanUp | None = Field(
        None, description="what ends with the job: running, succeeded or all; default: running"
    )
    active_deadline: fields.Seconds | None = Field(
        None, description="time after which the job fails; default: none"
    )
    ttl_after_finished: fields.Seconds | None = Field(
        None, description="time after which an ended job is deleted; default: never"
    )
    termination_grace: fields.Seconds | None = Field(
        None, description="time between SIGTERM and SIGKILL; default: 30s"
    )
    volumes: list[VolumeSection] = Field([], description="folders, claims and secrets for the replicas")
    secrets: list[fields.ObjectName] = Field(
        [], description="Secrets whose keys become environment variables"
    )
    security: SecuritySection | None = Field(None, description="what containers may do")
    autoscale: AutoscaleSection | None = Field(
        None, description="cores that are moved to replicas that bind while the job runs; default: none are"
    )
    training: TrainingSection | None = Field(None, description="what the training library is to do")


class JobSection(Section):
    """A job file."""

    apiVersion: fields.ApiVersion = Field(description="version of this format")
    kind: _Kind = Field(description="kind of this file")
    metadata: MetadataSection = Field(description="name and labels")
    spec: SpecSection = Field(description="what the job is to do")
