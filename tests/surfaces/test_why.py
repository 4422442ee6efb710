"""The page of ``paceline why``, its document, and its exit codes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from rich.cells import cell_len
from rich.text import Text
from support import cases
from support.filled_homes import fill, spec_of

from paceline import specs
from paceline.model.explanations.causes import (
    Cause,
    Evidence,
    EvidenceSource,
    Explanation,
    FieldChange,
    Gain,
    Option,
    Outlook,
)
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import JobPhase
from paceline.services.local.state_dirs import Home
from paceline.stores import open_store, recordings
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.views import causes

Paceline = Callable[..., Result]
SOURCE = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  command: [python, train.py]
  roles:
    ps: {replicas: 2, cpu: 500m, memory: 1Gi}   # small
    worker: {replicas: 2}
  training:
    # Whole, as they were.
    partitioning:
      strategy: none
    batch_size: 512
"""
LEFT_OUT = FieldChange(path=("spec", "training", "partitioning"), value=None)
SAMPLES = EvidenceSource(what="samples", field="cpu_cores", count=60, since=1.8e9, until=1.8e9 + 30)
FOUND = Explanation(
    job="clicks",
    summary="clicks is pending, for 3m12s",
    causes=(
        Cause(
            name="no-room",
            what="There is no room for all of it: 3 workers would fit now.",
            severity=Severity.WARNING,
            evidence=(
                Evidence(text="2 more worker: " + "too little CPU for 4 cores " * 5, at=1.8e9, count=12),
            ),
            next_steps=("spec.roles.worker.replicas: 3", "paceline fit job.yaml shows what is free"),
        ),
    ),
    unknown=("whether its nodes answer: nodes is forbidden",),
)
SLOW = Explanation(
    job="clicks",
    summary="clicks runs, for 1m, and could be faster",
    causes=(
        Cause(
            name="giant-variable",
            what="The variable ids makes ps-0 hot.",
            severity=Severity.WARNING,
            evidence=(
                Evidence(
                    text="ps-0 uses 0.97 of 1.00 cores, the other PS 0.05 on average",
                    sources=(SAMPLES,),
                ),
                Evidence(
                    text="ids has 9 rows",
                    sources=(EvidenceSource(what="variables", field="shape", count=1),),
                ),
            ),
            changes=(FieldChange(path=("spec", "roles", "ps", "cpu"), value=1), LEFT_OUT),
            risk="Each part costs a message in each step.",
            gain=Gain(low=1.21, high=1.62),
            effects=(
                Cause(
                    name="hot-ps",
                    what="ps-0 has 1.9 times the mean load of the PS.",
                    severity=Severity.WARNING,
                    effects=(Cause(name="waiting-for-ps", what="Trainers wait.", severity=Severity.INFO),),
                ),
            ),
        ),
        Cause(name="killed", what="worker-1 was killed.", is_past=True),
    ),
)  # fmt: skip


def page(found: Explanation, source: str = "", width: int | None = 80) -> Text:
    diffs = Diffs(source=source, spec=specs.parse_job(SOURCE).spec)
    return causes.explanation(
        found, diffs=diffs, say=lambda text: text.replace("paceline", "paceline -n ads"), width=width
    )


def test_the_page_fits_a_terminal() -> None:
    assert page(FOUND).plain.splitlines() == [
        "clicks is pending, for 3m12s",
        "",
        "1. LIFE202 warning There is no room for all of it: 3 workers would fit now.",
        "   seen    2027-01-15T08:00:00Z 2 more worker: too little CPU for 4 cores too",
        "           little CPU for 4 cores too little CPU for 4 cores too little CPU for",
        "           4 cores too little CPU for 4 cores (12 times)",
        "   next    spec.roles.worker.replicas: 3",
        "   next    paceline -n ads fit job.yaml shows what is free",
        "",
        "unknown  whether its nodes answer: nodes is forbidden",
    ]


def test_how_it_scales_stands_below_the_causes() -> None:
    more = Option(what="2 x workers", gain=Gain(low=1.0, high=1.04), binds="CPU of ps-0")
    bound = Outlook(binds="CPU of ps-0", uses=(("CPU of ps-0", 0.98),), knee_workers=1.6, options=(more,))
    assert page(dataclasses.replace(FOUND, causes=(), outlook=bound)).plain.splitlines()[2:7] == [
        "scales   CPU of ps-0 binds now, used to 98%; examples/s of other sizes,",
        "         computed:",
        "         2 x workers: 1.0 times; then CPU of ps-0 binds",
        "         From about 2 workers on, more of them bring little.",
        "",
    ]
    alone = Outlook(binds="the trainers' own computing", uses=(), knee_workers=None, options=())
    last = page(dataclasses.replace(SLOW, outlook=alone)).plain.splitlines()[-1]
    assert last == "scales   the trainers' own computing binds now"


def test_what_to_change_is_a_diff_of_the_job_file() -> None:
    shown = page(SLOW, SOURCE)
    assert shown.plain.splitlines() == [
        "clicks runs, for 1m, and could be faster",
        "",
        "1. PS001 warning The variable ids makes ps-0 hot.",
        "   seen    ps-0 uses 0.97 of 1.00 cores, the other PS 0.05 on average (60",
        "           samples, 08:00:00 to 08:00:30)",
        "   seen    ids has 9 rows (1 variable)",
        "   so      PS004 warning ps-0 has 1.9 times the mean load of the PS.",
        "   so        WRK201 info Trainers wait.",
        "   change  @@ -5,9 +5,7 @@",
        "              command: [python, train.py]",
        "              roles:",
        "           -    ps: {replicas: 2, cpu: 500m, memory: 1Gi}   # small",
        "           +    ps: {replicas: 2, cpu: 1, memory: 1Gi}   # small",
        "                worker: {replicas: 2}",
        "              training:",
        "                # Whole, as they were.",
        "           -    partitioning:",
        "           -      strategy: none",
        "                batch_size: 512",
        "   gain    1.2 to 1.6 times the examples/s, computed",
        "   risk    Each part costs a message in each step.",
        "",
        "2. LIFE403 error worker-1 was killed.",
    ]
    styled = {shown.plain[span.start : span.end]: str(span.style) for span in shown.spans}
    assert styled["-      strategy: none"] == "red"
    assert styled["+    ps: {replicas: 2, cpu: 1, memory: 1Gi}   # small"] == "green"
    assert styled["(60\n           samples, 08:00:00 to 08:00:30)"] == "dim"
    assert styled["warning"] == "yellow"
    assert styled["worker-1 was killed."] == "dim"


@pytest.mark.parametrize(
    "source", ["", SOURCE.replace("{replicas: 2, cpu", "&ps {replicas: 2, cpu") + "x: *ps\n"]
)
def test_without_a_file_that_can_be_edited_changes_are_listed(source: str) -> None:
    lines = page(SLOW, source).plain.splitlines()
    first = lines.index("   change  spec.roles.ps.cpu: 500m -> 1")
    assert lines[first + 1] == "           spec.training.partitioning: {strategy: none} -> not set"


def test_no_line_is_wider_than_the_terminal_and_none_acts_on_it() -> None:
    words = "任务失败 with a long story\tabout \x1b[31m nothing\r\n " * 5
    source = SOURCE.replace("# small", f"# {'y' * 100} 任务\t") + f"  environment: {{A: '{'x' * 200}'}}\r\n"
    change = FieldChange(path=("spec", "environment", "A"), value=words)
    cause = dataclasses.replace(
        SLOW.causes[0], what=words, risk=words, next_steps=(words,), subjects=(words,),
        changes=(*SLOW.causes[0].changes, change),
        evidence=(Evidence(text=words, sources=(SAMPLES, SAMPLES)),),
        effects=(dataclasses.replace(SLOW.causes[0].effects[0], what=words),),
    )  # fmt: skip
    found = Explanation(job="clicks", summary=words, causes=(cause,), unknown=(words,))
    for given in ("", source):
        for width in (80, 60, None):
            plain = page(found, given, width).plain
            assert plain.replace("\n", "").isprintable()
            assert width is None or max(map(cell_len, plain.split("\n"))) <= width
            assert not given or "x" * 40 in plain


def test_sources_of_several_days_have_dates() -> None:
    source = EvidenceSource(what="steps", field="steps", count=3, since=1.8e9, until=1.8e9 + 86_400)
    at_once = EvidenceSource(what="traces", field="transfers", count=1, since=1.8e9, until=1.8e9)
    cause = dataclasses.replace(
        SLOW.causes[0], evidence=(Evidence(text="slow", sources=(source, at_once, source)),)
    )
    shown = page(dataclasses.replace(SLOW, causes=(cause,)), width=None).plain
    assert "slow (3 steps, 2027-01-15T08:00:00Z to 2027-01-16T08:00:00Z; 1 trace, 08:00:00)" in shown


def test_a_job_that_succeeded_has_nothing_wrong(home: Home, paceline: Paceline) -> None:
    fill(home, "clicks")
    result = paceline("why", "clicks", "--fail-on", "info")
    assert result.exit_code == 0
    assert result.stdout.startswith("nothing is wrong as far as can be seen: clicks has succeeded")
    assert "next: paceline describe clicks" in result.stderr


def test_the_document_is_for_programs(home: Home, paceline: Paceline) -> None:
    fill(home, "clicks", phase=JobPhase.FAILED, message="nothing I know")
    document = json.loads(paceline("why", "clicks", "-o", "json").stdout)
    assert (document["kind"], document["job"], document["unknown"]) == ("Explanation", "clicks", [])
    (cause,) = document["causes"]
    assert cause.keys() >= {"code", "name", "what", "severity", "evidence", "next_steps", "is_past"}
    assert "nothing I know" in cause["what"]
    assert cause["diff"] is None


@pytest.fixture
def slow_job(tmp_path: Path) -> str:
    """The recording of a job whose job file makes it slow."""
    spec = specs.parse_job(SOURCE).spec
    hot, cold = {"cpu_cores": 0.97, "cpu_limit_cores": 1.0}, {"cpu_cores": 0.05, "cpu_limit_cores": 1.0}
    whole = cases.trace({("ps-0", "ids"): 9_000_000, ("ps-0", "bias"): 10, ("ps-1", "kernel"): 300_000})
    recording = cases.recording(
        {"ps-0": hot, "ps-1": cold, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}, traces=(whole,)
    )
    run = dataclasses.replace(recording.run, spec=spec, source=SOURCE)
    path = tmp_path / "clicks.parquet"
    recordings.write(path, dataclasses.replace(recording, run=run))
    return str(path)


def test_a_slow_job_is_told_what_to_change(paceline: Paceline, slow_job: str) -> None:
    shown = paceline("why", slow_job, COLUMNS="80")
    assert shown.exit_code == 0
    assert "1. PS001 warning The variable ids makes ps-0 hot" in shown.stdout
    assert "\n           -      strategy: none\n" in shown.stdout
    assert max(map(cell_len, shown.stdout.splitlines())) <= 80
    document = json.loads(paceline("why", slow_job, "-o", "json").stdout)
    cause = document["causes"][0]
    assert (cause["code"], cause["severity"]) == ("PS001", "warning")
    assert cause["diff"].startswith("--- job.yaml\n+++ job.yaml\n@@ ")
    assert "\n-      strategy: none\n" in cause["diff"]
    assert cause["changes"] == [{"path": list(LEFT_OUT.path), "value": None}]
    (source,) = cause["evidence"][0]["sources"]
    assert (source["since"], source["until"]) == ("2023-11-14T22:13:21.000Z", "2023-11-14T22:13:50.000Z")
    effect = cause["effects"][0]
    assert (effect["code"], effect["severity"], effect["diff"]) == ("PS004", "warning", None)


@pytest.mark.parametrize(("limit", "code"), [("info", 4), ("warning", 4), ("error", 0)])
def test_fails_on_causes_that_are_as_bad_as_that(
    paceline: Paceline, slow_job: str, limit: str, code: int
) -> None:
    result = paceline("why", slow_job, "--fail-on", limit)
    assert result.exit_code == code
    assert ("are warning or worse" in result.stderr) is (limit == "warning")


def test_causes_that_are_over_do_not_fail(
    home: Home, paceline: Paceline, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = Cause(name="killed", what="It was killed.", is_past=True)
    monkeypatch.setattr(
        "paceline.diagnosing.diagnoses.diagnose",
        lambda recording, situation: dataclasses.replace(SLOW, causes=(over,)),
    )
    fill(home, "clicks", phase=JobPhase.RUNNING)
    assert paceline("why", "clicks", "--fail-on", "info").exit_code == 0


def test_a_job_that_was_stopped_is_no_error(home: Home, paceline: Paceline) -> None:
    fill(home, "clicks", phase=JobPhase.STOPPED, spec=spec_of("clicks"))
    result = paceline("why", "clicks", "--fail-on", "warning")
    assert "LIFE103 info It was stopped on request." in result.stdout
    assert result.exit_code == 0


def test_a_job_that_is_not_there(home: Home, paceline: Paceline) -> None:
    fill(home, "clicks")
    result = paceline("why", "click")
    assert result.exit_code == 3
    assert "Did you mean clicks?" in result.stderr


def test_what_was_found_first_is_kept(paceline: Paceline, home: Home) -> None:
    fill(home, "done", phase=JobPhase.FAILED, message="worker-0: exit code 1", loads=(0.5, 0.9), steps=3)
    fill(home, "live", phase=JobPhase.RUNNING, loads=(0.5, 0.9))
    first = json.loads(paceline("why", "done", "--anew", "-o", "json").stdout)
    with open_store(home.store_url) as store:
        assert store.conclusion("done") is None
        paceline("why", "live")
        paceline("why", "done")
        assert store.conclusion("live") is None
        kept, summary = store.conclusion("done"), store.diagnosis("done")
    assert kept is not None
    assert summary is not None
    assert [cause.what for cause in kept.explanation.causes] == [each["what"] for each in first["causes"]]
    assert summary.codes[0] == first["causes"][0]["code"]
    assert paceline("list", "--search", summary.codes[0], "-o", "name").stdout == "done\n"
