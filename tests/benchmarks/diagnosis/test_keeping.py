"""What is kept of a run: its training without the machine's paths, and a label beside it."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from support import measured_runs
from support.measured_runs import START

from benchmarks.diagnosis import labels, thinning
from benchmarks.diagnosis.labels import Label
from benchmarks.protocols import ROOT
from paceline import specs

LABEL = Label(
    name="slow-host.gross.dlrm-small-trio-1",
    cause="slow-host",
    also=("noisy-neighbour",),
    severity="gross",
    model="dlrm",
    size="small",
    seed=1,
    kind="trio",
    split=labels.UNSEEN,
    ending="live",
    twin="healthy.live.dlrm-small-trio-1",
    began_at=START,
    effect="worker-2's speed over the others' median <= 0.75",
    value=0.3,
    speed_ratio=0.8,
)


def test_labels_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert labels.read(tmp_path) == {}
    labels.write(tmp_path, {LABEL.name: LABEL})
    assert labels.read(tmp_path) == {LABEL.name: LABEL}


def test_what_was_measured_before_the_limits_held_is_left_out() -> None:
    recording = measured_runs.recording(seconds=20)
    kept = thinning.thinned(recording, START + 15)
    assert 0 < len(kept.samples) < len(recording.samples)
    assert min(each.at - each.interval_seconds for each in kept.samples) >= START + 15
    assert len(thinning.thinned(recording, None).samples) == len(recording.samples)


def test_no_path_of_this_machine_is_kept() -> None:
    recording = measured_runs.recording(seconds=5)
    spec = dataclasses.replace(
        recording.run.spec,
        command=(sys.executable, "-m", "train", "--data", str(ROOT / "bench-out")),
        working_dir=str(ROOT),
        training={"inputs": {"evaluation": [str(ROOT / "data.csv")]}},
    )
    recording = dataclasses.replace(recording, run=dataclasses.replace(recording.run, spec=spec))
    run = thinning.thinned(recording, None).run
    assert run.spec.command[0] == "python"
    assert str(ROOT) not in repr(run)
    assert specs.parse_job(run.source).spec == run.spec


def test_the_path_of_another_python_that_a_script_runs_under_is_not_kept() -> None:
    recording = measured_runs.recording(seconds=5)
    spec = dataclasses.replace(
        recording.run.spec, command=("/home/user/tensorflows/1.15.5/bin/python", str(ROOT / "train.py"))
    )
    recording = dataclasses.replace(recording, run=dataclasses.replace(recording.run, spec=spec))
    assert thinning.thinned(recording, None).run.spec.command == ("python", "/code/train.py")
