"""What reduced precision does to the AUC: on the wire, in dense layers, and in both.

Every side trains one pass over clicks-large as rung 6 does, with the same seeds; a difference is that of two
sides with the same seed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import ladder, plots, rungs, trials
from benchmarks.protocols import Bench, Check, Result, Row, interval

LIMIT = 0.002
SEEDS = 4
EXACT = "float32"
SIDES: Mapping[str, Mapping[str, Any]] = {
    EXACT: {"compute_precision": "float32", "transfers": {"precision": "float32"}},
    "transfers in bfloat16": {"compute_precision": "float32", "transfers": {"precision": "bfloat16"}},
    "transfers in float16": {"compute_precision": "float32", "transfers": {"precision": "float16"}},
    "dense layers in bfloat16": {"compute_precision": "bfloat16", "transfers": {"precision": "float32"}},
    "both in bfloat16": {"compute_precision": "bfloat16", "transfers": {"precision": "bfloat16"}},
}


def run(bench: Bench) -> list[Check]:
    """Train every side with every seed."""
    data = "clicks-small" if bench.quick else "clicks-large"
    seeds = 1 if bench.quick else SEEDS
    bench.plan(len(SIDES) * seeds)
    for seed in range(seeds):
        for side in SIDES:
            bench.repeat(f"{side} {seed}", functools.partial(_measure, side, data, seed))
    return [_check(bench.rows, side) for side in SIDES if side != EXACT]


def _measure(side: str, data: str, seed: int) -> Row:
    with trials.service() as api:
        counts = api.home.path / "counts"
        steps = ladder.AUC_EXAMPLES[data] // ladder.BATCH
        spec = rungs.spec(
            rungs.BEST, data, ladder.BATCH, counts, epochs=10, max_steps=steps, seed=seed, **SIDES[side]
        )
        run = trials.finish(api, spec)
        return {"side": side, "seed": seed, "auc": api.store.evaluations(run.name)[-1].auc}


def _check(rows: list[Row], side: str) -> Check:
    exact = {row["seed"]: row["auc"] for row in rows if row["side"] == EXACT}
    value, low, high = interval([row["auc"] - exact[row["seed"]] for row in rows if row["side"] == side])
    return Check(
        name=f"AUC of {side} over that of float32",
        value=value,
        low=low,
        high=high,
        target=f">= -{LIMIT:g}",
        holds=low >= -LIMIT,
    )


def draw(result: Result, path: Path) -> None:
    """Draw the AUC of each side."""
    groups = {side: [row["auc"] for row in result.rows if row["side"] == side] for side in SIDES}
    plots.strips(path, groups, label="AUC", title="AUC after one pass, by precision")
