"""Jobs that are good already: the search says so, or makes them better; it keeps nothing that does harm.

Each is a healthy job of the corpus with every switch of the training library as a search would set it, and
may ask for no more cores than it does. What a search keeps is run once more beside the job as it came.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support.prerequisites import NotHere

from benchmarks import plots, trials
from benchmarks.diagnosis import bases
from benchmarks.diagnosis.bases import Base
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, none
from paceline import specs
from paceline.engines.local import machines
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.studies.tunings import Objective
from paceline.services.studying import tunings
from paceline.services.studying.trials import TrialRunner, TrialTimes
from paceline.services.studying.tunings import Tuner
from paceline.surfaces.views import cells
from paceline.tuning import judgements

MODELS = ("wide-deep", "deepfm", "dlrm")
SIZES = ("small", "middle")
KINDS = (bases.PLAIN, bases.FOUR, bases.TRIO, bases.WHOLE, bases.FREE)
_ENDS = ("nothing to gain", "withdrawn by the proof", "made faster")
#: The job as it is, and so many proposals.
_TRIALS, _PAIRS = 3, 2
_TIMES = TrialTimes(window_seconds=8.0, settle_seconds=3.0)
_SWITCHED = {
    "steps_per_exchange": 6, "steps_in_flight": 2, "compute_precision": "bfloat16",
    "transfers": {"precision": "bfloat16"},
}  # fmt: skip


def run(bench: Bench) -> list[Check]:
    """Search for better files of all jobs; with ``--quick`` of two."""
    if machines.read().lacks_namespaces:
        raise NotHere("this benchmark needs emulated hosts, so root")
    jobs = [
        Base(model=model, size=size, seed=20, kind=kind)
        for kind in KINDS
        for size in SIZES
        for model in MODELS
    ]
    chosen = jobs[:2] if bench.quick else jobs
    bench.plan(len(chosen))
    for each in chosen:
        bench.repeat(each.name, functools.partial(_searched, each))
    return list(_checks(bench.rows))


def _good(base: Base) -> JobSpec:
    spec = base.job()
    return dataclasses.replace(spec, name="good", training={**(spec.training or {}), **_SWITCHED})


def _searched(base: Base) -> dict[str, Any]:
    """Search for a better file of a job; return what became of it."""
    base.make_data()
    spec = _good(base)
    objective = Objective(most_cores=spec.asked_cores)
    with trials.service() as api:
        tuner = Tuner(jobs=api, store=api.store, times=_TIMES)
        begun = tunings.begun(
            api.store, specs.dump_job(spec), base=ROOT, objective=objective, most_trials=_TRIALS
        )
        found = tuner.run(begun)
        done = tuner.prove(found, pairs=_PAIRS)
        best = done.best
        assert best is not None, "the job as it is trains"
        bed = TrialRunner(jobs=api, base=ROOT, study="again", times=_TIMES)
        again = [
            bed.measure(source, f"again-{number}").speed
            for number, source in enumerate((begun.source, best.source) if best.number else ())
        ]
    proven = judgements.proven(objective, done.pairs) if best.number else None
    return {
        "trials": len(done.finished),
        "tried": [[proposal.name for proposal in each.proposals] for each in done.finished[1:]],
        "kept": [proposal.name for each in done.finished if each.is_kept for proposal in each.proposals],
        "withdrawn": bool(found.best and found.best.number) and not best.number,
        "proven": proven,
        "again": again[1] / again[0] if all(again) and again else None,
    }


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    gained = [row for row in rows if row["kept"]]
    yield none(
        "changes kept whose interval includes a loss",
        [row["proven"] is None or row["proven"][1] <= 1 for row in gained],
    )
    for name, found in (
        ("answered: nothing to gain", [row for row in rows if not row["kept"]]),
        (
            "of these: a change that a trial kept was withdrawn by the proof",
            [r for r in rows if r["withdrawn"]],
        ),
        ("made faster", gained),
    ):
        count = len(found)
        yield Check(
            name=f"{name}, of {len(rows)} jobs", value=count, low=count, high=count, target="reported",
            holds=True,
        )  # fmt: skip
    again = [row["again"] for row in gained if row["again"]]
    if again:
        middle = statistics.geometric_mean(again)
        yield Check(
            name="what was kept, run once more: times as fast, the least and the most", value=middle,
            low=min(again), high=max(again), target="> 1 on average", holds=middle > 1,
        )  # fmt: skip


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what became of each job."""
    yield "| job | tried | kept | proven | once more |\n| --- | --- | --- | --- | --- |"
    for row in rows:
        proven = "" if row["proven"] is None else cells.interval(*row["proven"])
        again = "" if row["again"] is None else f"{row['again']:.2f}"
        tried = "; ".join(", ".join(each) for each in row["tried"]) or "nothing to gain"
        yield f"| {row['key']} | {tried} | {', '.join(row['kept'])} | {proven} | {again} |"


def draw(result: Result, path: Path) -> None:
    """Draw what the searches of each model's jobs ended with."""
    ends = [(row["key"], _end(row)) for row in result.rows]
    counts = [
        [sum(key.startswith(f"{model}-") and end == each for key, end in ends) for each in _ENDS]
        for model in MODELS
    ]
    plots.matrix(path, counts, rows=MODELS, columns=_ENDS, title="What became of good jobs")


def _end(row: Row) -> str:
    nothing, withdrawn, faster = _ENDS
    if row["kept"]:
        return faster
    return withdrawn if row["withdrawn"] else nothing
