"""Replicas as pods: their class, their cores, and what reaches them as it was written."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support import pod_security

from paceline.errors import EngineError, InvalidInput
from paceline.model import quantities
from paceline.model.jobs.code_sources import Archive, Code, Git
from paceline.model.jobs.job_specs import CpuPolicy, JobSpec, RoleSpec, Security, SecurityProfile, Volume
from paceline.model.jobs.nodes import Resources
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement, Toleration
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import config_maps, labels, manifests, pods, services
from paceline.rendering.surroundings import AgentSetup, Surroundings
from paceline.scheduling import items

ADS = Surroundings(namespace="ads")

GIB = 1 << 30


def job(strategy: PlacementStrategy = PlacementStrategy.ANY, **more: Any) -> JobSpec:
    roles = more.pop("roles", None) or tuple(
        RoleSpec(role=role, replicas=count, cpu_cores=2.0, memory_bytes=GIB)
        for role, count in ((Role.PS, 2), (Role.WORKER, 5))
    )
    fields = {"image": "team/clicks:1", "command": ("python", "train.py"), **more}
    return JobSpec(name="clicks", roles=roles, placement=PodPlacement(strategy=strategy), **fields)


def pod(spec: JobSpec, name: str = "worker-0", **more: Any) -> dict[str, Any]:
    return pods.pod(spec, ReplicaId.parse(name), ADS, **more)


def told_in(spec: JobSpec) -> dict[str, str]:
    made: dict[str, str] = config_maps.config_map(spec, ADS, services.cluster(spec, ADS))["data"]
    return made


def quality_of_service(spec: dict[str, Any]) -> str:
    """The class that the kubelet gives (``pkg/apis/core/v1/helper/qos/qos.go``), for CPU and memory."""
    every = [each.get("resources", {}) for each in (*spec["containers"], *spec.get("initContainers", ()))]
    if not any(each.get("requests") or each.get("limits") for each in every):
        return "BestEffort"
    for each in every:
        limits = {name: quantities.parse_quantity(text) for name, text in each.get("limits", {}).items()}
        requests = {name: quantities.parse_quantity(text) for name, text in each.get("requests", {}).items()}
        if not {"cpu", "memory"} <= limits.keys() or requests != limits:
            return "Burstable"
    return "Guaranteed"


CODES = st.none() | st.sampled_from(
    [
        Code(git=Git(url="https://h.example/x.git", revision="v1")),
        Code(archive=Archive(url="s3://b/x.tgz", sha256="0" * 64)),
        Code(config_map="clicks-code"),
    ]
)


@given(
    code=CODES,
    policy=st.sampled_from(CpuPolicy),
    millicores=st.none() | st.integers(1, 64_000) | st.integers(1, 64).map(lambda cores: cores * 1000),
    memory=st.none() | st.integers(1, 1 << 40),
    gpus=st.integers(0, 8),
)
def test_cores_are_exclusive_if_and_only_if_asked_for(
    code: Code | None, policy: CpuPolicy, millicores: int | None, memory: int | None, gpus: int
) -> None:
    cores = None if millicores is None else millicores / 1000
    role = RoleSpec(role=Role.WORKER, cpu_cores=cores, memory_bytes=memory, gpus=gpus, cpu_policy=policy)
    made = pod(job(roles=(role,), code=code))["spec"]
    assert len(made["initContainers"]) == (1 if code is None else 2)
    is_whole = cores is not None and cores.is_integer()
    given_cores = quality_of_service(made) == "Guaranteed" and is_whole
    assert given_cores == (policy is CpuPolicy.EXCLUSIVE and is_whole and memory is not None)
    limits = made["containers"][0].get("resources", {}).get("limits", {})
    if cores is not None:
        assert quantities.parse_cpu_cores(limits["cpu"]) == cores
    assert int(limits.get("nvidia.com/gpu", 0)) == gpus


@given(
    policy=st.sampled_from(CpuPolicy),
    millicores=st.integers(1, 8_000),
    memory=st.integers(1, 1 << 40),
    gpus=st.integers(0, 2),
)
def test_a_pod_requests_what_the_fit_counts(
    policy: CpuPolicy, millicores: int, memory: int, gpus: int
) -> None:
    role = RoleSpec(
        role=Role.PS, cpu_cores=millicores / 1000, memory_bytes=memory, gpus=gpus, cpu_policy=policy
    )
    requests = pod(job(roles=(role,)), "ps-0")["spec"]["containers"][0]["resources"]["requests"]
    assert items.requests(role) == Resources(
        millicores=int(quantities.parse_quantity(requests["cpu"]) * 1000),
        memory_bytes=int(quantities.parse_quantity(requests["memory"])),
        gpus=int(requests.get("nvidia.com/gpu", 0)),
        pods=1,
    )


hostile = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30
) | st.sampled_from(["$(HOME)", "$$(X)", "`id`", "'\"", "a\nb", "{job}", "%s", "&&", "; rm"])


@given(
    command=st.lists(hostile, min_size=1),
    environment=st.dictionaries(st.from_regex("[A-Z]{1,4}", fullmatch=True), hostile),
)
def test_commands_and_environments_arrive_as_they_were_written(
    command: list[str], environment: dict[str, str]
) -> None:
    spec = job(command=tuple(command), environment=environment)
    made = pod(spec)["spec"]["containers"][0]
    assert "args" not in made
    assert not set(command) & set(made["command"]) - {""}, (
        "nothing of the user's is on the pod's command line"
    )
    assert "env" not in made
    told = json.loads(told_in(spec)["worker.json"])
    assert told["command"] == command
    assert {name: told["environment"][name] for name in environment} == environment


def test_the_parts_of_a_config_make_a_whole_one() -> None:
    spec = job()
    data = told_in(spec)
    cluster, role, own = config_maps.arguments(Role.WORKER, 3, 2)
    whole = {**json.loads(data["cluster.json"]), **json.loads(data["worker.json"]), **json.loads(own)}
    assert (cluster, role) == ("/paceline/config/cluster.json", "/paceline/config/worker.json")
    assert (whole["role"], whole["index"], whole["attempt"]) == ("worker", 3, 2)
    assert whole["cluster"]["ps"] == ["clicks-ps-0.clicks.ads.svc:2222", "clicks-ps-1.clicks.ads.svc:2222"]
    assert len(whole["cluster"]["worker"]) == 5


def test_a_name_leads_to_its_replica() -> None:
    """Kubernetes makes the name of host name, subdomain and namespace, for pods that a service selects."""
    spec = job()
    service, made = services.service(spec, ADS), pod(spec, "ps-1", attempt=3)
    assert made["metadata"]["name"] == "clicks-ps-1-3"
    assert service["spec"]["selector"].items() <= made["metadata"]["labels"].items()
    assert service["metadata"]["name"] == made["spec"]["subdomain"]
    host, subdomain, namespace = services.cluster(spec, ADS)["ps"][1].split(".")[:3]
    assert (host, subdomain, namespace) == (made["spec"]["hostname"], made["spec"]["subdomain"], "ads")


def test_own_labels_win() -> None:
    made = pod(job(labels={"team": "ads", labels.JOB: "other"}))
    assert made["metadata"]["labels"] == {
        "team": "ads",
        "app.kubernetes.io/managed-by": "paceline",
        "paceline.dev/job": "clicks",
        "paceline.dev/role": "worker",
        "paceline.dev/index": "0",
        "paceline.dev/attempt": "1",
    }


def test_memory_of_a_later_attempt() -> None:
    assert pod(job(), memory_bytes=3 * GIB)["spec"]["containers"][0]["resources"]["limits"]["memory"] == "3Gi"


def test_volumes_secrets_and_tolerations() -> None:
    spec = job(
        volumes=(
            Volume(name="runs", mount_path="/runs", claim="runs"),
            Volume(name="data", mount_path="/data", host_path="/mnt/data", read_only=True),
            Volume(name="keys", mount_path="/keys", secret="keys"),
        ),
        secrets=("s3",),
    )
    toleration = Toleration(key="gpu", operator="Exists", effect="NoExecute", toleration_seconds=0)
    placed = PodPlacement(node_selector={"disk": "ssd"}, tolerations=(toleration,))
    made = pods.pod(dataclasses.replace(spec, placement=placed), ReplicaId(Role.PS, 0), ADS)["spec"]
    assert made["volumes"][2:] == [
        {"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}},
        {"name": "data", "hostPath": {"path": "/mnt/data"}},
        {"name": "keys", "secret": {"secretName": "keys"}},
    ]
    mounted = {each["name"]: each for each in made["containers"][0]["volumeMounts"]}
    assert mounted["data"] == {"name": "data", "mountPath": "/data", "readOnly": True}
    assert made["containers"][0]["envFrom"] == [{"secretRef": {"name": "s3"}}]
    assert made["nodeSelector"] == {"disk": "ssd"}
    assert made["tolerations"] == [
        {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    ]
    told = json.loads(told_in(spec)["ps.json"])
    assert told["placeholders"]["checkpoint_dir"] == "/runs/clicks/checkpoints"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"image": None}, "no image"),
        ({"working_dir": "src"}, "has to be absolute"),
        ({"code": Code(folder="src")}, "a resource cannot carry it"),
    ],
)
def test_what_kubernetes_needs(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        manifests.check(job(**fields))


def test_code_is_fetched_before_the_command_starts_in_it() -> None:
    code = Code(git=Git(url="https://h.example/x.git?key=s3cret", revision="v1"), path="training")
    volumes = (Volume(name="data", mount_path="/data", host_path="/mnt/data"),)
    spec = job(code=code, working_dir="src", secrets=("git",), volumes=volumes)
    made = pod(spec)["spec"]
    _, fetcher = made["initContainers"]
    assert fetcher["command"][3:] == [
        "paceline.agent.fetch", "/paceline/config/code.json", "/paceline/code", "/dev/termination-log",
    ]  # fmt: skip
    assert "s3cret" not in json.dumps(made), "URLs may be signed, and everybody may read a command line"
    assert fetcher["envFrom"] == [{"secretRef": {"name": "git"}}]
    assert fetcher["image"] == ADS.agent.image
    mounted = {each["name"]: each for each in fetcher["volumeMounts"]}
    assert mounted["data"]["readOnly"]
    assert made["containers"][0]["workingDir"] == "/paceline/code/training/src"
    data = told_in(spec)
    assert json.loads(data["code.json"]) == {
        "git": {"url": "https://h.example/x.git?key=s3cret", "revision": "v1"},
        "start": "training/src",
    }
    assert json.loads(data["worker.json"])["placeholders"]["code_dir"] == "/paceline/code/training"


def test_an_absolute_working_directory_is_the_images() -> None:
    spec = job(code=Code(config_map="clicks-code"), working_dir="/app")
    made = pod(spec)["spec"]
    assert made["containers"][0]["workingDir"] == "/app"
    assert json.loads(told_in(spec)["code.json"]) == {"packed": "/paceline/packed/code.tar.gz", "start": "."}
    assert {"name": "paceline-code", "configMap": {"name": "clicks-code"}} in made["volumes"]
    mount = {"name": "paceline-code", "mountPath": "/paceline/packed", "readOnly": True}
    assert mount in made["initContainers"][1]["volumeMounts"]


def test_without_the_agents_image_nothing_can_fetch() -> None:
    where = Surroundings(agent=AgentSetup(image=None))
    with pytest.raises(EngineError, match="nothing can fetch the code of clicks"):
        manifests.bare(job(code=Code(config_map="clicks-code")), where, places={})


def test_too_much_for_a_config_map() -> None:
    with pytest.raises(EngineError, match="Kubernetes allows 1048576"):
        manifests.bare(job(environment={"BIG": "x" * (1 << 20)}), ADS, places={})


def test_all_of_a_job_with_the_nodes_that_are_decided() -> None:
    made = manifests.bare(job(), ADS, places={ReplicaId(Role.PS, 0): "node-7"})
    assert [each["kind"] for each in made] == ["Service", "NetworkPolicy", "ConfigMap", *["Pod"] * 7]
    pinned = made[3]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert pinned["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}
    ]
    assert all("affinity" not in each["spec"] for each in made[4:])


def test_nothing_is_brought_into_images_that_have_the_agent() -> None:
    spec = JobSpec(name="clicks", image="i", command=("x",), roles=(RoleSpec(role=Role.WORKER),))
    made = pods.pod(spec, ReplicaId(Role.WORKER, 0), Surroundings(agent=AgentSetup(image=None)))["spec"]
    assert "initContainers" not in made
    assert [each["name"] for each in made["volumes"]] == ["paceline-config"]
    assert [each["name"] for each in made["containers"][0]["volumeMounts"]] == ["paceline-config"]


MOUNTING = Surroundings(agent=AgentSetup(files="hub/paceline-agent:1"))


@pytest.mark.parametrize("python", ["python", "python3", "/opt/conda/bin/python3.9"])
def test_the_python_of_the_image_runs_an_agent_that_is_mounted(python: str) -> None:
    spec = job(command=(python, "train.py"), security=RESTRICTED)
    made = pods.pod(spec, ReplicaId(Role.WORKER, 0), MOUNTING)["spec"]
    assert "initContainers" not in made, "nothing is copied"
    (container,) = made["containers"]
    assert container["command"][:4] == [python, "-I", "-S", "/paceline/agent/agent.py"]
    assert {"name": "paceline-agent", "image": {"reference": "hub/paceline-agent:1"}} in made["volumes"]
    mounted = {each["mountPath"]: each for each in container["volumeMounts"]}
    assert mounted["/paceline/agent"] == {
        "name": "paceline-agent", "mountPath": "/paceline/agent", "readOnly": True,
    }  # fmt: skip
    assert mounted["/paceline"]["name"] == "paceline", "it writes there"
    assert pod_security.violations({"spec": made}) == []
    data = config_maps.config_map(spec, MOUNTING, services.cluster(spec, MOUNTING))["data"]
    assert json.loads(data["worker.json"])["instrumentation"] == "/paceline/agent/instrumentation"


@pytest.mark.parametrize("command", [("sh", "-c", "python train.py"), ("python2", "x.py"), ("./pythonic",)])
def test_an_image_that_may_have_no_python_gets_the_agent_with_one(command: tuple[str, ...]) -> None:
    made = pods.pod(job(command=command), ReplicaId(Role.WORKER, 0), MOUNTING)["spec"]
    assert [each["name"] for each in made["initContainers"]] == ["agent"]
    assert made["containers"][0]["command"][0] == "/paceline/lib/ld.so"
    assert "paceline-agent" not in {each["name"] for each in made["volumes"]}


def test_each_role_gets_the_agent_as_its_own_command_allows() -> None:
    ps = RoleSpec(role=Role.PS, command=("./serve",))
    spec = job(roles=(ps, RoleSpec(role=Role.WORKER)))
    made = {role: pods.pod(spec, ReplicaId(role, 0), MOUNTING)["spec"] for role in (Role.PS, Role.WORKER)}
    assert ["initContainers" in each for each in made.values()] == [True, False]
    data = config_maps.config_map(spec, MOUNTING, services.cluster(spec, MOUNTING))["data"]
    told = {role: json.loads(data[f"{role}.json"])["instrumentation"] for role in made}
    assert told == {Role.PS: "/paceline/instrumentation", Role.WORKER: "/paceline/agent/instrumentation"}


def test_code_is_fetched_by_the_full_image_beside_an_agent_that_is_mounted() -> None:
    made = pods.pod(job(code=Code(config_map="clicks-code")), ReplicaId(Role.WORKER, 0), MOUNTING)["spec"]
    assert [each["name"] for each in made["initContainers"]] == ["code"]


RESTRICTED = Security(profile=SecurityProfile.RESTRICTED)


def test_a_restricted_replica_writes_to_volumes_alone() -> None:
    made = pod(job(security=RESTRICTED))["spec"]
    volumes = {each["name"]: each for each in made["volumes"]}
    for container in (*made["containers"], *made["initContainers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    written = {
        each["mountPath"]
        for each in made["containers"][0]["volumeMounts"]
        if "emptyDir" in volumes[each["name"]]
    }
    told = json.loads(told_in(job())["worker.json"])
    assert written == {"/paceline", "/tmp"}
    assert {told["spool"].rpartition("/")[0], told["environment"]["TMPDIR"]} == written


def test_a_volume_of_the_users_own_at_tmp_stays() -> None:
    scratch = Volume(name="scratch", mount_path="/tmp", claim="scratch")
    made = pod(job(security=RESTRICTED, volumes=(scratch,)))["spec"]
    mounts = [each["name"] for each in made["containers"][0]["volumeMounts"] if each["mountPath"] == "/tmp"]
    assert mounts == ["scratch"]


def test_images_that_have_the_agent_have_to_be_written_to() -> None:
    """The agent's home is a folder of the image then."""
    where = Surroundings(agent=AgentSetup(image=None))
    made = pods.pod(job(security=RESTRICTED), ReplicaId(Role.WORKER, 0), where)["spec"]
    assert "readOnlyRootFilesystem" not in made["containers"][0]["securityContext"]
    assert pod_security.violations({"spec": made}) == []


def test_volumes_are_made_writable_for_the_user() -> None:
    made = pod(job(security=Security(user=1000)))["spec"]["securityContext"]
    assert (made["runAsUser"], made["fsGroup"], made["fsGroupChangePolicy"]) == (1000, 1000, "OnRootMismatch")
    assert "runAsNonRoot" not in made
