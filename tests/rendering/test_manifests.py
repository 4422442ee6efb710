"""One job for each target, against golden files, and what must hold for all of them."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import pod_security

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.jobs.code_sources import Code
from paceline.model.jobs.job_specs import Framework, SchedulingSpec, Security, SecurityProfile
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.roles import ReplicaId
from paceline.rendering import kueue, manifests, network_policies, pods, volcano
from paceline.rendering.manifests import Target
from paceline.rendering.surroundings import AgentSetup, Surroundings

ADS = Surroundings(namespace="ads")

GOLDEN = Path(__file__).with_name("golden")
JOB = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks, labels: {team: ads}}
spec:
  image: team/clicks:1
  working_dir: /app
  command: [python, train.py, "--job_name={role}", "it's $(fine)"]
  environment: {DATA: /data}
  cpu_policy: exclusive
  roles:
    ps: {replicas: 2, cpu: 2, memory: 4Gi}
    worker: {replicas: 3, cpu: 4, memory: 8Gi, gpu: 1}
    chief: {cpu: 4, memory: 8Gi, restart: {when: never}}
  placement:
    strategy: STRATEGY
    node_selector: {disk: ssd}
    tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  active_deadline: 12h
  ttl_after_finished: 1d
  volumes: [{name: runs, claim: runs, mount_path: /runs}]
  secrets: [s3]
"""


def job(strategy: str = "spread-ps") -> Any:
    return specs.parse_job(JOB.replace("STRATEGY", strategy), file="job.yaml").spec


def rendered(target: Target, strategy: str = "spread-ps") -> list[dict[str, Any]]:
    return manifests.rendered(job(strategy).with_queue("night"), target, ADS)


@pytest.mark.parametrize("target", Target)
def test_golden_files(target: Target) -> None:
    """To write them anew after a change that is meant: delete the file and run the test twice."""
    objects = json.loads(json.dumps(rendered(target)))
    made = yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=True, width=10**9)
    path = GOLDEN / f"{target}.yaml"
    if not path.exists():
        path.write_text(made)
        pytest.fail(f"{path} was missing and has been written: look at it")
    assert made == path.read_text()


def test_pods_of_a_queue_can_be_scraped_too() -> None:
    plain = pods.pod(job(), ReplicaId.parse("chief-0"), ADS)
    for grouped in (kueue.grouped(plain, job(), "night"), volcano.grouped(plain, job())):
        assert plain["metadata"]["annotations"].items() <= grouped["metadata"]["annotations"].items()
        assert len(grouped["metadata"]["annotations"]) == len(plain["metadata"]["annotations"]) + 1


def test_golden_file_of_restricted_pods() -> None:
    restricted = dataclasses.replace(job(), security=Security(profile=SecurityProfile.RESTRICTED, user=1000))
    made = pods.pod(restricted, ReplicaId.parse("chief-0"), ADS)
    path = GOLDEN / "restricted-pod.yaml"
    text = yaml.safe_dump(json.loads(json.dumps(made)), sort_keys=False, width=10**9)
    if not path.exists():
        path.write_text(text)
        pytest.fail(f"{path} was missing and has been written: look at it")
    assert text == path.read_text()


SECURITIES = [Security(profile=profile, user=user) for profile in SecurityProfile for user in (None, 1000)]


@pytest.mark.parametrize("security", SECURITIES, ids=str)
@pytest.mark.parametrize("target", Target)
def test_restricted_pods_pass_the_standard_of_that_name(target: Target, security: Security) -> None:
    objects = manifests.rendered(
        dataclasses.replace(job().with_queue("night"), security=security), target, ADS
    )
    for spec in pod_specs(objects):
        found = pod_security.violations({"spec": spec})
        training = spec["containers"][0]["name"]
        if security.profile is SecurityProfile.RESTRICTED:
            assert found == []
        else:
            assert set(found) == {
                "agent: runAsNonRoot",
                f"{training}: runAsNonRoot",
                f"{training}: capabilities are not dropped",
            }
        assert spec["securityContext"].get("runAsUser") == security.user


@pytest.mark.parametrize("target", Target)
def test_only_pods_of_the_job_reach_its_ports_but_that_of_agents(target: Target) -> None:
    objects = rendered(target)
    (policy,) = (each for each in objects if each["kind"] == "NetworkPolicy")
    own = {"matchLabels": {"paceline.dev/job": "clicks"}}
    assert policy["spec"] == {
        "podSelector": own,
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": own}]}, {"ports": [{"port": 2223, "protocol": "TCP"}]}],
    }
    made = [each["metadata"] for each in objects if each["kind"] == "Pod"] or templates(objects)
    assert made
    for each in made:
        assert each["labels"]["paceline.dev/job"] == "clicks"


def test_named_clients_alone_reach_agents() -> None:
    agent = AgentSetup(clients=("10.0.0.0/24", "fd00::/8", "monitoring"))
    made = network_policies.policy(job(), dataclasses.replace(ADS, agent=agent))
    assert made["spec"]["ingress"][1] == {
        "ports": [{"port": 2223, "protocol": "TCP"}],
        "from": [
            {"ipBlock": {"cidr": "10.0.0.0/24"}},
            {"ipBlock": {"cidr": "fd00::/8"}},
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}},
        ],
    }


def templates(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the metadata of the templates of a TFJob or a Volcano job."""
    specs = [each.get("spec", {}) for each in objects]
    found = [each for spec in specs for each in spec.get("tfReplicaSpecs", {}).values()]
    found += [each for spec in specs for each in spec.get("tasks", ())]
    return [each["template"]["metadata"] for each in found]


def pod_specs(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for each in objects:
        spec = each.get("spec", {})
        if each["kind"] == "Pod":
            found.append(spec)
        for replicas in spec.get("tfReplicaSpecs", {}).values():
            found.append(replicas["template"]["spec"])
        for task in spec.get("tasks", ()):
            found.append(task["template"]["spec"])
    return found


@pytest.mark.parametrize("strategy", PlacementStrategy)
@pytest.mark.parametrize("target", Target)
def test_every_pod_keeps_its_class_its_secrets_and_its_words(target: Target, strategy: str) -> None:
    objects = rendered(target, strategy)
    found = pod_specs(objects)
    assert len(found) == (6 if target in (Target.PODS, Target.KUEUE) else 3)
    for spec in found:
        for container in (*spec["containers"], *spec["initContainers"]):
            assert container["resources"]["limits"] == container["resources"]["requests"]
            assert {"cpu", "memory"} <= container["resources"]["limits"].keys()
        assert spec["containers"][0]["envFrom"] == [{"secretRef": {"name": "s3"}}]
        assert "it's $(fine)" not in str(spec)
    assert sum(each["kind"] == "ConfigMap" for each in objects) == 1


@pytest.mark.parametrize("target", Target)
def test_every_target_carries_a_folder(target: Target) -> None:
    spec = dataclasses.replace(job().with_queue("night"), code=Code(folder="src"), working_dir=None)
    objects = manifests.rendered(spec, target, ADS, packed=b"packed")
    folder = objects[0]
    assert (folder["kind"], folder["metadata"]["name"]) == ("ConfigMap", "clicks-code")
    assert base64.b64decode(folder["binaryData"]["code.tar.gz"]) == b"packed"
    for made in pod_specs(objects):
        assert [each["name"] for each in made["initContainers"]] == ["agent", "code"]
        for container in (*made["containers"], *made["initContainers"]):
            assert container["resources"]["limits"] == container["resources"]["requests"]
        assert made["containers"][0]["workingDir"] == "/paceline/code"
        assert {"name": "paceline-code", "configMap": {"name": "clicks-code"}} in made["volumes"]


def test_kueue_counts_all_pods_of_the_group() -> None:
    made = [each["metadata"] for each in rendered(Target.KUEUE) if each["kind"] == "Pod"]
    assert {each["labels"]["kueue.x-k8s.io/pod-group-name"] for each in made} == {"clicks"}
    assert {each["labels"]["kueue.x-k8s.io/queue-name"] for each in made} == {"night"}
    assert {each["annotations"]["kueue.x-k8s.io/pod-group-total-count"] for each in made} == {str(len(made))}


def test_kueue_needs_a_queue() -> None:
    with pytest.raises(InvalidInput, match="through a queue"):
        manifests.rendered(job(), Target.KUEUE, ADS)


def test_a_tfjob_is_for_tensorflow() -> None:
    torch = dataclasses.replace(job(), framework=Framework.PYTORCH)
    with pytest.raises(InvalidInput, match="a TFJob is for TensorFlow"):
        manifests.rendered(torch, Target.TFJOB, ADS)


def test_nodes_that_are_decided() -> None:
    made = manifests.bare(job(), ADS, places={ReplicaId.parse("ps-0"): "node-7"})
    by_name = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "Pod"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert by_name["clicks-ps-0-1"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-7"]}]}
    ]
    assert "nodeAffinity" not in by_name["clicks-ps-1-1"]["affinity"]


def _texts(value: Any, key: str = "") -> list[tuple[str, str]]:
    """Return all texts of an object with the key that each stands at."""
    if isinstance(value, dict):
        return [each for name, inner in value.items() for each in _texts(inner, name)]
    if isinstance(value, list):
        return [each for inner in value for each in _texts(inner, key)]
    return [(key, value)] if isinstance(value, str) else []


@pytest.mark.parametrize("target", [Target.PODS, Target.KUEUE, Target.VCJOB])
def test_the_longest_name_makes_no_name_that_is_too_long(target: Target) -> None:
    spec = dataclasses.replace(job("any").with_queue("q"), name="a" * 52)
    for each in manifests.rendered(spec, target, ADS):
        assert all(len(text) <= 63 for key, text in _texts(each) if key in ("hostname", "subdomain"))
        assert all(len(text) <= 63 for text in (each["metadata"].get("labels") or {}).values())


def test_a_name_that_no_service_may_have_is_refused() -> None:
    spec = job("any")
    for target in Target:
        with pytest.raises(InvalidInput, match="2024-clicks begins with a digit"):
            manifests.rendered(dataclasses.replace(spec, name="2024-clicks"), target, ADS)
    role = dataclasses.replace(spec.roles[1], replicas=12)
    long = dataclasses.replace(spec, name="a" * 54, roles=(spec.roles[0], role))
    with pytest.raises(InvalidInput, match=r"Kubeflow makes a Service a+-worker-10, .* 63 characters"):
        manifests.rendered(long, Target.TFJOB, ADS)


@pytest.mark.parametrize("target", Target)
def test_the_pods_have_the_priority_class_of_the_job(target: Target) -> None:
    scheduling = SchedulingSpec(queue="night", priority_class="urgent")
    objects = manifests.rendered(dataclasses.replace(job(), scheduling=scheduling), target, ADS)
    assert {spec["priorityClassName"] for spec in pod_specs(objects)} == {"urgent"}
    if target is Target.VCJOB:
        assert objects[-1]["spec"]["priorityClassName"] == "urgent"
    if target is Target.TFJOB:
        policy = objects[-1]["spec"]["runPolicy"]["schedulingPolicy"]
        assert (policy["queue"], policy["priorityClass"]) == ("night", "urgent")
