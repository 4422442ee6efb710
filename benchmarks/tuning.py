"""How soon the search finds a good layout, beside others, on a grid of layouts that were all measured.

The grid is that of the benchmark ``prediction``, whose rows are read: there is nothing to run here. Each way
begins with the same layout and asks for the speed of one after the other.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import optuna
from support.prerequisites import NotHere

from benchmarks import plots
from benchmarks.prediction import runs, variants
from benchmarks.prediction.variants import Variant
from benchmarks.protocols import Bench, Check, Result, Row, written_rows
from paceline.model.studies.tunings import Objective
from paceline.modelling import calibrations
from paceline.modelling.calibrations import MeasuredRun
from paceline.tuning import candidates
from paceline.tuning.candidates import Candidate
from paceline.tuning.shapes import JobShape

TRIALS, STARTS = 6, 20
#: Of the best of the grid.
REACHED, LEAST_LAYOUTS = 0.95, 100
PACELINE, RANDOM, OPTUNA, DLROVER = "Paceline", "random", "optuna (TPE)", "DLRover's rule"
#: DLRover adds workers while each brings a fifth of what those before brought, and calls a PS hot from 0.9 of
#: its CPU (`local_optimizer.py`).
_MARGINAL, _HOT = 0.2, 0.9

Grid = Mapping[Variant, MeasuredRun]
#: From the grid and the layout to begin with, all that it asked for, in order.
Way = Callable[[Grid, Variant, random.Random], list[Variant]]


def run(bench: Bench) -> list[Check]:
    """Search from several starts, each way."""
    grid = _grid()
    chance = random.Random(0)
    starts = chance.sample(sorted(grid, key=lambda each: each.name), 5 if bench.quick else STARTS)
    best = max(each.steps_per_second for each in grid.values())
    bench.plan(len(starts) * len(_WAYS))
    for number, start in enumerate(starts):
        for name, way in _WAYS.items():
            asked = way(grid, start, random.Random(number))[:TRIALS]
            shares = [grid[each].steps_per_second / best for each in asked]
            bench.repeat(
                f"{name}, {number}",
                lambda name=name, start=start, shares=shares: {  # type: ignore[misc]
                    "way": name, "start": start.name, "reached": _running_best(shares)
                },
            )  # fmt: skip
    return list(_checks(bench.rows, len(grid)))


def _grid() -> dict[Variant, MeasuredRun]:
    rows = written_rows("prediction")
    if not rows:
        raise NotHere("the layouts were not measured: python -m benchmarks prediction")
    known = {row["layout"]: runs.measured(row) for row in rows}
    return {each: known[each.name] for each in variants.grid() if each.name in known}


def _running_best(shares: Sequence[float]) -> list[float]:
    """Return the best share after each of so many trials; who stops early has what he has."""
    padded = [*shares, *[0.0] * (TRIALS - len(shares))]
    return [max(padded[: number + 1]) for number in range(TRIALS)]


def _paceline(grid: Grid, start: Variant, _: random.Random) -> list[Variant]:
    """Ask for what the model, calibrated from all that was asked for, says is the best of the others."""
    asked = [start]
    while len(asked) < TRIALS:
        costs = calibrations.calibrated([grid[each] for each in asked]).costs
        left = [each for each in grid if each not in asked]
        shapes = {_candidate(each, grid[each]): each for each in left}
        found = candidates.best(candidates.rated(shapes, costs, Objective()))
        if found is None:
            break
        asked.append(shapes[found.candidate])
    return asked


def _candidate(variant: Variant, measured: MeasuredRun) -> Candidate:
    return Candidate(
        shape=JobShape(
            servers=variant.servers,
            workers=variant.workers,
            server_cores=variant.server_cores,
            worker_cores=variant.worker_cores,
            even=not variant.whole,
        ),
        layout=measured.layout,
        cores=variant.workers * variant.worker_cores + variant.servers * variant.server_cores,
    )


def _random(grid: Grid, start: Variant, chance: random.Random) -> list[Variant]:
    others = sorted((each for each in grid if each != start), key=lambda each: each.name)
    return [start, *chance.sample(others, TRIALS - 1)]


def _optuna(grid: Grid, start: Variant, chance: random.Random) -> list[Variant]:
    """Ask as optuna does by itself; what is not in the grid, or known already, is no trial."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=chance.randrange(2**31))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    fields = ("workers", "servers", "worker_cores", "server_cores", "whole")
    choices = {name: sorted({getattr(each, name) for each in grid}) for name in fields}
    by_fields = {tuple(getattr(each, name) for name in fields): each for each in grid}
    study.enqueue_trial({name: getattr(start, name) for name in fields})
    asked: list[Variant] = []
    while len(asked) < TRIALS:
        trial = study.ask()
        wanted = tuple(trial.suggest_categorical(name, values) for name, values in choices.items())
        found = by_fields.get(wanted)
        if found is None:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            continue
        study.tell(trial, grid[found].steps_per_second)
        if found not in asked:
            asked.append(found)
    return asked


def _dlrover(grid: Grid, start: Variant, _: random.Random) -> list[Variant]:
    """Raise the CPU of hot servers, else add workers as long as each brings enough."""
    asked = [start]
    while len(asked) < TRIALS:
        now = asked[-1]
        measured = grid[now]
        used = max(measured.server_cores) / now.server_cores
        field = "server_cores" if used >= _HOT else "workers"
        larger = [
            each
            for each in grid
            if getattr(each, field) > getattr(now, field)
            and all(getattr(each, name) == getattr(now, name) for name in _DIMENSIONS if name != field)
        ]
        if not larger:
            break
        then = min(larger, key=lambda each: float(getattr(each, field)))
        asked.append(then)
        added = then.workers - now.workers
        brought = grid[then].steps_per_second - measured.steps_per_second
        if field == "workers" and brought / added < _MARGINAL * measured.steps_per_second / now.workers:
            break
    return asked


_DIMENSIONS = ("workers", "servers", "worker_cores", "server_cores", "whole")
_WAYS: Mapping[str, Way] = {PACELINE: _paceline, RANDOM: _random, OPTUNA: _optuna, DLROVER: _dlrover}


def _checks(rows: Sequence[Row], layouts: int) -> Iterator[Check]:
    yield Check(
        name="layouts that were measured", value=layouts, low=layouts, high=layouts,
        target=f">= {LEAST_LAYOUTS}", holds=layouts >= LEAST_LAYOUTS,
    )  # fmt: skip
    reached = {name: sorted(row["reached"][-1] for row in rows if row["way"] == name) for name in _WAYS}
    ours = statistics.median(reached[PACELINE])
    for name, shares in reached.items():
        median, low, high = statistics.median(shares), shares[0], shares[-1]
        holds = median >= REACHED if name == PACELINE else median < ours
        target = f">= {REACHED:g}" if name == PACELINE else f"< {ours:.3f}, which is {PACELINE}'s"
        yield Check(
            name=f"{name}: share of the best after {TRIALS} trials, median of {len(shares)} starts",
            value=median, low=low, high=high, target=target, holds=holds,
        )  # fmt: skip


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how far each way is after each trial."""
    yield "| trials | " + " | ".join(_WAYS) + " |"
    yield "| --- |" + " --- |" * len(_WAYS)
    for number in range(TRIALS):
        medians = (
            statistics.median(row["reached"][number] for row in rows if row["way"] == name) for name in _WAYS
        )
        yield f"| {number + 1} | " + " | ".join(f"{each:.2f}" for each in medians) + " |"


def draw(result: Result, path: Path) -> None:
    """Draw how far each way is after all trials."""
    groups = {name: [row["reached"][-1] for row in result.rows if row["way"] == name] for name in _WAYS}
    plots.strips(path, groups, label="share of the best", title=f"The best layout found in {TRIALS} trials")
