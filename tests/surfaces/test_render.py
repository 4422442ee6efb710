"""``paceline render``: a job as objects of Kubernetes."""

import json

import pytest
import yaml

from paceline.rendering import manifests
from paceline.surfaces.cli.verbs import render

JOB = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  image: team/clicks:1
  command: [python, train.py]
  roles: {ps: {replicas: 2}, worker: {replicas: 2}}
"""


@pytest.fixture
def job(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def test_yaml_is_a_stream_of_objects(paceline, job):
    done = paceline("render", str(job), "-n", "ads")
    assert done.exit_code == 0, done.output
    made = list(yaml.safe_load_all(done.stdout))
    assert [each["kind"] for each in made] == ["Service", "NetworkPolicy", "ConfigMap", *["Pod"] * 4]
    assert {each["metadata"]["namespace"] for each in made} == {"ads"}


def test_json_is_a_list_for_kubectl(paceline, job):
    made = json.loads(paceline("render", str(job), "--to", "tfjob", "-o", "json").stdout)
    assert (made["apiVersion"], made["kind"]) == ("v1", "List")
    assert [each["kind"] for each in made["items"]] == ["NetworkPolicy", "ConfigMap", "TFJob"]


def test_an_agent_of_ones_own(paceline, job):
    done = paceline("render", str(job), "--agent-image", "registry.example/paceline:2")
    pod = list(yaml.safe_load_all(done.stdout))[3]
    assert pod["spec"]["initContainers"][0]["image"] == "registry.example/paceline:2"


def test_clients_of_agents_are_networks_and_namespaces(paceline, job):
    done = paceline("render", str(job), "--agent-clients", "10.0.0.7, monitoring,", "-o", "json")
    (policy,) = (each for each in json.loads(done.stdout)["items"] if each["kind"] == "NetworkPolicy")
    clients = policy["spec"]["ingress"][1]["from"]
    assert [list(each) for each in clients] == [["ipBlock"], ["namespaceSelector"]]
    assert clients[0]["ipBlock"]["cidr"] == "10.0.0.7/32"


@pytest.mark.parametrize("wrong", ["10.0.0.0/33", "10.0.0.1/24", "Monitoring", "a b", "-a", "x" * 64])
def test_what_is_no_client_of_agents_is_refused(paceline, job, wrong):
    done = paceline("render", str(job), f"--agent-clients=monitoring,{wrong}")
    assert done.exit_code == 2
    assert repr(wrong) in done.output


@pytest.mark.parametrize("target", ["pods", "tfjob", "vcjob"])
def test_images_that_have_the_agent(paceline, job, target):
    done = paceline("render", str(job), "--to", target, "--agent-image", "none")
    assert done.exit_code == 0, done.output
    assert "initContainers" not in done.stdout
    assert "image: none" not in done.stdout


def test_a_folder_of_code_is_printed_beside_the_job(paceline, job, monkeypatch):
    monkeypatch.chdir(job.parent)
    job.write_text(JOB.replace("  image:", "  code: {folder: src}\n  image:"))
    missing = paceline("render", "job.yaml")
    assert missing.exit_code == 3
    assert "no such folder of code" in missing.stderr
    (job.parent / "src").mkdir()
    (job.parent / "src" / "train.py").write_text("print()")
    done = paceline("render", "job.yaml")
    assert done.exit_code == 0, done.output
    folder, *others = yaml.safe_load_all(done.stdout)
    assert list(folder["binaryData"]) == ["code.tar.gz"]
    assert [each["kind"] for each in others] == ["Service", "NetworkPolicy", "ConfigMap", *["Pod"] * 4]
    assert "the folder of code is in a config map: kubectl apply --server-side" in done.stderr


def test_targets_are_those_that_there_are():
    assert tuple(manifests.Target) == render.TARGETS


def test_what_is_missing_is_said(paceline, job):
    assert "--queue NAME" in paceline("render", str(job), "--to", "kueue").stderr
    job.write_text(JOB.replace("  image: team/clicks:1\n", ""))
    done = paceline("render", str(job))
    assert done.exit_code == 2
    assert "spec.image" in done.stderr
