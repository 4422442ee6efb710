"""What the verbs print that need no job: init, lint, schema, version, completion, doctor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from paceline.services.local import state_dirs

Paceline = Callable[..., Result]


def document(result: Result) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    assert found["apiVersion"] == "paceline.dev/v1alpha1"
    return found


def test_init_writes_what_lint_and_submit_take(paceline: Paceline, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    assert paceline("init", str(tmp_path), "--dry-run").stdout == f"{file} would be written (script)\n"
    assert not file.exists()
    assert paceline("init", str(tmp_path), "--name", "ads").exit_code == 0
    assert "name: ads" in file.read_text()
    assert paceline("init", str(file)).exit_code == 1
    written = paceline("init", str(file), "--force", "--template", "training")
    assert written.exit_code == 0
    assert f"to fill in: {file}:" in written.stderr
    assert "there is no file 'train.py'" in written.stderr
    (tmp_path / "train.py").touch()
    assert paceline("lint", str(file)).exit_code == 0
    written = paceline("init", str(file), "--force")
    assert "to fill in" not in written.stderr
    assert "paceline run" in written.stderr
    assert paceline("init", "-", "--name", "No Name").exit_code == 2


def test_init_writes_an_example_that_is_whole(paceline: Paceline, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    assert paceline("init", "--example", "clicks", str(folder), "--dry-run").exit_code == 0
    assert not folder.exists()
    written = paceline("init", "--example", "clicks", str(folder))
    assert written.exit_code == 0, written.stderr
    assert f"cd {folder} && paceline run job.yaml" in written.stderr
    assert sorted(each.name for each in folder.iterdir()) == ["job.yaml", "train.py"]
    assert paceline("lint", str(folder / "job.yaml"), "--fail-on", "info").exit_code == 0
    compile((folder / "train.py").read_text(), "train.py", "exec")
    assert paceline("init", "--example", "clicks", str(folder)).exit_code == 1
    (folder / "train.py").write_text("")
    assert paceline("init", "--example", "clicks", str(folder), "--force").exit_code == 0
    assert "training.run(" in (folder / "train.py").read_text()
    assert paceline("init", "--example", "clicks", "--name", "ads").exit_code == 2


def test_lint_says_which_file_of_a_command_is_not_there(
    paceline: Paceline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: x}\n"
        "spec:\n  command: [python, -u, train.py]\n  roles: {worker: {replicas: 1}}\n"
    )
    result = paceline("lint", str(file))
    assert result.exit_code == 4
    assert f"{file}:5:25: error JOB707" in result.stdout
    assert f"{file}:5:25: JOB707 error" in paceline("submit", "--dry-run", str(file)).stderr
    monkeypatch.setenv("PACELINE_ENGINE", "kubernetes")
    assert paceline("lint", str(file)).exit_code == 0
    monkeypatch.delenv("PACELINE_ENGINE")
    (tmp_path / "train.py").touch()
    assert paceline("lint", str(file)).exit_code == 0


def test_lint_exits_by_severity(paceline: Paceline, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: x}\n"
        "spec:\n  command: [train]\n  roles: {ps: {replicas: 3}, worker: {replicas: 1}}\n"
    )
    result = paceline("lint", str(file))
    assert result.exit_code == 0
    assert "JOB401" in result.stdout
    assert "fix: " in result.stdout
    assert paceline("lint", str(file), "--fail-on", "warning").exit_code == 4
    found = document(paceline("lint", str(file), "-o", "json"))
    assert found["items"][0]["position"]["line"] > 0  # type: ignore[index]
    assert paceline("lint", "--manifest", str(tmp_path / "none.yaml")).exit_code == 3


def test_lint_reads_manifests_and_explains(paceline: Paceline, tmp_path: Path) -> None:
    file = tmp_path / "ps.yaml"
    file.write_text("apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: ps}\nspec: {}\n")
    result = paceline("lint", "--manifest", str(file))
    assert result.exit_code == 4
    assert "K8S501" in result.stdout
    assert "paceline explain K8S501" in result.stderr


def test_schema_version_and_completion(paceline: Paceline) -> None:
    assert json.loads(paceline("schema").stdout)["title"] == "Paceline training job"
    assert paceline("--version").stdout == paceline("version").stdout
    assert document(paceline("version", "-o", "json"))["kind"] == "Version"
    for shell in ("bash", "zsh", "fish"):
        assert "_PACELINE_COMPLETE" in paceline("completion", shell).stdout


def test_doctor_tells_what_to_do(
    home: state_dirs.Home, paceline: Paceline, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paceline.services.local import checkups

    monkeypatch.setattr(checkups, "output_of", lambda command, seconds: None)
    result = paceline("doctor")
    assert result.exit_code == 0, result.stderr
    assert "pip install 'paceline[training]'" in " ".join(result.stdout.split())
    states = {item["name"]: item["state"] for item in document(paceline("doctor", "-o", "json"))["items"]}  # type: ignore[attr-defined]
    assert states["Store"] == "ok"
    assert states["TensorFlow"] == "missing"
    broken = paceline("doctor", "--store", "mysql://x/y")
    assert broken.exit_code == 1
    assert "Store" in broken.stderr


def test_doctor_makes_nothing(paceline: Paceline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from paceline.services.local import checkups

    monkeypatch.setattr(checkups, "output_of", lambda command, seconds: "2.21.0")
    assert paceline("doctor", "--home", str(tmp_path / "new")).exit_code == 0
    assert not (tmp_path / "new").exists()
