"""Files of commands that are not there, and all that says nothing because it cannot be known."""

from __future__ import annotations

import json

import pytest

from paceline import linting, specs
from paceline.model.explanations.findings import Finding

THERE = ("/jobs/there.py", "/jobs/sub/there.py", "/jobs/there.sh", "/bin/sh", "/opt/python3")


def lint(spec: str) -> tuple[Finding, ...]:
    text = f"apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {{name: x}}\nspec:\n{spec}\n"
    job = specs.parse_job(text, "job.yaml")
    return linting.lint_place(
        linting.LocalJobFile(job=job, base="/jobs", is_missing=lambda path: path not in THERE)
    )


def of_command(*command: str, more: str = "") -> tuple[Finding, ...]:
    return lint(f"  command: {json.dumps(command)}\n  roles: {{worker: {{replicas: 1}}}}{more}")


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("python", "gone.py"), "gone.py"),
        (("python3.12", "-u", "-W", "error", "-Xdev", "-OO", "gone.py", "--flag"), "gone.py"),
        (("python", "--", "gone.py"), "gone.py"),
        (("/opt/python3", "sub/gone.py"), "sub/gone.py"),
        (("/opt/gone/python3", "gone.py"), "/opt/gone/python3"),
        (("bash", "-eu", "./gone.sh"), "./gone.sh"),
        (("/bin/sh", "/gone/x.sh"), "/gone/x.sh"),
        (("./gone",), "./gone"),
    ],
)
def test_a_file_that_is_not_there(command: tuple[str, ...], word: str) -> None:
    (finding,) = of_command(*command)
    assert finding.code == "JOB707"
    assert f"there is no file '{word}'" in finding.message
    assert finding.path == f"spec.command[{command.index(word)}]"
    assert finding.position is not None
    assert finding.position.line == 5


@pytest.mark.parametrize(
    "command",
    [
        ("python", "there.py"),
        ("python", "sub/../sub/there.py"),
        ("bash", "./there.sh"),
        ("/bin/sh", "-c", "gone.py"),
        # What else may be meant:
        ("python", "-m", "gone"),
        ("python", "-um", "gone"),
        ("python", "-c", "gone.py"),
        ("python", "-"),
        ("python",),
        ("python", "--unknown", "gone.py"),
        ("python", "{run_dir}/gone.py"),
        ("python", "$HOME/gone.py"),
        ("bash", "gone.sh"),
        ("bash", "-o", "pipefail", "gone.sh"),
        ("bash", "+x", "gone.sh"),
        ("gone", "gone.py"),
        ("env", "A=b", "python", "gone.py"),
        ("{run_dir}/gone",),
    ],
)
def test_nothing_is_said_of_what_is_there_or_cannot_be_known(command: tuple[str, ...]) -> None:
    assert of_command(*command) == ()


@pytest.mark.parametrize(
    "more",
    [
        "\n  image: registry.example.com/x:1",
        "\n  code: {git: {url: 'https://git.example.com/x.git', revision: v1}}",
        "\n  volumes: [{name: code, host_path: /srv, mount_path: /jobs}]",
        "\n  working_dir: '{run_dir}'",
    ],
)
def test_nothing_is_said_where_files_come_from_elsewhere(more: str) -> None:
    assert of_command("python", "gone.py", more=more) == ()


def test_files_are_looked_for_where_commands_start() -> None:
    assert of_command("python", "there.py", more="\n  working_dir: sub") == ()
    assert of_command("python", "there.py", more="\n  code: {folder: sub}") == ()
    (finding,) = of_command("python", "there.py", more="\n  working_dir: other")
    assert finding.message == "there is no file 'there.py' in /jobs/other"


def test_each_role_has_its_own_command() -> None:
    ps = "  roles:\n    ps: {replicas: 1, command: [python, there.py]}\n"
    worker = "    worker: {replicas: 1, command: [%s]}"
    assert lint(f"  command: [python, gone.py]\n{ps}{worker % 'train'}") == ()
    (finding,) = lint(f"  command: [python, there.py]\n{ps}{worker % './gone'}")
    assert finding.path == "spec.roles.worker.command[0]"
