"""``paceline fit``: whether a job fits where jobs run, or on a cluster of a file."""

import json

import pytest

JOB = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  command: [python, train.py]
  placement: {strategy: spread-ps}
  roles: {ps: {replicas: 2, cpu: 2, memory: 1Gi}, worker: {replicas: 6, cpu: 2, memory: 1Gi}}
"""


def node(name, cpu):
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


@pytest.fixture
def files(tmp_path):
    job, cluster = tmp_path / "job.yaml", tmp_path / "cluster.json"
    job.write_text(JOB)
    cluster.write_text(json.dumps({"items": [node("a", 8), node("b", 8)]}))
    return job, cluster


def test_a_job_that_fits_says_where(paceline, files):
    job, cluster = files
    done = paceline("fit", str(job), "--cluster", str(cluster))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "clicks fits: 8 replicas on 2 nodes",
        "NODE  PS  WORKER  CPU  MEMORY",
        "a      1       3    8    4.0G",
        "b      1       3    8    4.0G",
    ]


def test_a_job_that_does_not_fit_says_how_much_would_and_why(paceline, files):
    job, cluster = files
    job.write_text(JOB.replace("worker: {replicas: 6", "worker: {replicas: 9"))
    done = paceline("fit", str(job), "--cluster", str(cluster))
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "clicks does not fit: 6 of 9 workers would"
    assert lines[1].split() == ["NO", "PLACE", "FOR", "NODES", "BECAUSE", "WHICH"]
    assert lines[2].split(maxsplit=3) == ["3", "worker", "2", "too little CPU for 2 cores  a b"]
    assert max(map(len, lines)) <= 80
    assert "spec.roles.worker.replicas: 6" in done.stderr


def test_the_document(paceline, files):
    job, cluster = files
    done = paceline("fit", str(job), "--cluster", str(cluster), "-o", "json")
    document = json.loads(done.stdout)
    assert (document["kind"], document["fits"], document["most_workers"]) == ("Fit", True, 6)
    assert set(document["places"].values()) == {"a", "b"}
    cluster.write_text(json.dumps({"items": [node("a", 8)]}))
    done = paceline("fit", str(job), "--cluster", str(cluster), "-o", "json")
    document = json.loads(done.stdout)
    assert (document["fits"], document["most_workers"], document["places"]) == (False, None, {})
    assert document["blockers"] == [
        {"reason": "the placement wants no more than 1 on a node", "nodes": ["a"], "what": "ps", "missing": 1}
    ]
    assert done.exit_code == 1


def test_this_machine(paceline, files):
    job, _ = files
    job.write_text(JOB.replace("  placement: {strategy: spread-ps}\n", ""))
    done = paceline("fit", str(job))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "clicks fits: 8 replicas on 1 node"
    job.write_text(JOB.replace("6, cpu: 2, memory: 1Gi", "6, cpu: 2, memory: 900Ti"))
    done = paceline("fit", str(job))
    assert done.exit_code == 1
    assert done.stderr.startswith("error: clicks does not fit")
    assert max(map(len, done.stdout.splitlines())) <= 80
