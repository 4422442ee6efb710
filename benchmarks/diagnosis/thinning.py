"""What of a recording is kept: the training under its limits, and nothing of the machine's own paths."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.protocols import ROOT
from paceline import specs
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Measured

_CODE, _RUN, _PYTHON = "/code", "/runs", "python"


def thinned(recording: Recording, since: float | None) -> Recording:
    """Return a recording without what was measured before a moment, when no CPU quota held.

    Args:
        recording: as it was made.
        since: the moment (Unix seconds); None: all is kept, as of a job that never trained.
    """
    run = recording.run
    spec = placeless(run.spec, run.directory)
    return dataclasses.replace(
        recording,
        run=dataclasses.replace(run, spec=spec, source=specs.dump_job(spec), directory=f"{_RUN}/{run.name}"),
        samples=_since(recording.samples, since),
        steps=_since(recording.steps, since),
    )


def _since(values: Iterable[Measured], since: float | None) -> tuple[Measured, ...]:
    if since is None:
        return tuple(values)
    return tuple(each for each in values if each.at - (each.interval_seconds or 0.0) >= since)


def placeless(spec: JobSpec, directory: str) -> JobSpec:
    """Return a job without the paths of the machine that it ran on."""
    # A script may run under another Python than this one.
    own = spec.command[0] if spec.command and Path(spec.command[0]).is_absolute() else sys.executable

    def without(text: str) -> str:
        for path, name in ((own, _PYTHON), (sys.executable, _PYTHON), (directory, _RUN), (str(ROOT), _CODE)):
            text = text.replace(path, name)
        return text

    training = dict(spec.training or {})
    if "inputs" in training:
        training["inputs"] = {
            name: [without(each) for each in value] if isinstance(value, list) else value
            for name, value in training["inputs"].items()
        }
    return dataclasses.replace(
        spec,
        command=tuple(map(without, spec.command)),
        working_dir=None if spec.working_dir is None else without(spec.working_dir),
        training=training,
    )
