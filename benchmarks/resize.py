"""What it takes to give replicas more cores: resized while they run, or stopped and resumed.

A job of the library and one of an unchanged script train with servers that are short of cores. Then
their servers get more, in the one way or the other, in turn. Looked at are the ten seconds before, the ten
seconds after, and the time until the end: a step that was made before and is made again is lost, and so is
the time in which fewer examples were trained than are trained at the end.

TensorFlow makes its threads once, as many as a replica has cores when it starts. A third job, of one worker
that computes large batches, shows whether a resize to more cores than threads is of use: the cores that are
used at the end, and the examples/s at the end over those before.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import plots, trials
from benchmarks.diagnosis import changes, quiet
from benchmarks.diagnosis import trials as corpus
from benchmarks.diagnosis.bases import PLAIN, Base
from benchmarks.diagnosis.sites import Site
from benchmarks.diagnosis_unchanged.bases import OWN_TENSORFLOW, WIDE_DEEP, ScriptBase
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, none, reported
from paceline import specs
from paceline.control.resizings import Resize
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures.samples import Sample, StepReport, by_replica
from paceline.model.roles import Role
from paceline.probing import windows
from paceline.services.local import jobs

RESIZED, RESUMED = "resized", "stopped and resumed"
WINDOW_SECONDS = 10.0
#: After the change so long is looked at: a stopped job has to start again in it.
AFTER_SECONDS = 100.0
_TRAINED_SECONDS = 30.0
#: What was reported is stored within so many seconds.
_KNOWN_SECONDS = 5.0
_GRACE_SECONDS = 30.0
_SAVED_SECONDS = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """A job and its role that is short of cores.

    Attributes:
        base: the job.
        arguments: more of the script's: it saves as often as a user would want before a stop.
        training: more of the training block.
        workers: how many there are; None: as many as the job has.
        role: which gets more cores.
        few: cores of each of its replicas before.
        more: cores after.
    """

    base: Base
    arguments: tuple[str, ...] = ()
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    workers: int | None = None
    role: Role = Role.PS
    few: float = 0.15
    more: float = 0.5


JOBS: Mapping[str, Kind] = {
    "library": Kind(base=Base(model="deepfm", size="small", seed=7)),
    "unchanged script": Kind(
        base=ScriptBase(model=WIDE_DEEP, size=OWN_TENSORFLOW, kind=PLAIN),
        arguments=("--checkpoint-seconds", str(_SAVED_SECONDS)),
    ),
    "more cores than threads": Kind(
        base=Base(model="deepfm", size="small", seed=7),
        training={"batch_size": 4096, "hidden_units": [512, 256]},
        workers=1,
        role=Role.WORKER,
        few=0.5,
        more=1.5,
    ),
}


def run(bench: Bench) -> list[Check]:
    """Change each job in both ways, in turn."""
    repeats = 1 if bench.quick else 5
    kinds = list(JOBS)[: 1 if bench.quick else None]
    bench.plan(len(kinds) * len(_WAYS) * repeats)
    for number in range(repeats):
        for kind in kinds:
            for way in list(_WAYS) if number % 2 else reversed(list(_WAYS)):
                bench.repeat(f"{kind} {way} {number}", functools.partial(_changed, kind, way))
    return [
        check for kind in kinds for check in _checks(kind, [row for row in bench.rows if row["kind"] == kind])
    ]


def _checks(kind: str, rows: Sequence[Row]) -> list[Check]:
    found = []
    for way in _WAYS:
        own = [row for row in rows if row["way"] == way]
        lost = [row["steps_lost"] for row in own]
        found.append((none if way == RESIZED else reported)(f"{kind}: steps lost, {way}", lost))
        for name, what in (
            ("times", "examples/s of the ten seconds after over those of the ten before"),
            ("seconds_lost", "seconds of training lost"),
            ("times_last", "examples/s of the last ten seconds over those of the ten before"),
            ("cores_used", "cores that each replica used at the end"),
        ):
            known = [row[name] for row in own if row[name] is not None]
            if known:
                found.append(reported(f"{kind}: {what}, {way}", known))
    return found


def _resize(api: jobs.Jobs, name: str, kind: Kind, spec: JobSpec) -> None:
    api.resize(name, Resize(target=str(kind.role), cpu_cores=kind.more))


def _resume(api: jobs.Jobs, name: str, kind: Kind, spec: JobSpec) -> None:
    api.change(name, specs.dump_job(changes.role(spec, kind.role, cpu_cores=kind.more)))


_WAYS: Mapping[str, Callable[[jobs.Jobs, str, Kind, JobSpec], None]] = {RESIZED: _resize, RESUMED: _resume}


def _changed(name: str, way: str) -> Row:
    """Run a job, give its replicas more cores, and return what it did before and after."""
    kind = JOBS[name]
    kind.base.make_data()
    quiet.wait(quiet.BEFORE_SECONDS)
    spec = short_of_cores(kind)
    with trials.service() as api:
        site = Site.of(api, api.submit(spec, source=specs.dump_job(spec), base=ROOT))
        try:
            corpus.wait_for_steps(site, kind.base.trainers if isinstance(kind.base, ScriptBase) else None)
            site.limit()
            time.sleep(_TRAINED_SECONDS)
            at = time.time()
            _WAYS[way](api, site.run.name, kind, spec)
            time.sleep(max(0.0, at + AFTER_SECONDS + _KNOWN_SECONDS - time.time()))
            found = api.recording(site.run.name, since=at - _TRAINED_SECONDS)
        finally:
            corpus.end_job(api, site.run)
    used = cores_used(found.samples, kind.role, at + AFTER_SECONDS)
    return {"kind": name, "way": way, "cores_used": used, **judged(found.steps, at)}


def short_of_cores(kind: Kind) -> JobSpec:
    """Return a job as it is before it gets more cores."""
    spec = changes.arguments(kind.base.job(), *kind.arguments) if kind.arguments else kind.base.job()
    if kind.training:
        spec = changes.training(spec, **kind.training)
    if kind.workers is not None:
        spec = changes.resized(spec, Role.WORKER, kind.workers)
    spec = changes.role(spec, kind.role, cpu_cores=kind.few)
    return dataclasses.replace(spec, termination_grace_seconds=_GRACE_SECONDS)


def cores_used(samples: Sequence[Sample], role: Role, end: float) -> float | None:
    """Return the mean cores that each replica of a role used in the ten seconds before the end."""
    used = [
        each.cpu_cores
        for each in samples
        if each.replica.role is role and each.cpu_cores is not None and end - WINDOW_SECONDS < each.at <= end
    ]
    return statistics.fmean(used) if used else None


def judged(steps: Sequence[StepReport], at: float) -> Row:
    """Return what a job did before and after a moment.

    Args:
        steps: what its trainers reported, from ten seconds before until `AFTER_SECONDS` after.
        at: when its replicas got more (Unix seconds).
    """
    counted = windows.unit(steps)

    def rate(since: float, until: float) -> float:
        return windows.rate(counted, steps, (), since, until) or 0.0

    end = at + AFTER_SECONDS
    before, after = rate(at - WINDOW_SECONDS, at), rate(at, at + WINDOW_SECONDS)
    last = rate(end - WINDOW_SECONDS, end)
    return {
        "before": before,
        "after": after,
        "last": last,
        "times": after / before,
        "times_last": last / before,
        "steps_lost": steps_lost(steps),
        "seconds_lost": AFTER_SECONDS * (1 - rate(at, end) / last),
    }


def steps_lost(steps: Sequence[StepReport]) -> int:
    """Return how many steps were made twice: the global step that a trainer reports goes back by so many."""
    lost = 0
    for own in by_replica(steps).values():
        reached = 0
        for number in (each.step for each in own if each.step is not None):
            lost, reached = max(lost, reached - number), max(reached, number)
    return lost


def draw(result: Result, path: Path) -> None:
    """Draw the seconds of training that each change cost."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        groups.setdefault(f"{row['kind']}, {row['way']}", []).append(row["seconds_lost"])
    plots.strips(path, groups, label="seconds of training lost", title="More cores while a job runs")
