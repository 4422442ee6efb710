"""Pages: whole, safe, the same each time, and readable however much or little was measured."""

from __future__ import annotations

import dataclasses
import re

import pytest
from support import measured_runs
from support.html_pages import EVIL, plots_of, read
from support.measured_runs import START

pytest.importorskip("jinja2")

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import JobEvent
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.measures import snapshots
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId, Role
from paceline.surfaces.reports import evidence, pages


def shown(recording: Recording, *, best: float | None = None, logs: tuple[evidence.LogTail, ...] = ()) -> str:
    return pages.page(
        evidence.ReportEvidence(
            recording=dataclasses.replace(recording, facts=(("cores", "2"),)),
            snapshot=snapshots.of_whole_run(recording),
            best_auc=best,
            logs=logs,
        )
    )


def test_a_replica_that_the_job_has_no_more_has_no_row() -> None:
    whole = measured_runs.recording()
    gone = ReplicaId(Role.WORKER, 77)
    lived = [
        JobEvent(at=START + 2, kind="started", message="", replica=gone, attempt=2),
        JobEvent(at=START + 9, kind="replica-exited", message="", replica=gone, attempt=2),
    ]
    page = shown(dataclasses.replace(whole, events=[*whole.events, *lived]))
    assert "timeline" in plots_of(page)
    assert "timeline" not in plots_of(shown(dataclasses.replace(whole, events=lived)))


def test_a_page_shows_every_plot_with_its_numbers() -> None:
    html = shown(measured_runs.recording(skew=3.0), best=0.7812)
    page = read(html)
    assert sorted(plots_of(html)) == sorted(
        ["throughput", "loss", "imbalance", "waits", "cpu", "memory", "network", "quality", "timeline"]
    )
    assert page.tags.count("figcaption") == 9
    assert "41 000 examples/s" in page.text
    assert "ps-0 is hot" in page.text
    assert "0.0012 below the 0.7812 that the best possible model reaches" in page.text
    assert "limit of PS and workers: 1 core" in page.text
    assert "kind: TrainingJob" in page.text
    assert "--best-auc 0.7812" in page.text
    assert "Not measured" not in page.text


def test_how_even_it_is_on_a_single_server_is_no_question() -> None:
    assert "PS load, max/mean" in read(shown(measured_runs.recording())).text
    single = read(shown(measured_runs.recording(ps=1))).text
    assert "max/mean" not in single
    assert "imbalance" not in single


def test_the_same_run_gives_the_same_bytes() -> None:
    assert shown(measured_runs.recording(), best=0.78) == shown(measured_runs.recording(), best=0.78)


def test_without_a_best_possible_auc_nothing_is_said_of_it() -> None:
    assert "best possible" not in read(shown(measured_runs.recording())).text


def test_colours_are_left_to_the_theme() -> None:
    html = shown(measured_runs.recording())
    drawings = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(drawings) > 9
    for drawing in drawings:
        assert not re.findall(r"#[0-9a-f]{6}\b|style=", drawing)
    assert "light-dark(" in html
    assert "@media print" in html


def test_what_comes_from_users_is_text() -> None:
    recording = measured_runs.recording(
        name=EVIL, message=EVIL, notes=(EVIL,), source=EVIL, directory=f"/x/{EVIL}", phase=JobPhase.FAILED
    )
    failed = dataclasses.replace(
        recording.replicas[3],
        phase=ReplicaPhase.FAILED,
        host=EVIL,
        exit=ExitReason(kind=ExitKind.ERROR, code=1, message=EVIL),
    )
    event = JobEvent(at=START + 5, kind=EVIL, message=EVIL, replica=failed.replica, attempt=1)
    recording = dataclasses.replace(
        recording, replicas=[*recording.replicas[:3], failed], events=[*recording.events, event]
    )
    html = shown(recording, logs=(evidence.LogTail(replica="worker-1", attempt=1, lines=(EVIL, EVIL)),))
    page = read(html)
    assert "img" not in page.tags
    assert "<script" not in html
    assert "\x1b" not in html
    assert "\x00" not in html
    assert page.text.count("<script>alert(1)</script>") >= 10


def test_a_run_without_measurements() -> None:
    recording = Recording(run=measured_runs.run(phase=JobPhase.PENDING, started_at=None), at=START + 200)
    html = shown(recording)
    page = read(html)
    assert plots_of(html) == []
    assert "not started yet" in page.text
    assert "no measurements of it: throughput, loss" in page.text
    assert "has not ended" in page.text


def test_a_run_with_a_single_sample() -> None:
    whole = measured_runs.recording(seconds=1, auc=None)
    recording = dataclasses.replace(
        whole, samples=whole.samples[:1], steps=whole.steps[:1], events=whole.events[:1]
    )
    html = shown(recording)
    page = read(html)
    assert {"throughput", "loss", "cpu", "memory", "timeline"} <= set(plots_of(html))
    assert "reported once" in page.text


def test_what_is_missing_is_said_once_with_the_reason() -> None:
    note = "network is not measured: this needs root"
    page = read(shown(measured_runs.recording(network=False, auc=None, notes=(note, note))))
    assert page.text.count(note) == 1
    assert "no measurements of it: network, quality (no evaluation)." in page.text


def test_a_failed_run_says_why_first() -> None:
    message = "worker-1 failed: exit code 1"
    recording = measured_runs.recording(phase=JobPhase.FAILED, message=message, auc=None)
    tail = evidence.LogTail(replica="worker-1", attempt=4, lines=("Traceback", "FileNotFoundError: /data"))
    page = read(shown(recording, logs=(tail,)))
    assert page.text.index("worker-1 failed: exit code 1") < page.text.index("FileNotFoundError: /data")
    assert page.text.index("FileNotFoundError: /data") < page.text.index("Throughput")


def test_two_hundred_replicas_are_bands_with_the_highest_named() -> None:
    recording = measured_runs.recording(ps=20, workers=200, seconds=20, skew=3.0)
    html = shown(recording)
    page = read(html)
    assert len(html) < 300_000
    assert "200 workers, lowest to highest" in page.text
    assert "ps-0 (highest)" in page.text
    assert "ps-0 is hot" in page.text
    assert "Shown are the 12 of 20 PS" in page.text
    assert "196 less busy replicas" in page.text
    assert "220 replicas ran; none was started again" in page.text


def test_of_many_replicas_those_that_were_restarted_have_their_own_row() -> None:
    recording = measured_runs.recording(ps=4, workers=40, seconds=3)
    again = dataclasses.replace(recording.replicas[20], restarts=1, attempt=2)
    events = [
        *recording.events,
        JobEvent(at=START + 5, kind="started", message="", replica=again.replica, attempt=2),
    ]
    rows = [again if row.replica == again.replica else row for row in recording.replicas]
    page = read(shown(dataclasses.replace(recording, replicas=rows, events=events)))
    assert "39 other workers" in page.text
    assert "1 of their starts were restarts" in page.text


def test_evaluations_on_the_way_are_drawn_over_the_steps() -> None:
    recording = measured_runs.recording()
    last = recording.evaluations[0]
    first = dataclasses.replace(last, at=last.at - 30, step=1000, auc=0.7)
    page = read(shown(dataclasses.replace(recording, evaluations=[first, last]), best=0.79))
    assert "Global step" in page.text
    assert "best possible 0.7900" in page.text


def test_a_chief_and_an_evaluator_have_their_place() -> None:
    recording = measured_runs.recording()
    spec = JobSpec(name="clicks", roles=(RoleSpec(role=Role.CHIEF), RoleSpec(role=Role.EVALUATOR)))
    roles = dict(zip(sorted({s.replica for s in recording.samples}), spec.replicas() * 2, strict=True))
    samples = [dataclasses.replace(sample, replica=roles[sample.replica]) for sample in recording.samples]
    page = read(shown(dataclasses.replace(recording, samples=samples)))
    assert "chief-0" in page.text
    assert "evaluator-0" in page.text
