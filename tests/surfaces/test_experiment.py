"""``paceline experiment``: variants of a job, compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support.html_pages import plots_of, read

from paceline.stores import recordings

RECORDINGS = Path(__file__).parents[2] / "benchmarks" / "diagnosis" / "recordings"
SMALL = RECORDINGS / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet"
FILE = """\
apiVersion: paceline.dev/v1alpha1
kind: Experiment
metadata: {name: server-cores}
spec:
  job: job.yaml
  variants: {now: {}, large: {ps.cpu: 500m}}
  repeats: 2
  seconds: 15
"""

Paceline = Callable[..., Result]


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An experiment file beside the job of a recording, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(recordings.read(SMALL).run.source)
    (tmp_path / "experiment.yaml").write_text(FILE)
    return "experiment.yaml"


def test_a_simulated_experiment_is_shown_and_written(
    paceline: Paceline, experiment: str, tmp_path: Path
) -> None:
    done = paceline("experiment", "run", experiment, "--like", str(SMALL))
    assert done.exit_code == 0, done.stderr
    assert "faster" in done.stdout
    assert "baseline" in done.stdout
    assert "4 of 4 runs are done" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr.count("examples/s") == 4
    # The second time nothing is left to do.
    assert "examples/s" not in paceline("experiment", "run", experiment, "--like", str(SMALL)).stderr
    status = json.loads(paceline("experiment", "status", "server-cores", "-o", "json").stdout)
    assert [each["verdict"] for each in status["compared"]] == ["baseline", "faster"]
    assert len(status["done"]) == 4
    assert status["origin"].startswith("simulated like ")
    assert paceline("experiment", "report", "server-cores").exit_code == 0
    html = (tmp_path / "server-cores-experiment.html").read_text()
    assert "faster" in read(html).text
    assert "runs" in plots_of(html)
    raw = json.loads((tmp_path / "server-cores-experiment.json").read_text())
    assert raw["kind"] == "Experiment"
    assert json.loads(paceline("experiment", "report", "server-cores", "-o", "json").stdout) == raw


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nowhere.yaml"), "there is no such file"),
        (("status", "nothing"), "there is no experiment 'nothing'"),
        (("report", "nothing"), "there is no experiment 'nothing'"),
        (("walk", "experiment.yaml"), "walk"),
    ],
)
def test_what_cannot_be_done(
    paceline: Paceline, experiment: str, arguments: tuple[str, ...], message: str
) -> None:
    done = paceline("experiment", *arguments)
    assert done.exit_code != 0
    assert message in done.stderr
