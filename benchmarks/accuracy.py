"""The examples reach the accuracy that is known to be possible, trained over 2 PS and 2 workers."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from benchmarks import plots, trials
from benchmarks.protocols import Bench, Check, Result, at_least
from paceline.examples.clicks import generate
from paceline.model.jobs.job_specs import JobSpec

CENSUS_AUC, CENSUS_ACCURACY = 0.905, 0.85
CLICKS_AUC_GAP = 0.01


def run(bench: Bench) -> list[Check]:
    """Train Census over three seeds, and clicks once."""
    seeds = (0,) if bench.quick else (0, 1, 2)
    bench.plan(len(seeds) + 1)
    for seed in seeds:
        spec = trials.example("census", "--data", str(trials.census_data()), seed=seed)
        bench.repeat(f"census {seed}", functools.partial(_train, "census", spec))
    bench.repeat("clicks", functools.partial(_clicks, bench.quick))
    census = [row for row in bench.rows if row["example"] == "census"]
    clicks = [row for row in bench.rows if row["example"] == "clicks"]
    return [
        at_least("Census AUC on adult.test", [row["auc"] for row in census], CENSUS_AUC),
        at_least("Census accuracy on adult.test", [row["accuracy"] for row in census], CENSUS_ACCURACY),
        at_least(
            "Clicks AUC minus the best possible", [r["auc"] - r["best_auc"] for r in clicks], -CLICKS_AUC_GAP
        ),
    ]


def _train(example: str, spec: JobSpec) -> dict[str, Any]:
    with trials.service() as api:
        run = trials.finish(api, spec)
        evaluation = api.store.evaluations(run.name)[-1]
        steps = api.store.step_reports(run.name)
        assert run.finished_at is not None
        assert run.started_at is not None
        return {
            "example": example,
            "auc": evaluation.auc,
            "accuracy": evaluation.accuracy,
            "log_loss": evaluation.log_loss,
            "step": evaluation.step,
            "seconds": run.finished_at - run.started_at,
            "examples": sum(report.examples or 0 for report in steps),
        }


def _clicks(quick: bool) -> dict[str, Any]:
    folder = trials.clicks_data("clicks-quick" if quick else "clicks")
    row = _train("clicks", trials.example("clicks", "--data", str(folder)))
    return {"best_auc": generate.load(folder).best_auc, **row}


def draw(result: Result, path: Path) -> None:
    """Draw the AUC of each run beside what it has to reach."""
    census = [row["auc"] for row in result.rows if row["example"] == "census"]
    clicks = [row for row in result.rows if row["example"] == "clicks"]
    groups = {"Census AUC": census, "Clicks AUC": [row["auc"] for row in clicks]}
    limits = {"Census AUC": CENSUS_AUC, "Clicks AUC": clicks[0]["best_auc"] - CLICKS_AUC_GAP}
    plots.strips(
        path, groups, label="AUC", title="Accuracy of the examples (dashed: at least)", limits=limits
    )
