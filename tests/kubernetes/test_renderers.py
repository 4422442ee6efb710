"""What `paceline render` prints, on a real API server that knows the real TFJob and Volcano job.

A field that the server does not know vanishes silently, so what is stored is held against what was sent. No
operator of Kubeflow or Volcano runs here: only that the objects are what these take in is tested.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from support.real_clusters import NAMESPACE, found, kubectl

from paceline.specs.tfjob import tfjob_files
from paceline.surfaces.cli.main import cli

TFJOBS = sorted((Path(__file__).parents[1] / "specs" / "tfjobs").glob("*.yaml"))
KINDS = {"TFJob": "tfjobs.kubeflow.org", "Job": "jobs.batch.volcano.sh"}

#: Everything that a job file can say to Kubernetes.
FULL = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}, labels: {{team: ads, example.com/cost-centre: "17"}}}}
spec:
  image: registry.example.com:5000/team/clicks:1.4
  working_dir: /srv/app
  command: [python, train.py, "--role={{role}}", "$(HOME) $$ `id` 'x' \\"y\\" && \\n;", ""]
  environment: {{DATA: "/data/$(X)", EMPTY: "", LINES: "a\\nb"}}
  cpu_policy: {policy}
  roles:
    ps: {{replicas: 2, cpu: 2, memory: 4Gi, threads: 3}}
    worker:
      replicas: 3
      cpu: 4
      memory: 1500Mi
      gpu: 2
      environment: {{MODE: worker}}
      restart: {{when: always, limit: 5, backoff: 10s}}
    chief: {{cpu: 1500m, memory: 12345, restart: {{when: never}}}}
    evaluator: {{command: [evaluate]}}
  placement:
    strategy: {strategy}
    node_selector: {{disk: ssd, topology.kubernetes.io/zone: z1}}
    tolerations:
    - {{key: gpu, operator: Exists, effect: NoSchedule}}
    - {{key: team, value: ads, effect: NoExecute, toleration_seconds: 300}}
    - {{operator: Exists}}
  success: {success}
  clean_up: all
  active_deadline: 12h
  ttl_after_finished: 1d
  termination_grace: 90s
  volumes:
  - {{name: runs, claim: runs, mount_path: /runs}}
  - {{name: ssd, host_path: /mnt/ssd, mount_path: /ssd, read_only: true}}
  - {{name: keys, secret: keys, mount_path: /keys}}
  secrets: [s3, database]
  training: {{batch_size: 512}}
"""
PLAIN = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: plain}
spec:
  image: busybox
  roles: {worker: {command: ["true"]}}
"""
JOBS = {
    strategy: FULL.format(
        name=strategy,
        strategy=strategy,
        policy="exclusive" if strategy in ("colocate", "spread-ps") else "shared",
        success="chief" if strategy == "any" else "all-workers",
    )
    for strategy in ("any", "spread-ps", "colocate", "isolate")
} | {"plain": PLAIN}


@pytest.fixture(scope="module", autouse=True)
def _known(upstream: None) -> None:
    """The kinds of Kubeflow and Volcano are there."""


@pytest.fixture(autouse=True)
def _none_left() -> Iterator[None]:
    yield
    kubectl("delete", f"{KINDS['TFJob']},{KINDS['Job']}", "--all", "-n", NAMESPACE, "--wait=false")


def rendered(path: Path, *arguments: str) -> list[dict[str, Any]]:
    line = ["--quiet", "render", str(path), "-n", NAMESPACE, *arguments]
    done = CliRunner().invoke(cli, line, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.stdout))


def vanished(*objects: dict[str, Any]) -> list[str]:
    """Make objects, with the server as the only judge; return what it has not stored as it was sent."""
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    stored = _stream(kubectl("create", "--validate=false", "-f", "-", "-o", "json", given=given))
    return [loss for sent, there in zip(objects, stored, strict=True) for loss in pruned(sent, there)]


def _stream(text: str) -> Iterator[dict[str, Any]]:
    while text := text.lstrip():
        found, end = json.JSONDecoder().raw_decode(text)
        yield found
        text = text[end:]


def pruned(sent: Any, stored: Any, path: str = "") -> Iterator[str]:
    """The paths at which what is stored is not what was sent; the server may add, at the end of lists too."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, value in sent.items():
            yield from pruned(value, stored.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) <= len(stored):
        for index, value in enumerate(sent):
            yield from pruned(value, stored[index], f"{path}[{index}]")
    elif sent != stored and not (sent in (False, "") and stored is None):  # Go leaves those out
        yield f"{path}: {sent!r} became {stored!r}"


@pytest.mark.parametrize("target", ["pods", "tfjob", "vcjob", "kueue"])
@pytest.mark.parametrize("name", JOBS)
def test_all_is_taken_in_and_nothing_vanishes(name: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOBS[name])
    objects = rendered(path, "--to", target, "--queue", "night")
    assert vanished(*objects) == []


@pytest.mark.parametrize("target", ["pods", "tfjob", "vcjob"])
def test_images_that_have_the_agent(target: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOBS["colocate"])
    objects = rendered(path, "--to", target, "--agent-image", "none")
    assert vanished(*objects) == []


@pytest.mark.parametrize("path", TFJOBS, ids=lambda path: path.stem)
def test_tfjobs_of_others_and_what_becomes_of_them(path: Path, tmp_path: Path) -> None:
    """The TFJobs that `convert` is tested with are real ones; so is what comes back."""
    other = yaml.safe_load(path.read_text())
    sent = {**other, "metadata": {**other["metadata"], "namespace": NAMESPACE}}
    for key in ("uid", "resourceVersion", "generation", "creationTimestamp"):
        sent["metadata"].pop(key, None)
    sent["metadata"].pop("finalizers", None)  # no controller here would ever answer it
    sent.pop("status", None)
    assert vanished(_named_once(sent)) == []
    name = sent["metadata"]["name"]
    stored = found(KINDS["TFJob"], name, "-n", NAMESPACE)
    kubectl("delete", KINDS["TFJob"], name, "-n", NAMESPACE)
    job = tmp_path / "job.yaml"
    # As a user reads it from a cluster: with all that the server has added.
    job.write_text(tfjob_files.convert_text(yaml.safe_dump(stored), "tfjob.yaml").text)
    assert vanished(*rendered(job, "--to", "tfjob")) == []


def _named_once(part: Any) -> Any:
    """Return a part of a TFJob in which no list has a name twice: its definition of 1.9 refuses that."""
    if isinstance(part, dict):
        return {key: _named_once(value) for key, value in part.items()}
    if isinstance(part, list) and all(isinstance(each, dict) and "name" in each for each in part):
        return list({each["name"]: _named_once(each) for each in part}.values())
    return [_named_once(each) for each in part] if isinstance(part, list) else part


def _replicas(job: dict[str, Any]) -> None:
    job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = "three"


def _no_containers(job: dict[str, Any]) -> None:
    del job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]


def _minutes(job: dict[str, Any]) -> None:
    job["spec"]["runPolicy"]["activeDeadlineSeconds"] = "12h"


def _words(job: dict[str, Any]) -> None:
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"] = (
        "python train.py"
    )


def _ports(job: dict[str, Any]) -> None:
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["ports"] = [{"name": "x"}]


def _unheard_of_event(job: dict[str, Any]) -> None:
    job["spec"]["policies"] = [{"event": "PodSneezed", "action": "RestartJob"}]


def _negative(job: dict[str, Any]) -> None:
    job["spec"]["minAvailable"] = -1


def _no_tasks(job: dict[str, Any]) -> None:
    job["spec"]["tasks"] = []


def _task_name(job: dict[str, Any]) -> None:
    job["spec"]["tasks"][0]["name"] = "PS_1"


def _restart_policy(pod: dict[str, Any]) -> None:
    pod["spec"]["restartPolicy"] = "Sometimes"


def _less_than_requested(pod: dict[str, Any]) -> None:
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}


def _host_name(pod: dict[str, Any]) -> None:
    pod["spec"]["hostname"] = "Not A Name"


WRONG: list[tuple[str, str, Callable[[dict[str, Any]], None]]] = [
    ("tfjob", "TFJob", _replicas), ("tfjob", "TFJob", _no_containers), ("tfjob", "TFJob", _minutes),
    ("tfjob", "TFJob", _words), ("tfjob", "TFJob", _ports),
    ("vcjob", "Job", _unheard_of_event), ("vcjob", "Job", _negative), ("vcjob", "Job", _no_tasks),
    ("vcjob", "Job", _task_name),
    ("pods", "Pod", _restart_policy), ("pods", "Pod", _less_than_requested), ("pods", "Pod", _host_name),
]  # fmt: skip


@pytest.mark.parametrize(("target", "kind", "spoil"), WRONG, ids=lambda each: getattr(each, "__name__", each))
def test_wrong_output_would_be_refused(
    target: str, kind: str, spoil: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    """Else the tests above would say nothing."""
    path = tmp_path / "job.yaml"
    path.write_text(JOBS["spread-ps"])
    made = next(each for each in rendered(path, "--to", target) if each["kind"] == kind)
    wrong = copy.deepcopy(made)
    spoil(wrong)
    with pytest.raises(AssertionError, match=r"is invalid|Invalid|cannot be handled"):
        vanished(wrong)
    assert vanished(made) == []


def test_an_unknown_field_would_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOBS["plain"])
    (tfjob,) = (each for each in rendered(path, "--to", "tfjob") if each["kind"] == "TFJob")
    tfjob["spec"]["runPolicy"]["unheardOf"] = 1
    assert vanished(tfjob) == [".spec.runPolicy.unheardOf: 1 became None"]
