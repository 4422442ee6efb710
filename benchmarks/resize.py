"""What it takes to give parameter servers more cores: resized while they run, or stopped and resumed.

A job of the library and one of an unchanged script train with servers that are short of cores. Then
their servers get more, in the one way or the other, in turn. Looked at are the ten seconds before, the ten
seconds after, and the time until the end: a step that was made before and is made again is lost, and so is
the time in which fewer examples were trained than are trained at the end.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks import plots, trials
from benchmarks.diagnosis import changes, quiet
from benchmarks.diagnosis import trials as corpus
from benchmarks.diagnosis.bases import PLAIN, Base
from benchmarks.diagnosis.sites import Site
from benchmarks.diagnosis_unchanged.bases import OWN_TENSORFLOW, WIDE_DEEP, ScriptBase
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, none, reported
from paceline import specs
from paceline.control.resizings import Resize
from paceline.model.jobs import JobSpec
from paceline.model.roles import Role
from paceline.model.samples import StepReport, by_replica
from paceline.probing import windows
from paceline.services import jobs

RESIZED, RESUMED = "resized", "stopped and resumed"
#: Cores of each parameter server before and after.
FEW, MORE = 0.15, 0.5
WINDOW_SECONDS = 10.0
#: After the change so long is looked at: a stopped job has to start again in it.
AFTER_SECONDS = 100.0
_TRAINED_SECONDS = 30.0
#: What was reported is stored within so many seconds.
_KNOWN_SECONDS = 5.0
_GRACE_SECONDS = 30.0
_SAVED_SECONDS = 20
#: Each with what makes it save as often as a user would want before a stop.
JOBS: Mapping[str, tuple[Base, tuple[str, ...]]] = {
    "library": (Base(model="deepfm", size="small", seed=7), ()),
    "unchanged script": (
        ScriptBase(model=WIDE_DEEP, size=OWN_TENSORFLOW, kind=PLAIN),
        ("--checkpoint-seconds", str(_SAVED_SECONDS)),
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
        ):
            found.append(reported(f"{kind}: {what}, {way}", [row[name] for row in own]))
    return found


def _resize(api: jobs.Jobs, name: str, spec: JobSpec) -> None:
    api.resize(name, Resize(target=str(Role.PS), cpu_cores=MORE))


def _resume(api: jobs.Jobs, name: str, spec: JobSpec) -> None:
    api.change(name, specs.dump_job(changes.role(spec, Role.PS, cpu_cores=MORE)))


_WAYS: Mapping[str, Callable[[jobs.Jobs, str, JobSpec], None]] = {RESIZED: _resize, RESUMED: _resume}


def _changed(kind: str, way: str) -> Row:
    """Run a job, give its servers more cores, and return what it did before and after."""
    base, arguments = JOBS[kind]
    base.make_data()
    quiet.wait(quiet.BEFORE_SECONDS)
    spec = changes.arguments(base.job(), *arguments) if arguments else base.job()
    spec = dataclasses.replace(
        changes.role(spec, Role.PS, cpu_cores=FEW), termination_grace_seconds=_GRACE_SECONDS
    )
    with trials.service() as api:
        site = Site.of(api, api.submit(spec, source=specs.dump_job(spec), base=ROOT))
        try:
            corpus.wait_for_steps(site, base.trainers if isinstance(base, ScriptBase) else None)
            site.limit()
            time.sleep(_TRAINED_SECONDS)
            at = time.time()
            _WAYS[way](api, site.run.name, spec)
            time.sleep(max(0.0, at + AFTER_SECONDS + _KNOWN_SECONDS - time.time()))
            found = api.recording(site.run.name, since=at - _TRAINED_SECONDS)
        finally:
            corpus.end_job(api, site.run)
    return {"kind": kind, "way": way, **judged(found.steps, at)}


def judged(steps: Sequence[StepReport], at: float) -> Row:
    """Return what a job did before and after a moment.

    Args:
        steps: what its trainers reported, from ten seconds before until `AFTER_SECONDS` after.
        at: when its servers got more (Unix seconds).
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
    plots.strips(path, groups, label="seconds of training lost", title="More cores for parameter servers")
