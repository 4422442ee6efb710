"""A job that is written and read again is the same job."""

import dataclasses

from hypothesis import given, settings
from support.examples import examples
from support.job_specs import job_specs

from paceline import specs
from paceline.model.jobs import job_specs as jobs
from paceline.model.roles import Role


@settings(max_examples=examples(80))
@given(job_specs())
def test_what_is_written_reads_back_equal(spec: jobs.JobSpec) -> None:
    text = specs.dump_job(spec)
    assert specs.parse_job(text).spec == spec, text


def test_the_good_file_reads_back_equal(good: str) -> None:
    spec = specs.parse_job(good).spec
    assert specs.parse_job(specs.dump_job(spec)).spec == spec


def test_defaults_are_left_out() -> None:
    role = jobs.RoleSpec(role=Role.WORKER, cpu_cores=1.5, memory_bytes=2**30)
    spec = jobs.JobSpec(name="a", command=("python", "train.py"), roles=(role,))
    assert specs.dump_job(spec) == (
        "apiVersion: paceline.dev/v1alpha1\n"
        "kind: TrainingJob\n"
        "metadata:\n"
        "  name: a\n"
        "spec:\n"
        "  command: [python, train.py]\n"
        "  roles:\n"
        "    worker:\n"
        "      replicas: 1\n"
        "      cpu: 1500m\n"
        "      memory: 1Gi\n"
    )
    longer = dataclasses.replace(spec, active_deadline_seconds=5400.0)
    assert "active_deadline: 90m" in specs.dump_job(longer)
