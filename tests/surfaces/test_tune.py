"""``paceline tune``: what to change in a job, and trials of it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support import paced_jobs

from paceline.model.explanations.causes import FieldChange
from paceline.services.studying import proposals
from paceline.specs.edits import edits
from paceline.stores import recordings
from paceline.surfaces.cli.verbs import tune
from paceline.surfaces.documents import API_VERSION

RECORDINGS = Path(__file__).parents[2] / "benchmarks" / "diagnosis" / "recordings"
DENSE = str(RECORDINGS / "dense-update.medium.wide-deep-middle-plain-4.parquet")

Paceline = Callable[..., Result]


def test_proposals_are_shown_with_gain_risk_and_diff(paceline: Paceline) -> None:
    shown = paceline("tune", DENSE).stdout
    assert "changes may be worth a trial" in shown
    assert "1. dense-update Adam updates all" in shown
    assert "+      name: lazy-adam" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_where_nothing_is_known_of_a_job_that_is_said(paceline: Paceline, tmp_path: Path) -> None:
    """Not that nothing is worth a trial: its steps were not seen."""
    path, seen = tmp_path / "unseen.parquet", recordings.read(Path(DENSE))
    source = edits.edited(seen.run.source, (FieldChange(path=("spec", "training"), value=None),))
    run = dataclasses.replace(seen.run, source=source, spec=dataclasses.replace(seen.run.spec, training=None))
    unseen = dataclasses.replace(seen, run=run, steps=(), traces=(), plan=None, conclusion=None)
    recordings.write(path, unseen)
    shown = " ".join(paceline("tune", str(path)).stdout.split())
    assert "nothing is known: step reports of the trainers (paceline describe" in shown
    assert "noise" not in shown


def test_proposals_for_programs(paceline: Paceline) -> None:
    found = json.loads(paceline("tune", DENSE, "-o", "json").stdout)
    assert found["kind"] == "ProposalList"
    first = found["items"][0]
    assert first["name"] == "dense-update"
    assert first["gain"]["low"] > 1
    assert "+      name: lazy-adam" in first["diff"]


def test_a_change_of_which_there_is_none_is_a_document_too(
    paceline: Paceline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "proposals", lambda *_: [])
    result = paceline("tune", DENSE, "--live", "-o", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["apiVersion"], document["kind"]) == (0, API_VERSION, "LiveChange")
    assert [document[name] for name in ("proposal", "before", "after", "judgement")] == [None] * 4
    assert document["why_none"]
    assert document["why_none"] in result.stderr
    assert paceline("tune", DENSE, "--live").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("job.yaml",), "nothing was measured of job.yaml", "--trials 6"),
        (("clicks", "--trials", "4"), "trials need a job file", "FILE.yaml --trials"),
        (("nowhere.yaml", "--trials", "4"), "nowhere.yaml", ""),
        (("-", "--trials", "4", "--apply"), "stdin", ""),
        (("job.yaml", "--trials", "4", "--live"), "but job.yaml is a job file", "paceline tune NAME --live"),
        (("clicks", "--apply"), "--apply needs --trials", "--live"),
        (("clicks", "--live"), "clicks", ""),
    ],
)
def test_what_cannot_be_tuned(
    paceline: Paceline, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    done = paceline("tune", *arguments)
    assert done.exit_code != 0
    assert message in done.stderr
    assert hint in done.stderr


@pytest.mark.parametrize("now", [None, "kind: [", "# other\n"], ids=["gone", "wrong", "changed"])
def test_a_job_file_that_is_another_after_the_trials_stays_and_loses_no_result(
    tmp_path: Path, now: str | None
) -> None:
    file, text = tmp_path / "job.yaml", paced_jobs.source(tmp_path)
    file.write_text(text)
    assert tune._is_as_read(str(file), text)
    if now is None:
        file.unlink()
    else:
        file.write_text(now if now.startswith("kind") else now + text)
    assert not tune._is_as_read(str(file), text)


@pytest.mark.slow
def test_trials_of_a_job_file(paceline: Paceline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "job.yaml"
    file.write_text(paced_jobs.source(tmp_path))
    done = paceline("tune", str(file), "--trials", "2", "--seconds", "2", "--pairs", "0")
    assert done.exit_code == 0, done.stderr
    assert "fused-tables" in done.stdout
    assert "Trial 1 has " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "job-tuned.yaml written" in done.stderr
    assert "fused_tables: true" in (tmp_path / "job-tuned.yaml").read_text()
    assert "fused_tables: false" in file.read_text()
    # The same command shows it again, and changes the file itself if it is asked to; nothing runs anew.
    again = json.loads(
        paceline(
            "tune", str(file), "--trials", "2", "--seconds", "2", "--pairs", "0", "--apply", "-o", "json"
        ).stdout
    )
    assert again["kind"] == "Tuning"
    assert [each["number"] for each in again["trials"]] == [0, 1]
    assert "fused_tables: true" in file.read_text()
