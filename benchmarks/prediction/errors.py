"""How far what is foretold is from what is measured, beside what published models make of the same runs."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from support.prerequisites import NotHere

from benchmarks import plots
from benchmarks.prediction import published, runs, variants
from benchmarks.protocols import Bench, Check, Result, Row
from paceline.engines.local import machines
from paceline.modelling import calibrations, predictions
from paceline.modelling.calibrations import MeasuredRun

MEDIAN, NINETIETH, BINDS, OF_PUBLISHED = 0.10, 0.25, 0.9, 0.5
PACELINE, OPTIMUS, DLROVER = "Paceline", "Optimus", "DLRover-RM"
#: Of the layouts that are learnt from.
ROUNDS = 4
#: A bound that is used so far binds, whatever is foretold of others that are used as far within a tenth.
_BINDING = 0.9


def run(bench: Bench) -> list[Check]:
    """Run every layout, and judge; with ``--quick`` a few."""
    if machines.read().lacks_namespaces:
        raise NotHere("this benchmark needs emulated hosts, so root")
    rounds, most = (2, 2) if bench.quick else (ROUNDS, None)
    planned = list(variants.planned(rounds=rounds, most=most))
    bench.plan(len(planned))
    for key, variant in planned:
        bench.repeat(key, functools.partial(runs.measure, variant))
    return list(_checks(bench.rows))


def told(rows: Sequence[Row]) -> dict[str, list[tuple[MeasuredRun, float, str | None]]]:
    """Return by model each run that it did not learn from, the speed that it tells, and what binds."""
    learnt = [runs.measured(row) for row in rows if row["learnt"]]
    others = [runs.measured(row) for row in rows if not row["learnt"]]
    costs = calibrations.calibrated(learnt).costs
    made: dict[str, list[tuple[MeasuredRun, float, str | None]]] = {PACELINE: []}
    for each in others:
        speed = predictions.speed(each.layout, costs)
        made[PACELINE].append((each, speed.steps_per_second, speed.binds))
    for name, terms in ((OPTIMUS, published.optimus), (DLROVER, published.dlrover_rm)):
        made[name] = [(each, published.steps_per_second(terms, learnt, each.layout), None) for each in others]
    return made


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    made = told(rows)
    errors = {
        name: [abs(speed / each.steps_per_second - 1) for each, speed, _ in own] for name, own in made.items()
    }
    count = len(errors[PACELINE])
    yield Check(
        name="layouts foretold", value=count, low=count, high=count, target=">= 57", holds=count >= 57
    )
    yield _spread(rows)
    for name, own in errors.items():
        yield quantile(f"{name}: median error", own, 0.5, MEDIAN if name == PACELINE else None)
        yield quantile(f"{name}: 90th percentile", own, 0.9, NINETIETH if name == PACELINE else None)
    best = min(statistics.median(errors[name]) for name in (OPTIMUS, DLROVER))
    ratio = statistics.median(errors[PACELINE]) / best
    yield Check(
        name="median error over that of the better published model", value=ratio, low=None, high=None,
        target=f"<= {OF_PUBLISHED:g}", holds=ratio <= OF_PUBLISHED,
    )  # fmt: skip
    right = [_binds(each, binds) for each, _, binds in made[PACELINE]]
    known = [each for each in right if each is not None]
    share = sum(known) / len(known) if known else None
    yield Check(
        name="what binds is right", value=share, low=None, high=None,
        target=f">= {BINDS:g}", holds=share is not None and share >= BINDS,
    )  # fmt: skip


def _spread(rows: Sequence[Row]) -> Check:
    """Return by how much runs of one layout differ: no model can be nearer to a single run than that."""
    runs_of: dict[str, list[float]] = {}
    for row in rows:
        if row["learnt"]:
            runs_of.setdefault(row["layout"], []).append(math.log(runs.measured(row).steps_per_second))
    spreads = [statistics.stdev(each) for each in runs_of.values()]
    return Check(
        name="standard deviation of runs of one layout, as share", value=statistics.mean(spreads),
        low=min(spreads), high=max(spreads), target="reported", holds=True,
    )  # fmt: skip


def quantile(name: str, errors: Sequence[float], at: float, limit: float | None) -> Check:
    """Return a quantile of errors with its 95 % bootstrap interval (Efron 1979)."""
    data = np.array(errors)
    picks = np.random.default_rng(0).integers(0, len(data), size=(2000, len(data)))
    low, high = np.percentile(np.quantile(data[picks], at, axis=1), [2.5, 97.5])
    value = float(np.quantile(data, at))
    return Check(
        name=name, value=value, low=float(low), high=float(high),
        target="reported" if limit is None else f"<= {limit:g}", holds=limit is None or value <= limit,
    )  # fmt: skip


def _binds(run: MeasuredRun, told: str | None) -> bool | None:
    """Return whether what is told to bind is used up in truth; None: nothing that was measured is."""
    used = {
        f"cores of ps-{index}": cores / (server.cores or np.inf)
        for index, (server, cores) in enumerate(zip(run.layout.servers, run.server_cores, strict=True))
    }
    limits = [(each.cores or np.inf) * each.count for each in run.layout.trainers]
    used["trainers"] = run.trainer_cores / sum(limits)
    for host in run.layout.hosts:
        moved = sum(each.step_bytes for each in run.layout.servers if each.host == host.name)
        if moved and host.bandwidth_bits_per_second:
            used[f"link from {host.name}"] = 4 * moved * run.steps_per_second / host.bandwidth_bits_per_second
    if run.layout.machine_cores:
        used["this machine"] = (run.trainer_cores + sum(run.server_cores)) / run.layout.machine_cores
    most = max(used.values())
    if told is None or most < 0.75:
        return None
    name = "trainers" if told.startswith("cores of trainers") else told.replace("link to", "link from")
    return used.get(name, 0.0) >= _BINDING * most


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was told of each layout."""
    yield "| layout | steps/s | told | error | binds, as told |\n| --- | --- | --- | --- | --- |"
    names = [row["layout"] for row in rows if not row["learnt"]]
    for name, (each, speed, binds) in zip(names, told(rows)[PACELINE], strict=True):
        error = speed / each.steps_per_second - 1
        yield f"| {name} | {each.steps_per_second:.1f} | {speed:.1f} | {error:+.0%} | {binds} |"


def draw(result: Result, path: Path) -> None:
    """Draw the errors of each model."""
    made = told(result.rows)
    groups = {
        name: [abs(speed / each.steps_per_second - 1) for each, speed, _ in own] for name, own in made.items()
    }
    plots.strips(path, groups, label="error of examples/s", title="Layouts foretold from three runs")
