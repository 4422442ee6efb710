"""The demo, whole: data, a job over two PS and two workers, its cause, trials, the pages and the numbers."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from paceline.diagnosing import catalogues
from paceline.surfaces.cli import demos
from paceline.surfaces.cli.demos import lines

needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)


def demo(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", "from paceline.surfaces.cli.main import main; main()"]
    command = [*line, "demo", "--output", str(output), *arguments]
    environment = {**os.environ, "PACELINE_STORE": "sqlite:////nowhere/paceline.db"}
    return subprocess.run(
        command, cwd=output.parent, env=environment, text=True, capture_output=True, timeout=1500, check=False
    )


@pytest.mark.parametrize("load", [None, 1.25])
def test_the_numbers_fit_a_terminal_whatever_was_measured(load: float | None) -> None:
    result = {
        "auc": load and 0.7876,
        "best_auc": 0.7922,
        "examples_per_second": load and 34_600.0,
        "input_wait_share": load and 0.01,
        "run_seconds": 140.0,
        "seconds": 290.0,
        "seconds_to_first_cause": load and 55.0,
        "training_seconds": load,
        "factor": load and 34.12,
        "factor_low": load and 30.0,
        "factor_high": load and 40.0,
        "trials": 8,
        "auc_before": load and 0.7,
        "auc_after": load and 0.7,
        "auc_examples": load and 90_000,
        "primary_cause": load and "dense-update",
        "roles": [
            {"role": "worker", "replicas": [{}], "imbalances": []},
            {
                "role": "ps",
                "replicas": [{}, {}],
                "imbalances": [{"resource": "CPU", "max_over_mean": load}] if load else [],
            },
        ],
    }
    shown = [f"{what:<22}{value}" for what, value in lines(result)]
    assert max(len(line) for line in shown) <= 80
    assert ("1.25" in shown[6]) == (load is not None)
    result["roles"] = [{"role": "ps", "replicas": [{}], "imbalances": []}]
    assert [what for what, _ in lines(result)] == [
        "primary cause", "named after", "times as fast", "AUC of both", "examples/s", "AUC of the whole run",
        "waiting for input", "the whole run",
    ], "how even it is on one server is no question"  # fmt: skip


def test_it_says_which_extra_it_needs(
    paceline: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demos, "NEEDS", ("os", "no_such_module_here"))
    monkeypatch.chdir(tmp_path)
    done = paceline("demo")
    assert done.exit_code == 1
    assert "the demo needs no_such_module_here" in done.stderr
    assert "pip install 'paceline[demo]'" in done.stderr
    assert not (tmp_path / "demo-out").exists()


SMALL = (
    "--rows", "20000", "--evaluation-rows", "5000", "--trials", "2", "--seconds", "2", "--examples", "2000"
)  # fmt: skip
#: The proof, four more runs, is made at night; that of `tune` is tested by itself.
QUICK = (*SMALL, "--pairs", "0")


def check(done: subprocess.CompletedProcess[str], output: Path, name: str, *, is_proven: bool = True) -> None:
    """Make sure of what a demo has said, measured and written.

    What the cause is, and how much a change brings, depends on what else the machine does: the two have to
    agree with what is written, whatever they are.
    """
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("making click data: 9 of 9 files" in done.stdout) == (name == "clicks")
    # The cause is named before anything is changed, and the commands that are useful next come last.
    said = done.stdout
    assert said.index("$ paceline tune") < said.index("$ paceline why") < said.index("$ paceline run")
    assert said.rindex("paceline init --example clicks") > said.index("Try next:")
    numbers = said[said.rindex("\nprimary cause") : said.index("\nDone in")]
    assert numbers.count("\n") >= 8
    assert max(len(line) for line in numbers.splitlines() if not line.startswith("not measured")) <= 80
    result = json.loads((output / "result.json").read_text())
    assert result["name"] == name
    assert result["phase"] == "succeeded"
    assert result["examples"] >= 20_000
    assert result["examples_per_second"] > 0
    assert 0.4 < result["auc"] < result["best_auc"] < 1
    assert all(1 <= one["max_over_mean"] <= 2 for role in result["roles"] for one in role["imbalances"])
    assert 0 < result["run_seconds"] < result["seconds"]
    if result["primary_cause"] is not None:
        assert catalogues.topic(result["primary_cause"]).code in said
    assert result["seconds_to_first_cause"] is None or (
        0 < result["seconds_to_first_cause"] < result["seconds"]
    )
    assert result["trials"] == 2
    is_tuned = result["factor"] is not None
    if is_tuned:
        assert 1 < result["factor_low"] < result["factor"] < result["factor_high"]
        assert (result["auc_before"] is not None) == is_proven
        assert result["auc_examples"] == (2_000 if is_proven else None)
    # Nothing of a trial is saved; the run that trains to its end is.
    assert not list(output.glob("state/runs/clicks-trial-*/checkpoints/*"))
    assert list(output.glob(f"state/runs/{name}/checkpoints/*"))
    run, story = ((output / name).read_text() for name in ("run.html", "report.html"))
    assert "plot-throughput" in run
    assert "best possible" in run
    assert "plot-trials" in story
    assert {path.name for path in output.iterdir()} == {
        "data",
        "state",
        "job.yaml",
        *(["job-tuned.yaml"] if is_tuned else []),
        "report.html",
        "run.html",
        "result.json",
    }


@needs_tensorflow
@pytest.mark.slow
def test_the_demo_and_one_whose_job_fails_on_the_same_data(tmp_path: Path) -> None:
    output = tmp_path / "out put"
    check(demo(output, *QUICK), output, "clicks", is_proven=False)
    failed = demo(output, *QUICK, "--epochs", "-1")
    assert failed.returncode != 0
    assert "making click data" not in failed.stdout
    assert "error:" in failed.stderr


@needs_tensorflow
@pytest.mark.slow
@pytest.mark.nightly
def test_the_demo_twice(tmp_path: Path) -> None:
    output = tmp_path / "out"
    for name in ("clicks", "clicks-2"):
        check(demo(output, *SMALL), output, name)
