"""``paceline thresholds``: the numbers of rules, and those that a site has set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from paceline.diagnosing import catalogues
from paceline.stores import recordings

Paceline = Callable[..., Result]
RECORDING = (
    Path(__file__).parents[2]
    / "benchmarks/diagnosis/recordings/ps-cpu-bound.gross.deepfm-large-plain-4.parquet"
)
SET = "apiVersion: paceline.dev/v1alpha1\nkind: Thresholds\nspec: {links.full: 0.75}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    return tmp_path


def test_all_are_listed_and_what_the_site_has_set_stands_beside_its_default(
    paceline: Paceline, home: Path
) -> None:
    (home / "thresholds.yaml").write_text(SET)
    header, *lines = paceline("thresholds").stdout.splitlines()
    assert header.split() == ["NAME", "VALUE", "UNIT", "DEFAULT", "RULES"]
    assert [line.split()[0] for line in lines] == sorted(catalogues.THRESHOLDS)
    (row,) = (line.split() for line in lines if line.startswith("links.full "))
    assert row[:4] == ["links.full", "0.75", "share", "0.5"]
    assert max(map(len, lines)) <= 80
    (item,) = json.loads(paceline("thresholds", "links.full", "-o", "json").stdout)["items"]
    assert (item["value"], item["default"], item["unit"]) == (0.75, 0.5, "share")
    assert "NET001" in item["rules"]


def test_one_is_explained(paceline: Paceline, home: Path) -> None:
    shown = paceline("thresholds", "LINKS.FULL").stdout
    assert shown.startswith("links.full 0.5 share\n")
    for title in ("Means", "From", "Rules"):
        assert f"\n{title}\n" in shown


def test_an_unknown_name_is_refused(paceline: Paceline, home: Path) -> None:
    result = paceline("thresholds", "links.ful")
    assert result.exit_code == 3
    assert "did you mean 'links.full'?" in result.stderr


def test_a_wrong_file_is_an_error_with_its_place(paceline: Paceline, home: Path) -> None:
    (home / "thresholds.yaml").write_text(SET.replace("0.75", "lots"))
    result = paceline("thresholds")
    assert result.exit_code == 2
    assert "thresholds.yaml:3:" in result.stderr
    assert "'lots' is not a number" in result.stderr
    assert "paceline thresholds lists all names" in result.stderr


def test_a_job_is_judged_by_the_numbers_of_its_site_and_takes_them_along(
    paceline: Paceline, home: Path, tmp_path: Path
) -> None:
    name = paceline("import", str(RECORDING)).stdout.split()[0]
    before = json.loads(paceline("why", name, "--anew", "-o", "json").stdout)
    assert (before["causes"][0]["severity"], before["thresholds"]) == ("warning", {})
    (home / "thresholds.yaml").write_text(SET.replace("links.full: 0.75", "headrooms.least-gain: 1000"))
    after = json.loads(paceline("why", name, "--anew", "-o", "json").stdout)
    assert after["thresholds"] == {"headrooms.least-gain": 1000}
    assert "warning" not in [cause["severity"] for cause in after["causes"]]
    shown = paceline("why", name, "--anew").stdout
    assert "judged by numbers of this site: headrooms.least-gain 1000" in " ".join(shown.split())
    file = tmp_path / "job.parquet"
    assert paceline("record", name, "-o", str(file)).exit_code == 0
    assert recordings.read(file).thresholds == {"headrooms.least-gain": 1000}


def test_a_wrong_file_keeps_no_job_from_being_stopped(paceline: Paceline, home: Path) -> None:
    name = paceline("import", str(RECORDING)).stdout.split()[0]
    (home / "thresholds.yaml").write_text("[\n")
    shown = " ".join(paceline("why", name, "--anew").stdout.split())
    assert "what was measured:" in shown
    assert "this is not YAML" in shown
    assert paceline("get", name).exit_code == 0
    assert paceline("delete", name).exit_code == 0
