"""The spec of a run whose job file is changed."""

from __future__ import annotations

import pytest

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.jobs.runs import Run
from paceline.services import successors

JOB = """apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  command: [python3, train.py]
  roles:
    ps: {replicas: 1}
    chief: {}
    worker: {replicas: 3}
  training:
    batch_size: 512
    consistency: {mode: synchronous}
"""
ASYNCHRONOUS = JOB.replace("synchronous", "asynchronous")


def run_of(source: str) -> Run:
    spec = specs.parse_job(source).spec
    return Run(name="clicks-2", spec=spec, source=source, engine="local", directory="/d", submitted_at=0.0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("batch_size: 512", "batch_size: 1024"),
        ("    batch_size: 512\n", ""),
        ("replicas: 3", "replicas: 4"),
        ("synchronous}", "synchronous, backup_workers: 1}"),
        ("mode: synchronous", "mode: asynchronous"),
    ],
)
def test_a_synchronous_job_keeps_the_examples_of_a_step(old: str, new: str) -> None:
    changed = JOB.replace(old, new)
    assert changed != JOB
    for before, after in ((JOB, changed), (changed, JOB)):
        with pytest.raises(InvalidInput, match="another number of examples in a step"):
            successors.successor(run_of(before), after)


def test_other_changes_of_a_synchronous_job_are_made() -> None:
    more_servers = JOB.replace("ps: {replicas: 1}", "ps: {replicas: 2}")
    assert successors.successor(run_of(JOB), more_servers).name == "clicks-2"
    as_many = JOB.replace("replicas: 3", "replicas: 1").replace("512", "1024")
    assert successors.successor(run_of(JOB), as_many).training == {
        "batch_size": 1024, "consistency": {"mode": "synchronous"},
    }  # fmt: skip


def test_an_asynchronous_job_may_have_other_workers_and_batches() -> None:
    changed = ASYNCHRONOUS.replace("replicas: 3", "replicas: 1").replace("512", "1024")
    assert len(successors.successor(run_of(ASYNCHRONOUS), changed).replicas()) == 3
