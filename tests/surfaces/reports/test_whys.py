"""Why a job is as it is, as a section of a report and as a page: what is said and drawn, and how safely."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from support import cases
from support.filled_homes import fill
from support.html_pages import EVIL, plots_of, read

pytest.importorskip("jinja2")


from paceline.diagnosing import diagnoses
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.model.roles import Role
from paceline.services.local.state_dirs import Home
from paceline.services.observing import recordings
from paceline.stores import recordings as files
from paceline.surfaces.reports import evidence, heat_maps, pages, whys

Paceline = Callable[..., Result]
LOADS = {
    "ps-0": {**cases.SERVER, "cpu_cores": 0.98},
    "ps-1": {**cases.SERVER, "cpu_cores": 0.05},
    "worker-0": {**cases.TRAINER, "cpu_cores": 0.2},
    "worker-1": {**cases.TRAINER, "cpu_cores": 0.2},
}
MOVED = {("ps-0", "table"): 9_000_000, ("ps-1", "kernel"): 100_000}
TRACES = tuple(cases.trace(MOVED, trainer=f"worker-{index}") for index in range(2))


def hot(**more: object) -> Recording:
    made = cases.recording(LOADS, **{"traces": TRACES, "spec": {"training": TRAINING}, **more})  # type: ignore[arg-type]
    run = dataclasses.replace(made.run, source=SOURCE)
    return dataclasses.replace(made, run=run)


SOURCE = """\
spec:
  training:
    batch_size: 512
    variable_placement: round-robin
"""
TRAINING = {"variable_placement": "round-robin", "partitioning": {"strategy": "none"}}


def page(recording: Recording) -> str:
    found = diagnoses.diagnose(recording, recordings.situation(recording))
    return whys.page(recording, found, say=lambda text: text.replace("paceline", "paceline -n ads"))


def test_a_page_says_what_how_and_what_it_brings() -> None:
    html = page(hot())
    text = " ".join(read(html).text.split())
    assert plots_of(html) == ["load", "traffic", "split"]
    for expected in (
        "PS001 The variable table makes ps-0 hot",
        "ps-0 uses 0.98 of 1.00 cores, the other PS 0.05 on average: 1.9 times the mean",
        "from cpu_cores, 60 samples (ps-0, ps-1)",
        "What follows from it PS004 ps-0 is at its limit while ps-1 rests: the variables on ps-0 are what to",
        "- variable_placement: round-robin",
        "paceline -n ads plan clicks compares ways",
        "the examples per second (computed)",
        "A checkpoint of paceline.training is read back",
        "What is not known what its place says",
        "What binds now: CPU of ps-0",
        "2 x PS",
        "workers on, more of them bring little",
        "ps-0 uses 98 % of its cores on average, ps-1 5.0 %.",
        "table on ps-0 has 99 % of what a step moves, as traced.",
        "on average over 2 trainers: pull 80 %, compute 20 %, push 0 %, wait for input 0 %.",
    ):
        assert expected in text, expected


def test_a_report_has_it_first() -> None:
    html = pages.page(evidence.of(hot()))
    text = read(html).text
    assert text.index("PS001") < text.index("Throughput")
    assert plots_of(html)[:3] == ["load", "traffic", "split"]


def test_a_healthy_job_says_so_and_nothing_is_drawn_that_was_not_measured() -> None:
    quiet = cases.recording({"worker-0": {}}, phase=JobPhase.SUCCEEDED)
    html = page(quiet)
    assert "Nothing is wrong as far as can be seen: clicks has succeeded" in read(html).text
    assert plots_of(html) == []
    assert "How it scales" not in html


def test_what_comes_from_users_is_text() -> None:
    recording = hot(traces=(cases.trace({("ps-0", EVIL.replace("/", "")): 9_000_000}),))
    recording = dataclasses.replace(recording, run=dataclasses.replace(recording.run, name=EVIL))
    html = page(recording)
    assert "img" not in read(html).tags
    assert "<script" not in html
    assert "\x1b" not in html


def test_of_many_ps_the_busiest_are_drawn_and_the_picture_stays_small() -> None:
    loads = {f"ps-{index}": {"cpu_cores": 0.1 + index / 40, "cpu_limit_cores": 1.0} for index in range(30)}
    recording = cases.recording({**loads, "worker-0": cases.TRAINER}, seconds=200)
    noisy = [
        dataclasses.replace(each, cpu_cores=(each.cpu_cores or 0.0) * (0.5 + number % 7 / 7))
        for number, each in enumerate(recording.samples)
    ]
    plot = heat_maps.load(dataclasses.replace(recording, samples=noisy))
    assert plot is not None
    assert "Shown are the 20 busiest of 30 PS." in plot.caption
    (chart,) = plot.charts
    assert [name for _, name in chart.up] == [f"ps-{index}" for index in range(10, 30)]
    assert 1 < len(chart.paths) <= heat_maps.SHADES
    assert sum(len(path.d) for path in chart.paths) < 50_000


def test_the_heat_map_without_limits_is_relative_and_without_samples_not_there() -> None:
    loads = {"ps-0": {"cpu_cores": 0.8}, "ps-1": {"cpu_cores": 0.2}, "worker-0": cases.TRAINER}
    plot = heat_maps.load(cases.recording(loads))
    assert plot is not None
    assert plot.caption == "ps-0 uses 100 % of the highest load on average, ps-1 25 %."
    unknown = cases.recording({"ps-0": {}, "worker-0": cases.TRAINER})
    assert heat_maps.load(unknown) is None
    workers = [each for each in unknown.samples if each.replica.role is Role.WORKER]
    assert heat_maps.load(dataclasses.replace(unknown, samples=workers)) is None


def test_of_many_variables_those_that_move_the_most_are_drawn() -> None:
    moved = {(f"ps-{n % 6}", "a" * 60 + str(n)): 1_000_000 - n for n in range(20)}
    html = page(hot(traces=(cases.trace(moved),)))
    text = " ".join(read(html).text.split())
    assert "Further variables: 8, 7.6 MiB." in text
    assert f"{'a' * 60}11ps-5: 977 KiB" in text
    assert f"{'a' * 60}12ps" not in text
    assert "+ 2 PS" in text
    assert plots_of(page(hot(traces=()))) == ["load"]


def test_of_many_trainers_those_with_the_longest_steps_are_drawn() -> None:
    traces = [cases.trace(MOVED, trainer=f"worker-{n}") for n in range(20)]
    slow = dataclasses.replace(traces[17].splits[0], push_microseconds=5e5)
    traces[17] = dataclasses.replace(traces[17], splits=(slow,))
    html = page(hot(traces=tuple(traces)))
    text = " ".join(read(html).text.split())
    assert "Shown are the 12 with the longest steps." in text
    assert "worker-17pull: 800 mscompute: 200 mspush: 500 ms" in text
    assert "wait: " not in text
    assert text.count("push: ") == 1


def test_the_verb_prints_the_change_for_patch(home: Home, paceline: Paceline, tmp_path: Path) -> None:
    files.write(tmp_path / "hot.parquet", hot())
    diff = paceline("why", str(tmp_path / "hot.parquet"), "-o", "diff").stdout
    assert [line for line in diff.splitlines() if line.startswith(("-", "+"))][2:] == [
        "-    variable_placement: round-robin"
    ]
    fill(home, "clicks", loads=[0.9, 0.1], steps=3)
    nothing = paceline("why", "clicks", "-o", "diff")
    assert nothing.stdout == ""
    assert "no cause is cured by a change of the job file" in nothing.stderr


def test_the_verb_prints_markdown_and_a_page(home: Home, paceline: Paceline) -> None:
    fill(home, "clicks", loads=[0.9, 0.1], steps=3)
    markdown = paceline("why", "clicks", "-o", "markdown")
    assert markdown.stdout.startswith("## Why clicks is as it is\n\n")
    html = paceline("why", "clicks", "-o", "html").stdout
    assert "Nothing is wrong" in read(html).text
    assert re.match(r"<!DOCTYPE html>", html)
