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
from support import tfjob_cases
from support.examples import examples

from paceline import specs
from paceline.errors import InvalidInput, NotFound
from paceline.model.jobs.code_sources import Archive, Code, Git
from paceline.model.jobs.job_specs import (
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
from paceline.model.jobs.placements import PlacementStrategy, PodPlacement, Toleration
from paceline.model.roles import Role
from paceline.rendering import manifests
from paceline.rendering.surroundings import Surroundings
from paceline.specs.tfjob import tfjob_files

ADS = Surroundings(namespace="ads")


def role(replicas: int = 1, *, pod: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    made = {"name": "tensorflow", "image": "team/mnist:1", "command": ["python", "mnist.py"], **container}
    spec = {"containers": [made], **(pod or {})}
    return {"replicas": replicas, "restartPolicy": "OnFailure", "template": {"spec": spec}}


def tfjob(*, policy: dict[str, Any] | None = None, meta: dict[str, Any] | None = None, **roles: Any) -> str:
    spec: dict[str, Any] = {
        "runPolicy": {"cleanPodPolicy": "Running", **(policy or {})},
        "tfReplicaSpecs": roles or {"PS": role(2), "Worker": role(4)},
    }
    metadata = {"name": "mnist", "namespace": "kubeflow", **(meta or {})}
    made = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata, "spec": spec}
    return yaml.safe_dump(json.loads(json.dumps(made)))


def converted(text: str) -> tuple[JobSpec, tuple[str, ...]]:
    """The job, and what is lost but the namespace and the meaning of restarts, which are always named."""
    found = tfjob_files.convert_text(text, "tfjob.yaml")
    namespace, *lost = found.lost
    assert namespace.startswith("metadata.namespace: ")
    if "agent" not in text:  # Paceline's own means what the job file means
        lost = [each for each in lost if not each.startswith(f"{LIMIT}: ")]
    return specs.parse_job(found.text).spec, tuple(lost)


LIMIT = "spec.runPolicy.backoffLimit"


POD = "spec.tfReplicaSpecs.Worker.template.spec"
CONTAINER = f"{POD}.containers[0]"
LIMITS = {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": 1}}
NEVER = {**role(), "restartPolicy": "Never"}
WITHOUT_IT = "a replica that fails for good ends a TFJob (here the job goes on without it)"
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
    "environment said twice": (
        tfjob(
            Worker=role(
                args=["$(A)"],
                env=[
                    {"name": "A", "value": "early"},
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                ],
            )
        ),
        [
            f"{CONTAINER}.env[0]: A is said again after it, and that holds",
            f"{CONTAINER}.env[1]: A has its value from elsewhere (valueFrom)",
            f"{CONTAINER}.args[0]: $(A) is not filled in (placeholders of a job file are: {{index}}, ...)",
        ],
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
        [f"spec.tfReplicaSpecs.Worker.restartPolicy: {WITHOUT_IT}"],
    ),
    "a chief beside all workers": (
        tfjob(Chief=role(), Worker=role(2)).replace("spec:\n", "spec:\n  successPolicy: AllWorkers\n", 1),
        ["spec.successPolicy: AllWorkers (where there is a chief, it decides alone)"],
    ),
    "failures for good": (
        tfjob(Chief=NEVER, PS=NEVER, Worker=NEVER, Evaluator=NEVER),
        [f"spec.tfReplicaSpecs.{name}.restartPolicy: {WITHOUT_IT}" for name in ("Evaluator", "Worker")],
    ),
    "one worker that fails for good": (tfjob(PS=NEVER, Worker=NEVER), []),
    "nothing about what still runs": (
        tfjob(policy={"cleanPodPolicy": None}),
        [
            "spec.runPolicy.cleanPodPolicy: nothing is said here, so what still runs goes on "
            "(here it ends with the job)"
        ],
    ),
    "what still runs goes on": (
        tfjob(policy={"cleanPodPolicy": "None"}),
        ["spec.runPolicy.cleanPodPolicy: None (what still runs ends with the job)"],
    ),
    "queue": (
        tfjob(policy={"schedulingPolicy": {"queue": "night", "minAvailable": 6}}),
        [],
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
    "policies where they were before": (
        tfjob().replace("spec:\n", "spec:\n  cleanPodPolicy: All\n  backoffLimit: 4\n", 1),
        [
            f"spec.{said} (which today's operator passes over: it belongs into spec.runPolicy)"
            for said in ("backoffLimit: 4", "cleanPodPolicy: All")
        ],
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
        PodPlacement,
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
            manifests.rendered(again, manifests.Target.TFJOB, ADS)[-1]["spec"]
            == (manifests.rendered(spec, manifests.Target.TFJOB, ADS)[-1]["spec"])
        )
        again = dataclasses.replace(again, placement=spec.placement)
    assert meant(again) == meant(spec)


V1 = "apiVersion: kubeflow.org/v1\nkind: TFJob\n"
WORKER = "metadata: {name: x}\nspec:\n  tfReplicaSpecs:\n    Worker:\n      template:\n        spec:\n"
#: (text, line and column, what is said)
REFUSALS = {
    "no YAML": ("a: [", "1:5", "this is not YAML"),
    "another kind": ("kind: PyTorchJob", "1:7", "no TFJob in the file, only PyTorchJob"),
    "a job file": (
        "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob", "2:7", "this is a job file already"
    ),
    "two TFJobs": (f"{V1}---\n{V1}", "5:7", "there are 2 TFJobs"),
    "no version": ("kind: TFJob", "1:1", "apiVersion is missing"),
    "no name": (f"{V1}spec: {{tfReplicaSpecs: {{}}}}\nmetadata: {{}}", "4:1", "metadata: name is missing"),
    "no fields": (V1, "1:1", "metadata is missing"),
    "no mapping": (f"{V1}metadata: 3\nspec: 4", "3:11", "this is '3'; a mapping (key: value) is wanted"),
    "no role": (
        f"{V1}metadata: {{name: x}}\nspec:\n"
        "  tfReplicaSpecs: {Workr: {template: {spec: {containers: []}}}}",
        "5:20", "'Workr' is no role of a TFJob; did you mean 'Worker'?",
    ),
    "no containers": (f"{V1}{WORKER}          volumes: []", "8:9", "containers is missing"),
    "a generated name": (
        f"{V1}metadata:\n  generateName: x-\nspec: {{}}", "4:3", "gets a name of its own"
    ),
    "another group": (
        "apiVersion: acme.example/v1\nkind: TFJob", "1:13", "'acme.example/v1' is another API group"
    ),
    "v1alpha1": (
        "apiVersion: kubeflow.org/v1alpha1\nkind: TFJob\nspec: {replicaSpecs: []}", "1:13",
        "the form of kubeflow.org/v1alpha1",
    ),
    "v1beta2": ("apiVersion: kubeflow.org/v1beta2\nkind: TFJob", "1:13", "the form of kubeflow.org/v1beta2"),
    "a list of roles under today's version": (
        f"{V1}metadata: {{name: x}}\nspec:\n  replicaSpecs: []", "5:17", "the form of kubeflow.org/v1alpha1"
    ),
    "a template of Helm": (
        f"{V1}metadata:\n  name: {{{{ .Release.Name }}}}-x\n", "4:9", "this is a template"
    ),
    "a template with quotes": (
        f'{V1}metadata: {{name: "{{{{ name }}}}"}}\n{WORKER[20:]}'
        '          containers: [{name: tensorflow, image: i, command: [a]}]', "3:19", "this is a template",
    ),
    "branches of a template": (f"{{% if a %}}\n{V1}{{% endif %}}", "1:1", "this is a template"),
    "a key that stands twice": (f"{V1}metadata:\n  name: x\n  name: y", "5:3", "'name' is given twice"),
    "args alone": (
        f"{V1}{WORKER}          containers:\n          - {{name: tensorflow, image: i, args: [a]}}", "10:13",
        "there are args but no command",
    ),
    "no image": (
        f"{V1}{WORKER}          containers: [{{name: tensorflow, command: [a]}}]", "9:24", "image is missing"
    ),
    "a number for text": (
        f"{V1}{WORKER}          containers: [{{name: tensorflow, image: i, command: [a, 010]}}]", "9:66",
        "command[1]: 8 has to be text",
    ),
    "half a byte": (
        f"{V1}{WORKER}          containers:\n          - name: tensorflow\n            image: i\n"
        "            command: [a]\n            resources: {requests: {memory: 512m}}", "13:44",
        "requests.memory: '512m' is less than a byte: 512Mi is meant?",
    ),
    "a bad image": (
        f"{V1}{WORKER}          containers: [{{name: tensorflow, image: bad image, command: [a]}}]", "9:50",
        "containers[0].image: 'bad image'",
    ),
    "an alias of itself": (f"{V1}metadata: &a {{name: x, labels: *a}}", "3:11", "alias"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_says_where_and_what(case: str) -> None:
    text, place, says = REFUSALS[case]
    with pytest.raises(InvalidInput) as caught:
        tfjob_files.convert_text(text, "tfjob.yaml")
    assert caught.value.message.startswith(f"tfjob.yaml:{place}: ")
    assert says in caught.value.message


def test_a_fault_of_another_object_is_no_obstacle() -> None:
    other = "kind: ConfigMap\nmetadata: {name: other}\ndata: {1: x, a: b, a: c}\n---\n"
    assert tfjob_files.convert_text(other + tfjob(), "tfjob.yaml").lost[-1].startswith("ConfigMap other: ")


def test_a_file_without_objects() -> None:
    with pytest.raises(InvalidInput, match="there is no TFJob in it"):
        tfjob_files.convert_text("# nothing\n---\n", "tfjob.yaml")


def test_an_object_without_a_kind_is_shown() -> None:
    with pytest.raises(InvalidInput, match=r"tfjob.yaml:2:1: there is no TFJob in the file: kind is missing"):
        tfjob_files.convert_text("---\nmetadata: {name: x}\n", "tfjob.yaml")


def test_a_refusal_points_into_the_items_of_a_list() -> None:
    items = (f"{V1}metadata: {{name: 3}}".replace("\n", "\n  "), "kind: ConfigMap")
    text = "".join(("kind: List\nitems:\n", *(f"- {each}\n" for each in items)))
    with pytest.raises(InvalidInput, match=r"tfjob.yaml:5:20: metadata.name: 3 has to be text"):
        tfjob_files.convert_text(text, "tfjob.yaml")


ENDLESS = f"{LIMIT}: nothing is said here, so restarts have no end (here each replica has 3)"


@pytest.mark.parametrize(
    ("policy", "when", "note"),
    [
        (None, "OnFailure", ENDLESS),
        (None, "Always", ENDLESS),
        ({"backoffLimit": 6}, "OnFailure",
         f"{LIMIT}: 6 (restarts of all replicas together; here each replica has 6)"),
        ({"backoffLimit": 0}, "ExitCode",
         f"{LIMIT}: 0 (restarts of all replicas together; here each replica has 0)"),
        (None, "Never", None),
        ({"backoffLimit": 6}, "Never", None),
    ],
)  # fmt: skip
def test_a_limit_of_restarts_means_something_else(
    policy: dict[str, Any] | None, when: str, note: str | None
) -> None:
    roles = {name: {**role(2), "restartPolicy": when} for name in ("PS", "Worker")}
    lost = tfjob_files.convert_text(tfjob(policy=policy, **roles), "tfjob.yaml").lost
    assert [each for each in lost if each.startswith(LIMIT)] == ([note] if note else [])


WHOLE = {"cpu": "2", "memory": "4Gi"}


@pytest.mark.parametrize(
    ("resources", "pod", "policy"),
    [
        ({"limits": WHOLE}, {}, CpuPolicy.EXCLUSIVE),
        ({"limits": WHOLE, "requests": WHOLE}, {}, CpuPolicy.EXCLUSIVE),
        ({"requests": WHOLE}, {}, CpuPolicy.SHARED),
        ({"limits": {"cpu": "2"}, "requests": WHOLE}, {}, CpuPolicy.SHARED),
        ({"limits": WHOLE}, {"initContainers": [{"name": "fetch", "image": "i"}]}, CpuPolicy.SHARED),
        ({"limits": WHOLE}, {"initContainers": [{"name": "fetch", "resources": {"limits": WHOLE}}]},
         CpuPolicy.EXCLUSIVE),
    ],
)  # fmt: skip
def test_only_a_guaranteed_pod_has_cores_of_its_own(
    resources: dict[str, Any], pod: dict[str, Any], policy: CpuPolicy
) -> None:
    spec, _ = converted(tfjob(Worker=role(resources=resources, pod=pod)))
    assert {each.cpu_policy for each in spec.roles} == {policy}


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    """Anchors and merge keys hold; what is a number to the base of 60 or a date to PyYAML is text to Go."""
    text = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist, namespace: a}
spec:
  runPolicy: {backoffLimit: 0x0a, activeDeadlineSeconds: 1_000, cleanPodPolicy: Running}
  tfReplicaSpecs:
    PS: &replica
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - name: tensorflow
            image: team/mnist:1
            command: [python, mnist.py, 1:30, 2020-01-02]
            env: [{name: AT, value: 22:22:22.5}]
    Worker: {<<: *replica, replicas: 3}
"""
    spec, lost = converted(text)
    assert lost == (f"spec.tfReplicaSpecs.Worker.restartPolicy: {WITHOUT_IT}",)
    assert {each.role: each.replicas for each in spec.roles} == {Role.PS: 2, Role.WORKER: 3}
    assert spec.command_of(Role.WORKER) == ("python", "mnist.py", "1:30", "2020-01-02")
    assert spec.environment_of(Role.PS)["AT"] == "22:22:22.5"
    assert (spec.active_deadline_seconds, spec.roles[0].restart.limit) == (1000, 10)


def test_what_kubectl_keeps_and_what_is_empty_is_no_loss() -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    empty = {"resources": {}, "securityContext": {}, "env": []}
    _, lost = converted(tfjob(meta={"annotations": applied}, Worker=role(pod={"affinity": {}}, **empty)))
    assert lost == ()


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        tfjob_files.convert(tmp_path / "nothing.yaml")


def test_the_docs_have_what_differs_for_all_tfjobs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "kubernetes.md").read_text()
    assert [words for words in tfjob_cases.KNOWN.values() if words not in page] == []
    assert len(tfjob_cases.CASES) == 40
