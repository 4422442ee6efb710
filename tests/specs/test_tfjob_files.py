"""TFJobs as job files: nothing is lost, or it is said what."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given, settings
from support.examples import examples

from paceline import specs
from paceline.errors import InvalidInput, NotFound
from paceline.model.codes import Archive, Code, Git
from paceline.model.jobs import (
    CleanUp,
    CpuPolicy,
    JobSpec,
    RestartPolicy,
    RestartWhen,
    RoleSpec,
    Security,
    SecurityProfile,
    SuccessPolicy,
    Volume,
)
from paceline.model.placements import Placement, PlacementStrategy, Toleration
from paceline.model.roles import Role
from paceline.rendering import manifests
from paceline.rendering.surroundings import Surroundings
from paceline.specs import tfjob_files

ADS = Surroundings(namespace="ads")


def role(replicas: int = 1, *, pod: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    made = {"name": "tensorflow", "image": "team/mnist:1", "command": ["python", "mnist.py"], **container}
    spec = {"containers": [made], **(pod or {})}
    return {"replicas": replicas, "restartPolicy": "OnFailure", "template": {"spec": spec}}


def tfjob(*, policy: dict[str, Any] | None = None, meta: dict[str, Any] | None = None, **roles: Any) -> str:
    spec: dict[str, Any] = {"tfReplicaSpecs": roles or {"PS": role(2), "Worker": role(4)}}
    if policy:
        spec["runPolicy"] = policy
    metadata = {"name": "mnist", "namespace": "kubeflow", **(meta or {})}
    made = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata, "spec": spec}
    return yaml.safe_dump(json.loads(json.dumps(made)))


def converted(text: str) -> tuple[JobSpec, tuple[str, ...]]:
    """The job, and what is lost but the namespace, which is always named."""
    found = tfjob_files.convert_text(text, "tfjob.yaml")
    namespace, *lost = found.lost
    assert namespace.startswith("metadata.namespace: ")
    return specs.parse_job(found.text).spec, tuple(lost)


POD = "spec.tfReplicaSpecs.Worker.template.spec"
CONTAINER = f"{POD}.containers[0]"
LIMITS = {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": 1}}
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
MOUNTS = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}

#: Shapes of TFJobs, and what of each has no words in a job file.
SHAPES: dict[str, tuple[str, list[str]]] = {
    "plain": (tfjob(), []),
    "one worker": (tfjob(Worker=role()), []),
    "chief and evaluator": (tfjob(Chief=role(), PS=role(), Worker=role(2), Evaluator=role()), []),
    "master of old": (
        tfjob(Master=role(), Worker=role()),
        ["spec.tfReplicaSpecs.Master: the role is called chief, in TF_CONFIG too"],
    ),
    "resources": (tfjob(PS=role(resources=LIMITS), Worker=role(resources=LIMITS)), []),
    "requests alone": (
        tfjob(Worker=role(resources={"requests": {"cpu": "500m", "memory": "1Gi"}})),
        [
            f"{CONTAINER}.resources.requests.cpu: 500m (it becomes the limit as well)",
            f"{CONTAINER}.resources.requests.memory: 1Gi (it becomes the limit as well)",
        ],
    ),
    "requests below limits": (
        tfjob(Worker=role(resources={"requests": {"cpu": "300m"}, "limits": {"cpu": "2"}})),
        [f"{CONTAINER}.resources.requests.cpu: 300m (1999m is requested)"],
    ),
    "environment": (tfjob(Worker=role(env=[{"name": "A", "value": "'x'"}])), []),
    "references": (
        tfjob(Worker=role(args=["$(A)", "$(B)"], env=[{"name": "A", "value": "$$(B)"}])),
        [f"{CONTAINER}.args[1]: $(B) is not filled in (placeholders of a job file are: {{index}}, ...)"],
    ),
    "environment from elsewhere": (
        tfjob(Worker=role(env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}])),
        [f"{CONTAINER}.env[0]: IP has its value from elsewhere (valueFrom)"],
    ),
    "secrets": (tfjob(Worker=role(envFrom=[{"secretRef": {"name": "s3"}}])), []),
    "config maps": (
        tfjob(Worker=role(envFrom=[{"configMapRef": {"name": "c"}}])),
        [f"{CONTAINER}.envFrom[0].configMapRef.name: c"],
    ),
    "volumes": (tfjob(PS=role(pod=CLAIM, **MOUNTS), Worker=role(pod=CLAIM, **MOUNTS)), []),
    "empty volumes": (
        tfjob(Worker=role(pod={"volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}]}, **MOUNTS)),
        [
            f"{POD}.volumes[0]: volume data is of kind emptyDir",
            f"{CONTAINER}.volumeMounts[0]: volume data, at /data",
        ],
    ),
    "nodes": (
        tfjob(
            Worker=role(
                pod={"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
            )
        ),
        [],
    ),
    "policies": (
        tfjob(
            policy={
                "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 3600,
                "backoffLimit": 5,
            }
        ),
        [],
    ),
    "queue": (
        tfjob(policy={"schedulingPolicy": {"queue": "night", "minAvailable": 6}}),
        ["spec.runPolicy.schedulingPolicy.queue: night"],
    ),
    "sidecar": (
        tfjob(Worker=role(pod={"hostNetwork": True})),
        ["spec.tfReplicaSpecs.Worker.template.spec.hostNetwork: True"],
    ),
    "exit codes": (
        tfjob(Worker={**role(), "restartPolicy": "ExitCode"}),
        ["spec.tfReplicaSpecs.Worker.restartPolicy: ExitCode (every failure is restarted, not some codes)"],
    ),
    "images that differ": (
        tfjob(PS=role(), Worker=role(image="team/mnist:2")),
        [f"{CONTAINER}.image: 'team/mnist:2' (all roles have 'team/mnist:1')"],
    ),
    "annotations": (
        tfjob(meta={"annotations": {"note": "mine"}, "labels": {"team": "ads"}, "uid": "7"}),
        ["metadata.annotations.note: mine"],
    ),
    "dynamic workers": (
        tfjob().replace("spec:\n", "spec:\n  enableDynamicWorker: true\n", 1),
        ["spec.enableDynamicWorker: True"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_what_has_no_words_is_named(shape: str) -> None:
    text, lost = SHAPES[shape]
    assert list(converted(text)[1]) == lost


@pytest.mark.parametrize("shape", SHAPES)
def test_and_back_and_forth_loses_nothing_more(shape: str) -> None:
    spec, _ = converted(SHAPES[shape][0])
    if spec.working_dir is None:
        again, lost = converted(as_tfjob(spec))
        assert lost == ()
        assert meant(again) == meant(spec)


@pytest.mark.parametrize(
    "code",
    [
        Code(git=Git(url="https://example.com/ads.git", revision="main"), path="models"),
        Code(archive=Archive(url="https://example.com/ads.tgz", sha256="0" * 64)),
        Code(config_map="ads-code-1"),
    ],
)
def test_code_and_security_come_back(code: Code) -> None:
    security = Security(profile=SecurityProfile.RESTRICTED, user=1000)
    spec, _ = converted(tfjob())
    spec = dataclasses.replace(spec, code=code, security=security)
    again, lost = converted(as_tfjob(spec))
    assert lost == ()
    assert (again.code, again.security, again.working_dir) == (code, security, None)


def as_tfjob(spec: JobSpec) -> str:
    objects = manifests.rendered(spec, manifests.Target.TFJOB, ADS)
    return yaml.safe_dump_all(json.loads(json.dumps(objects)))


def meant(spec: JobSpec) -> JobSpec:
    """The job with everything said where it holds, for commands and variables may be said once for all."""
    roles = tuple(
        dataclasses.replace(
            each, command=spec.command_of(each.role), environment=spec.environment_of(each.role)
        )
        for each in sorted(spec.roles, key=lambda each: each.role)
    )
    return dataclasses.replace(spec, roles=roles, command=(), environment={})


def test_the_parts_of_a_job() -> None:
    spec, _ = converted(SHAPES["policies"][0])
    assert (spec.clean_up, spec.ttl_after_finished_seconds) == (CleanUp.ALL, 60)
    assert (spec.active_deadline_seconds, spec.success) == (3600, SuccessPolicy.CHIEF)
    assert {each.restart.limit for each in spec.roles} == {5}
    spec, _ = converted(SHAPES["resources"][0])
    worker = spec.role(Role.WORKER)
    assert worker is not None
    assert (worker.cpu_cores, worker.memory_bytes, worker.gpus) == (4, 8 << 30, 1)
    assert worker.cpu_policy is CpuPolicy.EXCLUSIVE
    assert worker.command == ("python", "mnist.py")
    spec, _ = converted(SHAPES["volumes"][0])
    assert spec.volumes == (Volume(name="data", mount_path="/data", claim="data"),)


words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"]), min_size=1, max_size=8
)


def sensible(role: RoleSpec) -> RoleSpec:
    """Only whole cores can be exclusive, and only with a memory: a TFJob has no words for the wish."""
    is_possible = role.memory_bytes is not None and (role.cpu_cores or 0.5).is_integer()
    return role if is_possible else dataclasses.replace(role, cpu_policy=CpuPolicy.SHARED)


role_specs = st.builds(
    RoleSpec,
    role=st.just(Role.WORKER),
    replicas=st.integers(1, 3),
    cpu_cores=st.none() | st.sampled_from([0.5, 1.0, 2.0]),
    memory_bytes=st.none() | st.sampled_from([1 << 30, 12345]),
    gpus=st.integers(0, 2),
    cpu_policy=st.sampled_from(CpuPolicy),
    threads=st.none() | st.just(3),
    command=st.lists(words, min_size=1, max_size=3).map(tuple),
    environment=st.dictionaries(st.sampled_from(["A", "B"]), words),
    restart=st.builds(RestartPolicy, when=st.sampled_from(RestartWhen), limit=st.just(2)),
).map(sensible)
jobs = st.builds(
    JobSpec,
    name=st.just("clicks"),
    image=st.just("i:1"),
    labels=st.dictionaries(st.sampled_from(["team", "paceline.example/x"]), st.just("ads")),
    roles=st.lists(role_specs, min_size=1, max_size=3).map(
        lambda found: tuple(
            dataclasses.replace(each, role=which)
            for each, which in zip(found, (Role.WORKER, Role.PS, Role.EVALUATOR), strict=False)
        )
    ),
    placement=st.builds(
        Placement,
        strategy=st.sampled_from(PlacementStrategy),
        node_selector=st.dictionaries(st.just("disk"), st.just("ssd")),
        tolerations=st.lists(st.just(Toleration(key="gpu", operator="Exists")), max_size=1).map(tuple),
    ),
    clean_up=st.sampled_from([CleanUp.RUNNING, CleanUp.ALL]),
    active_deadline_seconds=st.none() | st.just(60.0),
    termination_grace_seconds=st.sampled_from([30.0, 7.0]),
    training=st.none() | st.just({"batch_size": 512}),
    secrets=st.sampled_from([(), ("s3",)]),
    security=st.builds(Security, profile=st.sampled_from(SecurityProfile), user=st.none() | st.just(1000)),
)


@settings(max_examples=examples(60))
@given(jobs)
def test_what_is_rendered_reads_back(spec: JobSpec) -> None:
    again, lost = converted(as_tfjob(spec))
    assert lost == ()
    if again.placement.strategy is not spec.placement.strategy:  # without PS some are the same
        assert (
            manifests.rendered(again, manifests.Target.TFJOB, ADS)[1]["spec"]
            == (manifests.rendered(spec, manifests.Target.TFJOB, ADS)[1]["spec"])
        )
        again = dataclasses.replace(again, placement=spec.placement)
    assert meant(again) == meant(spec)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "it is no YAML"),
        ("kind: Pod", "there is no TFJob in it"),
        ("kind: TFJob", "no TFJob as Kubeflow has them"),
        (
            "kind: TFJob\nmetadata: {name: x}\nspec: {tfReplicaSpecs: {Boss: {}}}",
            "no TFJob as Kubeflow has them",
        ),
        ("kind: TFJob\nmetadata: 3\nspec: 4", "no TFJob as Kubeflow has them"),
        ("a: &a [1]\nb: *a\nkind: TFJob", "aliases are not taken"),
        (tfjob(Worker=role(image="bad image")), "image"),
    ],
)
def test_what_is_no_tfjob(text: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        tfjob_files.convert_text(text, "tfjob.yaml")
    assert says in caught.value.message


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        tfjob_files.convert(tmp_path / "nothing.yaml")
