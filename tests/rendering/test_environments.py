"""What agents are told."""

from __future__ import annotations

import dataclasses
import json

import pytest

from paceline.model.jobs.job_specs import Framework, Instrumentation, JobSpec, RoleSpec
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import environments

FILES = environments.ReplicaFiles(
    code="/run/code",
    run_dir="/run",
    checkpoint_dir="/run/c",
    scratch_dir="/run/s",
    spool="/run/spool",
    exit="/run/exit",
    reports="/r",
)
SPEC = JobSpec(
    name="job",
    command=("train", "{role}"),
    environment={"A": "job", "B": "job"},
    training={"batch_size": 512, "variables": [{"name": "table", "rows": 9, "dimension": 1}]},
    roles=(
        RoleSpec(role=Role.PS, environment={"B": "ps"}, threads=3, cpu_cores=2.0),
        RoleSpec(role=Role.WORKER, command=("other",)),
    ),
)


def config(
    replica: ReplicaId, spec: JobSpec = SPEC, files: environments.ReplicaFiles = FILES
) -> dict[str, object]:
    return environments.agent_config(
        spec, replica, attempt=2, cluster={"ps": ["a:1"]}, files=files, interface=None, own_cgroup=True
    )


def test_a_role_overrides_the_command_and_the_environment_of_the_job() -> None:
    ps, worker = config(ReplicaId(Role.PS, 0)), config(ReplicaId(Role.WORKER, 0))
    assert (ps["command"], worker["command"]) == (["train", "{role}"], ["other"])
    environment = ps["environment"]
    assert isinstance(environment, dict)
    assert (environment["A"], environment["B"]) == ("job", "ps")


def test_the_training_block_and_the_scratch_folder_reach_the_script() -> None:
    environment = config(ReplicaId(Role.PS, 0))["environment"]
    assert isinstance(environment, dict)
    assert json.loads(environment["PACELINE_TRAINING"]) == {"batch_size": 512}
    assert environment["TMPDIR"] == "/run/s"


def test_the_config_is_plain_json() -> None:
    ps = config(ReplicaId(Role.PS, 0))
    assert json.loads(json.dumps(ps)) == ps
    assert (ps["threads"], ps["cpu_cores"], ps["attempt"]) == (3, 2.0, 2)


@pytest.mark.parametrize(
    ("framework", "switch", "is_seen"),
    [
        (Framework.TENSORFLOW, Instrumentation.AUTO, True),
        (Framework.PYTORCH, Instrumentation.AUTO, True),
        (Framework.PLAIN, Instrumentation.AUTO, False),
        (Framework.TENSORFLOW, Instrumentation.OFF, False),
        (Framework.PYTORCH, Instrumentation.OFF, False),
    ],
)
def test_scripts_of_a_framework_are_looked_into(
    framework: Framework, switch: Instrumentation, is_seen: bool
) -> None:
    spec = dataclasses.replace(SPEC, framework=framework, instrumentation=switch)
    files = dataclasses.replace(FILES, instrumentation="/run/instrumentation")
    given = config(ReplicaId(Role.WORKER, 0), spec, files)
    assert (given["instrumentation"] is not None) == is_seen
