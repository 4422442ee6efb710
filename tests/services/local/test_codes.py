"""Jobs on this machine whose code comes from elsewhere: from its source to a replica that runs it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from paceline.engines.local.folders import RunFolder
from paceline.errors import EngineError, InvalidInput
from paceline.model.jobs.code_sources import Archive, Code, Git
from paceline.model.jobs.job_specs import JobSpec, RestartPolicy, RoleSpec
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.services import logs, packed_folders
from paceline.services.local import dry_runs, jobs

SCRIPT = "import os, sys, helper; print(os.getcwd(), sys.argv[1:], helper.NAME)"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "training").mkdir(parents=True)
    (folder / "training" / "train.py").write_text(SCRIPT)
    (folder / "training" / "helper.py").write_text("NAME = 'clicks'")
    return folder


def job(code: Code, **more: object) -> JobSpec:
    roles = (RoleSpec(role=Role.WORKER, replicas=2, restart=RestartPolicy(limit=0)),)
    command = ("python3", "train.py", "{code_dir}")
    return JobSpec(name="job", code=code, command=command, roles=roles, **more)  # type: ignore[arg-type]


def ran(api: jobs.Jobs, spec: JobSpec, base: Path) -> tuple[Path, set[str], tuple[str, ...]]:
    """Run a job to its end; return its folder, what its replicas wrote, and its notes."""
    run = api.wait(api.submit(spec, source="", base=base).name, timeout_seconds=240)
    assert run.phase is JobPhase.SUCCEEDED, run.message
    folder = RunFolder.of(run)
    return folder.path, {line.text for line in logs.lines(logs.FolderReader(folder, logs.ALL))}, run.notes


def test_from_git_with_its_commit_in_the_notes(api: jobs.Jobs, source: Path, tmp_path: Path) -> None:
    for arguments in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "--message", "one"),
    ):
        subprocess.run(["git", "-C", source, *arguments], check=True)
    head = subprocess.run(["git", "-C", source, "rev-parse", "HEAD"], check=True, capture_output=True)
    code = Code(git=Git(url=f"file://{source}", revision="main"), path="training")
    folder, output, notes = ran(api, job(code), tmp_path)
    top = folder / "code" / "training"
    assert output == {f"{top} ['{top}'] clicks"}
    assert f"code: commit {head.stdout.decode().strip()} of file://{source}" in notes


def test_from_a_folder_in_a_working_directory(api: jobs.Jobs, source: Path) -> None:
    folder, output, _ = ran(api, job(Code(folder="repository"), working_dir="training"), source.parent)
    assert output == {f"{folder}/code/training ['{folder}/code'] clicks"}
    assert sorted(each for each in os.listdir(folder) if "code" in each) == ["code", "code.json"]
    assert not [each for each in os.listdir(api.home.path) if each.startswith(".code")]


def test_from_an_archive(api: jobs.Jobs, source: Path, tmp_path: Path) -> None:
    packed = packed_folders.pack(source)
    (tmp_path / "code.tgz").write_bytes(packed)
    code = Code(
        archive=Archive(url=f"file://{tmp_path}/code.tgz", sha256=hashlib.sha256(packed).hexdigest()),
        path="training",
    )
    folder, output, _ = ran(api, job(code), tmp_path)
    assert output == {f"{folder}/code/training ['{folder}/code/training'] clicks"}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (Code(git=Git(url="file:///none", revision="main")), "file:///none at main: fatal"),
        (Code(archive=Archive(url="file:///none", sha256="0" * 64)), "file:///none: No such file"),
        (Code(folder="repository", path="none"), "has no folder 'none'"),
        (Code(config_map="clicks-code"), "in a config map of a cluster"),
    ],
)
def test_a_submit_whose_code_cannot_be_had_leaves_nothing(
    api: jobs.Jobs, source: Path, code: Code, says: str
) -> None:
    with pytest.raises(EngineError, match=says):
        api.submit(job(code), source="", base=source.parent)
    assert api.runs() == []
    assert not [each for each in os.listdir(api.home.path) if each.startswith((".code", "runs"))]


def test_a_dry_run_says_where_it_would_come_from(api: jobs.Jobs, source: Path) -> None:
    spec = job(Code(git=Git(url="https://h.example/x.git", revision="v1"), path="a"), working_dir="b")
    plan = dry_runs.plan(api, spec, base=source)
    assert plan.code == "https://h.example/x.git at v1"
    assert plan.working_dir == f"{plan.directory}/code/a/b"
    assert plan.replicas[0].command[-1] == f"{plan.directory}/code/a"
    (source / "big").write_bytes(os.urandom(1 << 21))
    with pytest.raises(InvalidInput, match="packed is the limit"):
        dry_runs.plan(api, dataclasses.replace(spec, code=Code(folder=".")), base=source)
