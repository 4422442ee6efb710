"""Scripts that were not written for Paceline run unchanged from a job file, by the command of a user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import interpreters, leftovers
from support.styles import STYLES

from paceline.engines.local import folders
from paceline.model.traces import trace_summaries, traced_steps
from paceline.model.traces.traced_steps import Direction
from paceline.sources import traces as sources
from paceline.specs import load_job

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parents[1] / "scripts"
HEADER = "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: user-script}\nspec:\n"
TF1 = f"""{HEADER}
  command: [python, {SCRIPTS}/tf1_style.py, "--ps_hosts={{ps_hosts}}", "--worker_hosts={{worker_hosts}}",
            "--job_name={{role}}", "--task_index={{index}}", "--checkpoint_dir={{checkpoint_dir}}",
            "--steps=200"]
  roles:
    ps: {{replicas: 2, cpu: 1, memory: 2Gi}}
    worker: {{replicas: 2, cpu: 1, memory: 2Gi}}
"""
STRATEGY = f"""{HEADER}
  command: [python, {SCRIPTS}/foreign/tf2_strategy.py]
  roles:
    chief: {{replicas: 1, memory: 2Gi}}
    ps: {{replicas: 2, memory: 2Gi}}
    worker: {{replicas: 2, memory: 2Gi}}
"""
TF2 = f"""{HEADER}
  command: [python, {SCRIPTS}/tf2_style.py]
  roles:
    chief: {{replicas: 1, memory: 2Gi}}
    ps: {{replicas: 2, memory: 2Gi}}
    worker: {{replicas: 2, memory: 2Gi}}
"""
HOSTS = "  hosts: [{name: a, bandwidth: 1Gbit}, {name: b, bandwidth: 1Gbit}]\n"


def paceline(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PACELINE_HOME": str(home)}
    program = Path(sys.executable).parent / "paceline"
    return subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize(
    ("text", "last_words"),
    [(TF1 + HOSTS, "worker 1 done, loss"), (TF2, "loss")],
    ids=["tf1-hosts", "tf2"],
)
def test_a_users_script_runs_unchanged(tmp_path: Path, text: str, last_words: str) -> None:
    job_file = tmp_path / "job.yaml"
    job_file.write_text(text)
    done = paceline(tmp_path / "home", "run", str(job_file))
    assert done.returncode == 0, done.stderr
    found = json.loads(paceline(tmp_path / "home", "get", "user-script", "-o", "json").stdout)
    assert found["phase"] == "succeeded"
    assert last_words in paceline(tmp_path / "home", "logs", "user-script").stdout
    folder = folders.RunFolder(tmp_path / "home" / "runs" / "user-script")
    assert leftovers.find(load_job(job_file).spec, folder) == []


#: Its second worker asks for its session when the first one has ended.
LATE = """
import os, sys, time
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
role, index, ps, workers, done = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
cluster = tf.train.ClusterSpec({"ps": ps.split(","), "worker": workers.split(",")})
server = tf.train.Server(cluster, job_name=role, task_index=index)
if role == "ps":
    server.join()
while index and not os.path.exists(done):
    time.sleep(1)
with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    train = tf.train.GradientDescentOptimizer(0.1).minimize(w * w, tf.train.get_or_create_global_step())
hooks = [tf.train.StopAtStepHook(10)]
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks) as session:
    while not session.should_stop():
        session.run(train)
"""
BLOCKED = f"""{HEADER}
  command: [sh, -c, "python SCRIPT {{role}} {{index}} {{ps_hosts}} {{worker_hosts}} DONE && touch DONE"]
  roles:
    ps: {{replicas: 1, memory: 2Gi}}
    worker: {{replicas: 2, memory: 2Gi}}
"""


@pytest.mark.nightly
def test_a_worker_that_needs_one_that_has_ended_is_told_of(tmp_path: Path) -> None:
    """TensorFlow waits for it for ever; what the script asks for says why."""
    home, job_file, script = tmp_path / "home", tmp_path / "job.yaml", tmp_path / "late.py"
    script.write_text(LATE)
    job_file.write_text(BLOCKED.replace("SCRIPT", str(script)).replace("DONE", str(tmp_path / "done")))
    assert paceline(home, "submit", str(job_file)).returncode == 0
    try:
        for _ in range(120):
            told = json.loads(paceline(home, "why", "user-script", "-o", "json").stdout)
            found = [each for each in told["causes"] if each["name"] == "no-device-filters"]
            if found and found[0]["severity"] == "error":
                break
            time.sleep(3)
        else:
            pytest.fail(f"it is not told: {told}")
        shown = json.loads(paceline(home, "describe", "user-script", "-o", "json").stdout)
    finally:
        paceline(home, "delete", "user-script", "--force")
    assert found[0]["subjects"] == ["worker-1", "worker-0"]
    facts = shown["script_facts"]
    assert {name: own["device_filters"] for name, own in facts.items()} == {
        "worker-0": False, "worker-1": False,
    }  # fmt: skip
    assert facts["worker-0"]["global_step_device"] == "/job:ps/task:0"
    # It waits: for how long, it will say when it has its session.
    assert facts["worker-1"]["recovery_wait_seconds"] == 30
    assert "session_wait_seconds" not in facts["worker-1"]


LOOKED_AT = f"""{HEADER}
  command: [sh, -c, "COMMAND"]
  roles:
    worker: {{replicas: 1, memory: 2Gi}}
"""
TRAINS = f"{sys.executable} {STYLES['feed'].path} --steps=50; exec sleep 600"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("command", "name"), [("yes | head -c 60000000; exec sleep 600", "log-flood"), (TRAINS, "trainer-ended")]
)
def test_a_command_that_does_something_else(tmp_path: Path, command: str, name: str) -> None:
    home, job_file = tmp_path / "home", tmp_path / "job.yaml"
    job_file.write_text(LOOKED_AT.replace("COMMAND", command))
    assert paceline(home, "submit", str(job_file)).returncode == 0
    try:
        for _ in range(60):
            told = json.loads(paceline(home, "why", "user-script", "-o", "json").stdout)
            if name in [cause["name"] for cause in told["causes"]]:
                break
            time.sleep(5)
        else:
            pytest.fail(f"it is not told: {told}")
    finally:
        paceline(home, "delete", "user-script", "--force")


@pytest.mark.nightly
@pytest.mark.parametrize("version", STYLES["loop-strategy"].versions)
def test_a_coordinator_of_each_version(tmp_path: Path, version: str) -> None:
    python = interpreters.with_tensorflow_or_skip(version)
    job_file = tmp_path / "job.yaml"
    job_file.write_text(STRATEGY.replace("python, ", f"{python}, ").replace("tf2_strategy.py", "tf2_loop.py"))
    done = paceline(tmp_path / "home", "run", str(job_file))
    assert done.returncode == 0, done.stderr
    assert "iterations 150" in paceline(tmp_path / "home", "logs", "user-script").stdout
    shown = json.loads(paceline(tmp_path / "home", "describe", "user-script", "-o", "json").stdout)
    assert "an error of its own" not in json.dumps(shown)
    assert shown["script_facts"]["chief-0"] == {"coordinates": True}


@pytest.mark.nightly
def test_servers_of_a_strategy_are_profiled_by_their_agents(tmp_path: Path) -> None:
    home, job_file = tmp_path / "home", tmp_path / "job.yaml"
    job_file.write_text(STRATEGY)
    run = home / "runs" / "user-script"
    try:
        assert paceline(home, "submit", str(job_file)).returncode == 0
        begun = paceline(home, "wait", "user-script", "--for", "step=100")
        assert begun.returncode == 0, begun.stderr
        workers = _traced_workers(home, run)
    finally:
        paceline(home, "stop", "user-script")
    for worker in workers:
        for split in worker.splits:
            assert split.input_wait_microseconds is not None
            assert split.compute_microseconds > 0
            assert split.pull_microseconds > 0
        _has_the_variables(worker)


def _traced_workers(home: Path, run: Path) -> list[traced_steps.Trace]:
    """Return a trace of each worker; beside other tests it may make no whole step while one is taken."""
    workers: dict[str, traced_steps.Trace] = {}
    deadline, said = time.monotonic() + 600, ""
    while len(workers) < 2:
        assert time.monotonic() < deadline, (sorted(workers), said)
        taken = paceline(home, "trace", "user-script", "-o", "json")
        if taken.returncode:  # None of the workers made a whole step.
            said = taken.stderr
            continue
        found = sources.read(run, json.loads(taken.stdout)["trace"])
        assert found.broken == ()
        assert found.refused["chief-0"] == "its steps are made without a session"
        there = {path.name for path in sources.files(run, found.name)}
        silent = [one for one in ("ps-0", "ps-1", "worker-0", "worker-1") if f"{one}.1.profile" not in there]
        assert all(replica in taken.stderr for replica in silent), "a profile that does not come is told of"
        if not silent:
            workers.update((each.trainer, each) for each in found.traces)
    return list(workers.values())


def _has_the_variables(worker: traced_steps.Trace) -> None:
    """Each variable is pulled and pushed once a step and shard, and its update is on its server."""
    traffic = trace_summaries.traffic([worker])
    moved = {(row.variable, row.shard, row.direction) for row in traffic}
    for shard in (0, 1):
        assert {("site/embeddings", shard, direction) for direction in Direction} <= moved
    assert {("tags/embeddings", None, direction) for direction in Direction} <= moved
    assert {("hidden/kernel", None, each) for each in (Direction.PULL, Direction.PUSH)} <= moved
    # All 256 rows of a batch, and all of a kernel of 36 by 64; but for the first and the last.
    sizes = {"tags/embeddings": 256 * 16 * 4, "hidden/kernel": 36 * 64 * 4}
    for row in traffic:
        if row.variable in sizes and row.direction is not Direction.IDS:
            assert row.bytes == pytest.approx(sizes[row.variable], rel=0.1)
    server = {row.shard: row.server for row in traffic if row.variable == "site/embeddings"}
    assert sorted(server.values()) == ["ps-0", "ps-1"]
    updates = [
        row for row in trace_summaries.server_time([worker]) if row.kind == "ResourceSparseApplyAdagradV2"
    ]
    assert {(row.variable, row.shard, row.server) for row in updates} >= {
        ("site/embeddings", shard, server[shard]) for shard in (0, 1)
    }
    assert all(row.calls == pytest.approx(1, abs=0.5) for row in updates), "but for steps that overlap"
