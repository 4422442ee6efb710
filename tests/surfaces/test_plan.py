"""``paceline plan``: layouts of variables side by side."""

import dataclasses
import json
from pathlib import Path

import pytest
from support import filled_homes

from paceline import specs
from paceline.model.jobs.runs import SEEN, JobEvent
from paceline.model.roles import ReplicaId, Role
from paceline.services import variable_plans
from paceline.stores import open_store
from paceline.surfaces.cli.verbs import plan

JOB = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  command: [python, train.py]
  roles: {ps: {replicas: 2}, worker: {replicas: 2}}
  training: {partitioning: {strategy: none}}
"""
VARIABLES = {
    "variables": [
        {"name": "vectors", "shape": [2000, 16], "sparse": True, "slots": 1, "step_bytes": 9000.0,
         "row_shares": [0.7, 0.1, 0.1, 0.1]},
        {"name": "kernel", "shape": [640, 32], "slots": 1, "step_bytes": 163840.0},
    ]
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    job, variables = tmp_path / "job.yaml", tmp_path / "variables.json"
    job.write_text(JOB)
    variables.write_text(json.dumps(VARIABLES))
    return job, variables


def test_plans_stand_side_by_side(paceline, files):
    job, variables = files
    done = paceline("plan", str(job), "--variables", str(variables))
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line[:12].strip(): line.split() for line in lines[1:7]}
    assert rows["job-file"][-1] == rows["round-robin"][-1] == "1.90"
    assert rows["by-traffic"][-1] == "1.00"
    assert rows["partitioned"][-1] != rows["partitioned"][-3]


def test_a_job_has_its_own_variables(paceline, files, home):
    job, variables = files
    spec = dataclasses.replace(specs.parse_job(JOB).spec, name="counted")
    folder = Path(filled_homes.fill(home, "counted", spec=spec).directory)
    done = paceline("plan", "counted")
    assert done.exit_code == 2
    assert "the variables of counted are not known" in done.stderr
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "variables.json").write_text(json.dumps(VARIABLES))
    of_job = paceline("plan", "counted")
    assert of_job.exit_code == 0, of_job.output
    assert of_job.stdout == paceline("plan", str(job), "--variables", str(variables)).stdout
    assert paceline("plan", "missing").exit_code == 3


def test_a_script_that_is_seen_obeys_cures_alone(paceline, home):
    spec = dataclasses.replace(specs.parse_job(JOB).spec, name="seen", training=None)
    folder = Path(filled_homes.fill(home, "seen", spec=spec).directory)
    folder.mkdir(parents=True, exist_ok=True)
    placed = [each | {"devices": [f"/job:ps/task:{at}"]} for at, each in enumerate(VARIABLES["variables"])]
    (folder / "variables.json").write_text(json.dumps({"variables": placed}))
    said = JobEvent(
        at=1e9, kind=SEEN, message="its steps, made by sessions", replica=ReplicaId(Role.WORKER, 0)
    )
    with open_store(home.store_url) as store:
        store.append_events("seen", [said])
    shown = paceline("plan", "seen", "--choose", "job-file", "-o", "json")
    assert shown.exit_code == 0, shown.output
    # As the job file would have it they would be cut over both.
    assert [each["variable"] for each in json.loads(shown.stdout)["shards"]] == ["vectors", "kernel"]
    assert "library alone" in paceline("plan", "seen").output


def test_a_file_says_nothing_of_variables(paceline, files):
    done = paceline("plan", str(files[0]))
    assert done.exit_code == 2
    assert "--variables FILE" in done.stderr


def test_the_document_has_every_shard(paceline, files):
    job, variables = files
    done = paceline("plan", str(job), "--variables", str(variables), "-o", "json")
    items = {item["name"]: item for item in json.loads(done.stdout)["items"]}
    assert list(items) == ["job-file", "round-robin", "greedy", "partitioned", "balanced", "by-traffic"]
    assert tuple(items) == variable_plans.NAMES == plan.NAMES
    ranges = [shard for shard in items["partitioned"]["shards"] if shard["variable"] == "vectors"]
    assert [(shard["ps"], shard["rows"], shard["step_bytes"]) for shard in ranges] == [
        (0, 1000, pytest.approx(7200)),
        (1, 1000, pytest.approx(1800)),
    ]


def test_what_was_not_measured_is_said(paceline, files):
    job, variables = files
    text = json.dumps({"variables": [{"name": "vectors", "shape": [1000, 16], "sparse": True}]})
    variables.write_text(text)
    done = paceline("plan", str(job), "--variables", str(variables))
    assert done.exit_code == 0
    assert "by-traffic: the traffic of vectors is not measured" in done.stdout
    assert "- not measured" in done.stdout


def test_a_job_without_ps_is_refused(paceline, files):
    job, variables = files
    job.write_text(JOB.replace("ps: {replicas: 2}, ", ""))
    done = paceline("plan", str(job), "--variables", str(variables))
    assert done.exit_code == 2
    assert "the job has no ps" in done.stderr


def test_one_plan_shard_by_shard(paceline, files):
    job, variables = files
    done = paceline("plan", str(job), "--variables", str(variables), "--choose", "partitioned")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[1] == ["vectors/0", "0", "1,000", "contiguous", "125K", "7.0K"]
    assert rows[2] == ["vectors/1", "1", "1,000", "contiguous", "125K", "1.8K"]
    assert rows[-1][:2] == ["traffic", "max/mean"]


def test_a_plan_is_saved_compared_and_obeyed(paceline, files, tmp_path):
    job, variables = files
    saved = tmp_path / "plan.json"
    common = ("plan", str(job), "--variables", str(variables))
    assert paceline(*common, "--choose", "partitioned", "--save", str(saved)).exit_code == 0
    document = json.loads(saved.read_text())
    assert document["kind"] == "VariablePlan"
    assert {one["name"]: one["ps"] for one in document["variables"]} == {"vectors": [0, 1], "kernel": [0]}

    done = paceline(*common, "--diff", str(saved), "-o", "json")
    (moved,) = json.loads(done.stdout)["items"]
    assert moved["variable"] == "vectors"
    assert moved["moved_bytes"] == 1000 * 16 * 4 * 2

    job.write_text(JOB.replace("partitioning: {strategy: none}", "variable_plan: plan.json"))
    done = paceline(*common, "--diff", str(saved))
    assert "nothing moves" in done.stdout


def test_a_plan_that_is_saved_is_a_document_too(paceline, files, tmp_path):
    job, variables = files
    common = ("plan", str(job), "--variables", str(variables), "--save", str(tmp_path / "plan.json"))
    assert paceline(*common).stdout == ""
    found = json.loads(paceline(*common, "-o", "json").stdout)
    assert (found["kind"], found["name"]) == ("VariablePlanDetails", "job-file")
    assert json.loads(paceline(*common, "--choose", "job-file", "-o", "json").stdout) == found


def test_a_plan_for_another_job_is_refused_by_name(paceline, files, tmp_path):
    job, variables = files
    saved = tmp_path / "plan.json"
    common = ("plan", str(job), "--variables", str(variables))
    paceline(*common, "--save", str(saved))
    job.write_text(
        JOB.replace("partitioning: {strategy: none}", "variable_plan: plan.json").replace(
            "ps: {replicas: 2}", "ps: {replicas: 3}"
        )
    )
    done = paceline(*common)
    assert done.exit_code == 2
    assert "it is for 2 ps, and there are 3" in done.stderr
    assert paceline("submit", str(job), "--dry-run").exit_code == 2
    saved.unlink()
    assert paceline("submit", str(job), "--dry-run").exit_code == 3


def test_a_plan_that_is_not_there_cannot_be_chosen(paceline, files, tmp_path):
    job, variables = files
    variables.write_text(json.dumps({"variables": [{"name": "vectors", "shape": [9, 1], "sparse": True}]}))
    done = paceline("plan", str(job), "--variables", str(variables), "--choose", "by-traffic")
    assert done.exit_code == 2
    assert "the traffic of vectors is not measured" in done.stderr


def test_placement_by_traffic_becomes_a_plan_in_what_replicas_are_given(paceline, files):
    job, _ = files
    wanted = "variable_placement: traffic, measured_variables: variables.json, batch_size: 9"
    job.write_text(JOB.replace("partitioning: {strategy: none}", wanted))
    done = paceline("submit", str(job), "--dry-run", "-o", "json")
    assert done.exit_code == 0, done.output
    replicas = json.loads(done.stdout)["replicas"]
    given = json.loads(replicas[0]["environment"]["PACELINE_TRAINING"])
    assert set(given) == {"batch_size", "variable_plan"}
    assert {one["name"] for one in given["variable_plan"]["variables"]} == {"vectors", "kernel"}
