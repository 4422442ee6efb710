"""Searches for a better job file, with changes tried in turn within a run, and with a run for each trial.

Jobs of the library and of an unchanged script train with servers that are short of cores. Each is tuned in
both ways, one after the other, the one first in one pair and the other in the next. Then the best job file of
each way, and the file that the job came with, run one after the other: what a search has found is its speed
over that of the job as it came.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import plots, resize, trials
from benchmarks.diagnosis import quiet
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, interval, reported
from paceline import specs
from paceline.model.studies.tunings import Objective
from paceline.services.studying import tunings
from paceline.services.studying.trials import TrialRunner, TrialTimes

BY_TURNS, BY_RUNS = "in turn", "a run each"
WAYS = (BY_TURNS, BY_RUNS)
JOBS = ("library", "unchanged script")
PAIRS, TRIALS = 3, 6
#: By so much may the factors of both ways differ.
ALIKE = 0.1
#: A trial of ten seconds, as the demo has them.
TIMES = TrialTimes(settle_seconds=3.0, window_seconds=10.0)


def run(bench: Bench) -> list[Check]:
    """Tune each job in both ways, in turn."""
    kinds, pairs = JOBS[: 1 if bench.quick else None], 1 if bench.quick else PAIRS
    bench.plan(len(kinds) * pairs)
    for number in range(pairs):
        for kind in kinds:
            order = WAYS if number % 2 else tuple(reversed(WAYS))
            bench.repeat(f"{kind} {number}", functools.partial(_tuned, kind, order, quick=bench.quick))
    return [check for kind in kinds for check in _checks(kind, [r for r in bench.rows if r["kind"] == kind])]


def _checks(kind: str, rows: Sequence[Row]) -> list[Check]:
    found = []
    for way in WAYS:
        own = [row["ways"][way] for row in rows]
        a_minute = [60 * each["trials"] / each["seconds"] for each in own]
        found.append(reported(f"{kind}: trials a minute, {way}", a_minute))
        found.append(reported(f"{kind}: times as fast in the end, {way}", [each["times"] for each in own]))
    turns, runs = ([row["ways"][way] for row in rows] for way in WAYS)
    faster = [
        (one["trials"] / one["seconds"]) / (other["trials"] / other["seconds"])
        for one, other in zip(turns, runs, strict=True)
    ]
    value, low, high = interval(faster)
    found.append(
        Check(
            name=f"{kind}: trials a minute, in turn over a run each", value=value, low=low, high=high,
            target="> 1", holds=low > 1,
        )
    )  # fmt: skip
    apart = [math.log(one["times"] / other["times"]) for one, other in zip(turns, runs, strict=True)]
    value, low, high = (math.exp(each) for each in interval(apart))
    found.append(
        Check(
            name=f"{kind}: times as fast in the end, in turn over a run each", value=value, low=low,
            high=high, target=f">= {1 - ALIKE:g}", holds=value >= 1 - ALIKE,
        )
    )  # fmt: skip
    return found


def _tuned(kind: str, order: Sequence[str], *, quick: bool) -> Row:
    """Tune a job in both ways, then measure what they have found beside the job as it came."""
    quiet.wait(quiet.BEFORE_SECONDS)
    spec = resize.short_of_cores(resize.JOBS[kind])
    source = specs.dump_job(spec)
    objective = tunings.limited(Objective(), spec, on_cluster=False)
    ways, files = dict[str, Row](), {"": source}
    for way in order:
        with trials.service() as api:
            tuning = tunings.begun(
                api.store, source, base=ROOT, objective=objective, most_trials=3 if quick else TRIALS
            )
            began = time.monotonic()
            tuner = tunings.Tuner(jobs=api, store=api.store, times=TIMES, by_turns=way == BY_TURNS)
            done = tuner.run(tuning)
            seconds = time.monotonic() - began
            assert done.best is not None
            files[way] = done.best.source
            ways[way] = {
                "seconds": seconds,
                "trials": len(done.finished),
                "in_turn": sum(each.is_in_turn for each in done.finished),
                "kept": [each.name for trial in done.finished if trial.is_kept for each in trial.proposals],
            }
    speeds = {side: _examples_per_second(text) for side, text in files.items()}
    for way in WAYS:
        ways[way]["times"] = speeds[way] / speeds[""]
    return {"kind": kind, "ways": ways}


def _examples_per_second(source: str) -> float:
    """Run a job file and return what it trains."""
    with trials.service() as api:
        bed = TrialRunner(jobs=api, base=ROOT, study="turns", times=TIMES)
        found = bed.measure(source, "turns")
    if not found.speed:
        raise RuntimeError(f"a job file of a search does not train: {found.failure}")
    return found.speed


def draw(result: Result, path: Path) -> None:
    """Draw the trials a minute of both ways."""
    groups = {
        f"{kind}, {way}": [
            60 * row["ways"][way]["trials"] / row["ways"][way]["seconds"]
            for row in result.rows
            if row["kind"] == kind
        ]
        for kind in JOBS
        for way in WAYS
    }
    plots.strips(path, groups, label="trials a minute", title="Searches with turns and without")
