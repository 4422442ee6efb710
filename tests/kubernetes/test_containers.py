"""Real containers on a real node: agents in images of others, the clicks example to its AUC."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import clusters, interpreters
from support.real_clusters import (
    NAMESPACE,
    PACELINE,
    OperatorProcess,
    Shift,
    found,
    get,
    kubectl,
    objects,
    pods,
    status,
    submit,
    until,
    until_phase,
)  # fmt: skip
from support.styles import STYLES, Style

from paceline.engines.kubernetes import kinds
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import JobSpec, MemoryGrowth, RestartPolicy, RoleSpec
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.tunings import Objective
from paceline.services.studying.live_changes import Changer
from paceline.services.studying.trials import TrialTimes
from paceline.specs.job_file import custom_resources
from paceline.surfaces import composition

ROOT = Path(__file__).parents[2]
#: Busybox and nothing else; the nodes of ../shared/ground have it.
BUSYBOX = "localhost/work:1"
MINUTES = 60.0

#: The same file runs on one machine: its folders are mounted where they are.
CLICKS = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: clicks}}
spec:
  image: {image}
  working_dir: {root}
  command: [python, -m, paceline.examples.clicks.train, --data, {data}]
  roles:
    ps: {{replicas: 2, memory: 3Gi}}
    chief: {{replicas: 1, memory: 3Gi}}
    worker: {{replicas: 1, cpu: 1, cpu_policy: exclusive, memory: 3Gi}}
  volumes:
  - {{name: code, host_path: {root}, mount_path: {root}, read_only: true}}
  - {{name: data, host_path: {data}, mount_path: {data}, read_only: true}}
  - {{name: runs, host_path: {runs}, mount_path: {runs}}}
  training:
    optimizer: {{name: adagrad, learning_rate: 0.05}}
    wide_optimizer: {{name: ftrl, learning_rate: 0.3}}
    batch_size: 512
    epochs: 2
    checkpoint: {{every_seconds: 5}}
"""


@pytest.fixture(scope="module", autouse=True)
def nowhere(only_real_nodes: None, installed: None) -> Iterator[str]:
    """The namespace of a job whose image is nowhere, which the operator believes after two minutes.

    So it begins with the first test here, and the last one looks at it.
    """
    namespace = f"{NAMESPACE}-nowhere"
    spec = plain("nowhere", "true", image="localhost/nowhere:1", restart=RestartPolicy(limit=0))
    clusters.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    clusters.apply([custom_resources.resource(spec, namespace)])
    yield namespace
    kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture
def operator(operator_with_agents: OperatorProcess) -> OperatorProcess:
    return operator_with_agents


def paceline(*arguments: str) -> str:
    """Return what the command prints about the cluster."""
    done = subprocess.run(
        [*PACELINE, *arguments],
        env={**os.environ, "PACELINE_ENGINE": "kubernetes", "COLUMNS": "80"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"paceline {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
    return done.stdout


def plain(name: str, *command: str, image: str = BUSYBOX, **more: object) -> JobSpec:
    """Return a job of one worker with no Python in its image."""
    worker = RoleSpec(role=Role.WORKER, memory_bytes=64 << 20, **more)  # type: ignore[arg-type]
    return JobSpec(
        name=name, image=image, command=command, roles=(worker,), termination_grace_seconds=1.0
    )  # fmt: skip


@pytest.mark.timeout(60 * MINUTES)
def test_agents_say_how_replicas_end_whatever_image_they_have(operator: OperatorProcess) -> None:
    once = RestartPolicy(limit=1, backoff_seconds=0.1)
    fill = "x=0123456789abcdef; while true; do x=$x$x; done"
    submit(plain("well", "sh", "-c", "echo $PACELINE_ROLE-$PACELINE_INDEX of {job}"))
    submit(plain("wrong", "sh", "-c", "echo to stderr >&2; exit 3", restart=once))
    submit(plain("missing", "no-such-program", restart=once))
    submit(plain("large", "sh", "-c", fill, restart=once, memory_growth=MemoryGrowth(factor=1.5)))

    until_phase("well", "succeeded", 15 * MINUTES)
    assert paceline("logs", "well", "-n", NAMESPACE).strip().endswith("worker-0 of well")
    for name, reason in (
        ("wrong", "code 3"),
        ("missing", "no-such-program"),
        ("large", "memory"),
    ):
        until_phase(name, "failed", 15 * MINUTES)
        assert re.search(reason, status(name)["message"]), (name, status(name))
    assert len(pods("wrong")) == 2, "each attempt is a pod of its own"
    assert "to stderr" in paceline("logs", "wrong", "-n", NAMESPACE)
    limits = [pod["spec"]["containers"][0]["resources"]["limits"]["memory"] for pod in pods("large")]
    assert limits == ["64Mi", "96Mi"]
    # Busybox has no Python, so the agent is copied.
    assert [each["name"] for each in pods("well")[0]["spec"]["initContainers"]] == ["agent"]


@pytest.mark.timeout(60 * MINUTES)
def test_only_pods_of_a_job_reach_its_ports(operator: OperatorProcess) -> None:
    answers = "while true; do echo reached | nc -l -p 2222; done"
    workers = RoleSpec(role=Role.WORKER, replicas=2, memory_bytes=64 << 20)
    command = ("sh", "-c", answers)
    submit(
        JobSpec(
            name="closed", image=BUSYBOX, command=command, roles=(workers,), termination_grace_seconds=1.0
        )
    )
    until_phase("closed", "running", 15 * MINUTES)
    first, second = (pod["metadata"]["name"] for pod in pods("closed"))
    address = next(pod["status"]["podIP"] for pod in pods("closed") if pod["metadata"]["name"] == second)
    elsewhere = f"{NAMESPACE}-strangers"
    kubectl("create", "namespace", elsewhere)
    try:
        for namespace in (NAMESPACE, elsewhere):
            run = ("run", "stranger", "-n", namespace, f"--image={BUSYBOX}", "--restart=Never")
            kubectl(*run, "--command", "--", "sleep", "3600")
            kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/stranger", "--timeout=900s")
        until(lambda: reaches(NAMESPACE, first, address), "a worker does not reach the other", 15 * MINUTES)
        for namespace in (NAMESPACE, elsewhere):
            until(lambda at=namespace: not reaches(at, "stranger", address), "it is open", 15 * MINUTES)
        assert reaches(NAMESPACE, first, address)
        # It is the job's policy that shuts strangers out.
        kubectl("delete", "networkpolicy", "closed", "-n", NAMESPACE)
        for namespace in (NAMESPACE, elsewhere):
            until(lambda at=namespace: reaches(at, "stranger", address), "it is shut", 15 * MINUTES)
    finally:
        kubectl(
            "delete", "pod", "stranger", "-n", NAMESPACE, "--ignore-not-found", "--grace-period=0", "--force"
        )
        kubectl("delete", "namespace", elsewhere, "--wait=false")


@pytest.mark.timeout(60 * MINUTES)
def test_only_named_clients_reach_agents(
    shift: Shift, image: str, agent_files: str, operator_home: Path
) -> None:
    watchers = f"{NAMESPACE}-watchers"
    (api,) = found("endpoints", "kubernetes", "-n", "default")["subsets"]
    networks = [f"{each['ip']}/32" for each in api["addresses"]]
    agents = ("--agent-image", image, "--agent-files", agent_files, "--home", str(operator_home))
    kubectl("create", "namespace", watchers)
    try:
        with shift.of(*agents, "--agent-clients", ",".join([*networks, watchers])):
            submit(plain("guarded", "sh", "-c", "sleep 3600"))
            until_phase("guarded", "running", 15 * MINUTES)
            (pod,) = pods("guarded")
            address = pod["status"]["podIP"]
            for namespace in (NAMESPACE, watchers):
                run = ("run", "stranger", "-n", namespace, f"--image={BUSYBOX}", "--restart=Never")
                kubectl(*run, "--command", "--", "sleep", "3600")
                kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/stranger", "--timeout=900s")
            until(lambda: measures(watchers, address), lambda: "Prometheus is shut out", 15 * MINUTES)
            until(lambda: not measures(NAMESPACE, address), lambda: "strangers are let in", 15 * MINUTES)
            assert measures(watchers, address)
            # The operator and people ask by the API server; names are found as before.
            until(is_measured, lambda: "the operator and users are shut out", 15 * MINUTES)
            name = pod["metadata"]["name"]
            kubectl("exec", "-n", NAMESPACE, name, "--", "nslookup", "kubernetes.default.svc.cluster.local")
    finally:
        kubectl(
            "delete", "pod", "stranger", "-n", NAMESPACE, "--ignore-not-found", "--grace-period=0", "--force"
        )
        kubectl("delete", "namespace", watchers, "--wait=false")


def is_measured() -> bool:
    """Whether ``top`` knows what the replica of the guarded job takes."""
    (role,) = json.loads(paceline("top", "guarded", "-n", NAMESPACE, "-o", "json"))["roles"]
    (replica,) = role["replicas"]
    return replica["memory_bytes"] is not None


def measures(namespace: str, address: str) -> bool:
    """Whether a pod of a namespace gets the figures of an agent."""
    ask = f"printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' | nc -w 5 {address} 2223 || true"
    said = kubectl("exec", "-n", namespace, "stranger", "--", "sh", "-c", ask)
    return "paceline_replica_memory_bytes" in said


def reaches(namespace: str, pod: str, address: str) -> bool:
    """Whether a pod gets an answer from a port of a job's replica."""
    ask = f"nc -w 5 {address} 2222 < /dev/null || true"
    return "reached" in kubectl("exec", "-n", namespace, pod, "--", "sh", "-c", ask)


@pytest.mark.timeout(60 * MINUTES)
def test_a_flood_of_output_is_said(operator: OperatorProcess, operator_home: Path) -> None:
    # A megabyte in half a second: the kubelet begins a new file again and again, and shows no other one.
    prints = f"while true; do yes {'x' * 99} | head -n 10000; sleep 0.5; done"
    submit(plain("floods", "sh", "-c", prints))
    until_phase("floods", "running", 15 * MINUTES)

    def floods(*kept: str) -> list[dict[str, Any]]:
        why = json.loads(paceline("why", "floods", "-n", NAMESPACE, "-o", "json", *kept))
        return [cause for cause in why["causes"] if cause["name"] == "log-flood"]

    until(floods, lambda: paceline("describe", "floods", "-n", NAMESPACE), 15 * MINUTES)
    (live,) = floods()
    store = f"sqlite:///{operator_home}/paceline.db"
    (kept,) = floods("--home", str(operator_home), "--store", store)
    assert [each["text"] for each in live["evidence"]] == [each["text"] for each in kept["evidence"]]
    (seen,) = kept["evidence"]
    assert re.match(r"worker-0: \d+\.\d MiB of output a second, or more, at each of \d+ looks", seen["text"])
    (output,) = operator_home.glob("clusters/*/floods/**/worker-0.1.log")
    assert "paceline: lines are missing here" in output.read_text()
    paceline("delete", "floods", "--force", "-n", NAMESPACE)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the clicks job trains on: fewer examples than its own, which teach most of what can be learned."""
    folder = tmp_path_factory.mktemp("clicks") / "data"
    rows, tables = "--train-rows 400000 --evaluation-rows 50000", "--tables 5000 2000 500 100 20"
    made = [sys.executable, "-m", "paceline.examples.clicks.generate", "--output", folder]
    subprocess.run([*made, *f"{rows} {tables}".split()], cwd=ROOT, check=True)
    return folder


@pytest.fixture
def clicks(image: str, data: Path, tmp_path: Path) -> str:
    """The file of the clicks job, whose runs are kept in this test's folder."""
    runs = tmp_path / "runs"
    runs.mkdir()
    return CLICKS.format(image=image, root=ROOT, data=data, runs=runs)


def top(*arguments: str) -> dict[str, Any]:
    """Return what is measured of replicas, by their names."""
    shown = json.loads(paceline("top", *arguments, "--once", "-o", "json"))
    return {each["replica"]: each for role in shown["roles"] for each in role["replicas"]}


@pytest.mark.timeout(120 * MINUTES)
def test_the_clicks_example_trains_to_its_auc(
    operator: OperatorProcess, clicks: str, agent_files: str, operator_home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(clicks)
    paceline("submit", str(file), "-n", NAMESPACE)
    until_phase("clicks", "running", 15 * MINUTES)

    if agent_files != "none":
        for pod in pods("clicks"):
            assert "initContainers" not in pod["spec"], "the agent is mounted, and nothing is copied"
    assert exclusive_cores("clicks-worker-0-1") == {1}
    assert 1 not in exclusive_cores("clicks-ps-0-1")

    # A checkpoint counts when its checksums are there.
    until(
        lambda: list((tmp_path / "runs").glob("clicks/checkpoints/*.checksums.json")),
        lambda: status("clicks"),
        15 * MINUTES,
    )
    of_worker = top("clicks", "-n", NAMESPACE)["worker-0"]
    assert of_worker["cpu_cores"] > 0
    assert of_worker["memory_bytes"] > 100 << 20
    assert of_worker["sent_bytes_per_second"] > 0
    why = json.loads(paceline("why", "clicks", "-n", NAMESPACE, "-o", "json"))
    # Of what runs on this machine beside the cluster it may say so: that other programs use the job's cores,
    # or more of one core than of the other.
    harmful = {cause["code"] for cause in why["causes"] if cause["severity"] != "info"}
    assert harmful <= {"CPU003", "WRK101"}, json.dumps(why["causes"])
    # How fast the node's link is, is not known.
    assert re.match(r"(nothing is wrong as far as can be seen: )?clicks runs", why["summary"]), why["summary"]
    checks = paceline("doctor", str(file), "-n", NAMESPACE)
    assert re.search(r"Exclusive cores +.*static", checks), checks
    paceline("stop", "clicks", "-n", NAMESPACE)
    until_phase("clicks", "stopped", 15 * MINUTES)
    paceline("resume", "clicks", "-n", NAMESPACE)
    until_phase("clicks", "running", 15 * MINUTES)
    until_phase("clicks", "succeeded", 45 * MINUTES)

    # Of the parameter servers there is no pod any more, but what the operator has kept.
    kept = (
        "--home",
        str(operator_home),
        "--store",
        f"sqlite:///{operator_home}/paceline.db",
        "-n",
        NAMESPACE,
    )
    assert "ps-0" in paceline("logs", "clicks", "--role", "ps", *kept)
    whole = top("clicks", *kept)
    assert set(whole) == {"ps-0", "ps-1", "chief-0", "worker-0"}
    assert all((each["cpu_cores"] or 0.0) > 0 for each in whole.values()), whole
    lines = paceline("logs", "clicks", "-n", NAMESPACE)
    assert re.search(r"parameters start from \S*checkpoints/", lines), "it went on from its checkpoint"
    reached, best = map(float, re.search(r"AUC (0\.\d+); the best possible is (0\.\d+)", lines).groups())
    # The benchmark `accuracy` has the promise, on all of its data; without training this is 0.22.
    assert best - reached < 0.04, lines[-2000:]


@pytest.mark.timeout(60 * MINUTES)
def test_a_change_that_makes_a_job_slower_is_tried_out_and_undone(
    operator: OperatorProcess, clicks: str, operator_home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(clicks.replace("clicks}", "changed}").replace("epochs: 2", "epochs: 1000"))
    paceline("submit", str(file), "-n", NAMESPACE)
    smaller = FieldChange(path=("spec", "training", "batch_size"), value=16)
    proposal = Proposal(name="smaller-batches", what="", changes=(smaller,), gain=None, basis="")
    store = f"sqlite:///{operator_home}/paceline.db"
    with composition.opened_cluster(namespace=NAMESPACE, home=operator_home, store=store) as jobs:
        changer = Changer(
            jobs=jobs,
            objective=Objective(),
            times=TrialTimes(start_seconds=15 * MINUTES, window_seconds=10.0),
        )
        jobs.wait("changed", timeout_seconds=15 * MINUTES, until=lambda run: run.phase is JobPhase.RUNNING)
        done = changer.change("changed", proposal)
        assert not done.judgement.kept, done
        assert 0.0 < done.judgement.times < 0.8
        asked, undone = jobs.spec_changes("changed")
        assert "batch_size: 16\n" in asked.source
        assert (undone.source, undone.before) == (asked.before, asked.source)
        assert None not in (asked.done_at, undone.done_at)
        assert (jobs.get("changed").spec.training or {})["batch_size"] == 512
    lines = paceline("logs", "changed", "-n", NAMESPACE)
    assert re.search(r"parameters start from \S*checkpoints/", lines), "it went on from its checkpoint"
    paceline("delete", "changed", "--force", "-n", NAMESPACE)


#: Two variants of the job above on one node; "wide" asks for more nodes than there are.
EXPERIMENT = """
apiVersion: paceline.dev/v1alpha1
kind: Experiment
metadata: {name: batches}
spec:
  job: job.yaml
  variants:
    small: &one {hosts: [{name: here}], chief.replicas: 0, ps.replicas: 1, worker.cpu_policy: shared}
    large: {<<: *one, training.batch_size: 2048}
    wide: {<<: *one, hosts: [{name: here}, {name: there}]}
  repeats: 1
  seconds: 5
"""


@pytest.mark.timeout(60 * MINUTES)
def test_an_experiment_that_is_killed_goes_on_and_leaves_no_label(
    operator: OperatorProcess, clicks: str, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(clicks)
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    store = ("--home", str(tmp_path / "own"), "-n", NAMESPACE)
    asked = [*PACELINE, "experiment", "run", str(tmp_path / "experiment.yaml"), *store]
    environment = {**os.environ, "PACELINE_ENGINE": "kubernetes", "COLUMNS": "80"}
    said = tmp_path / "experiment.log"
    with said.open("w") as log, subprocess.Popen(asked, env=environment, stdout=log, stderr=log) as first:
        try:
            until(labelled, said.read_text)
            until_phase("batches-0-0", "running", 15 * MINUTES)
        finally:
            first.kill()
    assert labelled(), "it had no time to take its label away"

    done = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert not labelled()
    told = json.loads(paceline("experiment", "status", "batches", "-o", "json", *store))
    by_variant = {each["variant"]: each["outcome"] for each in told["done"]}
    for name in ("small", "large"):
        assert by_variant[name]["examples_per_second"], by_variant
    assert "names 2 hosts, and 1 nodes are open to it" in by_variant["wide"]["failure"]


def foreign(name: str, python: Path, image: str, style: Style) -> dict[str, Any]:
    """Return a job of a script that was not written for Paceline.

    Its interpreter and its TensorFlow are mounted where they are here, as a user's image has its own.
    """
    base = subprocess.run(
        [python, "-c", "import sys; print(sys.base_prefix)"], check=True, capture_output=True, text=True
    ).stdout.strip()
    mounted = {"python": base, "tensorflow": str(python.parents[1]), "scripts": str(Path(style.path).parent)}
    return {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {
            "image": image,
            "command": [str(python), style.path, *style.arguments],
            "roles": {role: {"replicas": count, "memory": "2Gi"} for role, count in style.roles.items()},
            "volumes": [
                {"name": volume, "host_path": path, "mount_path": path, "read_only": True}
                for volume, path in mounted.items()
            ],
        },
    }


@pytest.mark.nightly
@pytest.mark.timeout(60 * MINUTES)
@pytest.mark.parametrize("version", ["1.15.5", "2.21.0"])
def test_an_unchanged_script_is_seen_in_its_own_image(
    operator: OperatorProcess, image: str, tmp_path: Path, version: str
) -> None:
    python = interpreters.with_tensorflow_or_skip(version)
    name = f"foreign-{version.replace('.', '-')}"
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(foreign(name, Path(python), image, STYLES["monitored"])))
    paceline("submit", str(file), "-n", NAMESPACE)
    until_phase(name, "running", 15 * MINUTES)

    def trained() -> bool:
        measured = top(name, "-n", NAMESPACE)
        return all((measured[f"worker-{index}"]["examples_per_second"] or 0) > 0 for index in (0, 1))

    until(trained, lambda: paceline("describe", name, "-n", NAMESPACE), 15 * MINUTES)
    trace = json.loads(paceline("trace", name, "-n", NAMESPACE, "-o", "json"))
    assert [each["trainer"] for each in trace["trainers"]] == ["worker-0", "worker-1"], trace["refused"]
    assert {row["variable"] for row in trace["traffic"]} >= STYLES["monitored"].variables
    described = " ".join(paceline("describe", name, "-n", NAMESPACE).split())
    assert f"TensorFlow {version} on Python" in described
    assert "its steps, made by sessions; loss: " in described
    assert "an error of its own" not in described
    # Which rows are used is known after some steps of one worker.
    until(
        lambda: re.search(r"^by-traffic +\d", plan(name), re.MULTILINE),
        lambda: plan(name),
        15 * MINUTES,
    )
    paceline("delete", name, "--force", "-n", NAMESPACE)


@pytest.mark.nightly
@pytest.mark.timeout(60 * MINUTES)
def test_a_coordinator_has_the_servers_of_other_pods_profiled(
    operator: OperatorProcess, image: str, tmp_path: Path
) -> None:
    """The agents ask each other, unasked by a user; there is no folder that they share."""
    python = interpreters.with_tensorflow_or_skip("2.21.0")
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(foreign("coordinated", Path(python), image, STYLES["loop-strategy"])))
    paceline("submit", str(file), "-n", NAMESPACE)
    until_phase("coordinated", "running", 15 * MINUTES)
    until(
        lambda: traced("coordinated") == ["worker-0", "worker-1"],
        lambda: paceline("describe", "coordinated", "-n", NAMESPACE),
        20 * MINUTES,
    )
    assert "other agents cannot be asked" not in paceline("describe", "coordinated", "-n", NAMESPACE)
    paceline("delete", "coordinated", "--force", "-n", NAMESPACE)


def traced(name: str) -> list[str]:
    """Return the trainers of a job's newest trace; none is taken for it."""
    command = [*PACELINE, "trace", name, "--engine", "kubernetes", "-n", NAMESPACE, "--last", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return [each["trainer"] for each in json.loads(done.stdout)["trainers"]] if done.returncode == 0 else []


@pytest.mark.timeout(60 * MINUTES)
def test_an_image_that_is_nowhere_fails_its_job(operator: OperatorProcess, nowhere: str) -> None:
    def now() -> dict[str, Any]:
        return dict((get(kinds.TRAINING_JOBS, "nowhere", nowhere) or {}).get("status") or {})

    until(lambda: now().get("phase") == "failed", now, 15 * MINUTES)
    assert re.search("ErrImagePull|ImagePullBackOff", now()["message"]), now()


def plan(name: str) -> str:
    """Return how the variables of a job would lie, as far as that is known."""
    command = [*PACELINE, "plan", name, "--engine", "kubernetes", "-n", NAMESPACE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout or done.stderr


def labelled() -> list[str]:
    """Return the nodes that an experiment has."""
    return [each["metadata"]["name"] for each in objects(kinds.NODES, "paceline.dev/experiment")]


def exclusive_cores(pod: str) -> set[int]:
    """Return the cores that a container may use, by its cgroup."""
    read = "cat /sys/fs/cgroup/cpuset/cpuset.cpus || cat /sys/fs/cgroup/cpuset.cpus.effective"
    text = kubectl("exec", pod, "-n", NAMESPACE, "-c", "training", "--", "sh", "-c", read).strip()
    ranges = [each.partition("-") for each in text.split(",")]
    return {core for first, _, last in ranges for core in range(int(first), int(last or first) + 1)}
