"""How well changes are foretold of unchanged scripts: their shape, and cures.

A pair is two runs of one script, one after the other: as it is, and with a change. What the first shows is
all that the prediction has; how many times as fast the second is, is the truth. Starting is not limited, so
that small servers do not take minutes for it; limits hold while it is measured. A pair takes about two and a
half minutes, all of them three hours; those that are done are kept.

A change of which the model says that it cannot tell is counted, and no pair is run of it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from support import interpreters
from support.prerequisites import NotHere
from support.styles import STYLES

from benchmarks import plots
from benchmarks.prediction import errors, runs
from benchmarks.protocols import Bench, Check, Result, Row
from paceline import specs
from paceline.diagnosing.cases import Case
from paceline.engines.local import machines
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures import rates
from paceline.model.measures.recordings import Recording
from paceline.modelling import forecasts
from paceline.services.studying import predictions
from paceline.specs.edits import edits

MEDIAN, HOLDS, LEAST_PAIRS = 0.10, 0.85, 60
_VERSIONS = ("1.15.5", "2.15.1")
_QUICK = 1
_YAML = "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: prediction}\n"
_SIZE = {"ps": {"replicas": 2, "cpu": "200m"}, "worker": {"replicas": 2, "cpu": "300m"}}


def _shape(role: str, field: str, value: Any) -> FieldChange:
    return FieldChange(path=("spec", "roles", role, field), value=value)


def _training(*path: str, value: Any) -> FieldChange:
    return FieldChange(path=("spec", "training", *path), value=value)


#: By a name, what is changed; as many replicas as two cores can carry.
_SHAPES: Mapping[str, tuple[FieldChange, ...]] = {
    "1 PS": (_shape("ps", "replicas", 1),),
    "3 PS": (_shape("ps", "replicas", 3),),
    "1 worker": (_shape("worker", "replicas", 1),),
    "3 workers": (_shape("worker", "replicas", 3),),
    "half the cores of PS": (_shape("ps", "cpu", "100m"),),
    "twice the cores of PS": (_shape("ps", "cpu", "400m"),),
    "half the cores of workers": (_shape("worker", "cpu", "150m"),),
    "1.5 times the cores of workers": (_shape("worker", "cpu", "450m"),),
    "4 small workers": (_shape("worker", "replicas", 4), _shape("worker", "cpu", "150m")),
}
_UNIQUE = (_training("unique_ids", value=True),)
_GREEDY = (_training("variable_placement", value="greedy"),)
_FIXED = (_training("partitioning", "strategy", value="fixed"),)
_LAZY = (_training("optimizer", "name", value="lazy-adam"),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """An unchanged script, as a base.

    Attributes:
        style: its name in `support.styles`.
        arguments: more of its command; the last one counts where its style has the same.
        cures: that fit it, by a name.
    """

    style: str
    arguments: tuple[str, ...] = ()
    cures: Mapping[str, tuple[FieldChange, ...]]

    @property
    def changes(self) -> dict[str, tuple[FieldChange, ...]]:
        """Return all changes, by a name."""
        return {**_SHAPES, **self.cures}

    def job(self, python: str) -> JobSpec:
        """Return the job as it is."""
        style = STYLES[self.style]
        spec = {
            "command": [python, style.path, *style.arguments, *self.arguments],
            "environment": {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"},
            "roles": {role: {**size, "memory": "2Gi"} for role, size in _SIZE.items()},
            "hosts": [{"name": "a"}, {"name": "b"}],
        }
        return specs.parse_job(_YAML + yaml.safe_dump({"spec": spec})).spec


SCRIPTS = (
    Script(
        style="monitored", arguments=("--width=128",),
        cures={
            "lazy-adam": _LAZY, "partitioning": _FIXED, "greedy": _GREEDY, "unique-ids": _UNIQUE,
            "lazy-adam, 3 PS": (*_LAZY, _shape("ps", "replicas", 3)),
        },
    ),
    Script(style="supervisor", cures={"greedy": _GREEDY, "unique-ids": _UNIQUE}),
    Script(style="dataset", cures={"greedy": _GREEDY, "unique-ids": _UNIQUE}),
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A change of a script with a TensorFlow."""

    script: Script
    version: str
    change: str

    @property
    def key(self) -> str:
        """Return what names it among all."""
        return f"{self.script.style} {self.version}: {self.change}"


def planned() -> tuple[Pair, ...]:
    """Return all pairs, in turn of each script and version: a run that is cut off has some of each."""
    cells = [
        [Pair(script=script, version=version, change=change) for change in script.changes]
        for script in SCRIPTS
        for version in _VERSIONS
    ]
    most = max(map(len, cells))
    return tuple(cell[place] for place in range(most) for cell in cells if place < len(cell))


def run(bench: Bench) -> list[Check]:
    """Run every pair, and judge; with ``--quick`` one."""
    if machines.read().lacks_namespaces:
        raise NotHere("this benchmark needs emulated hosts, so root")
    pairs = [each for each in planned() if interpreters.with_tensorflow(each.version) is not None]
    if not pairs:
        raise NotHere("no TensorFlow is fetched: tests/instrumentation/fetch-tensorflows has them")
    pairs = pairs[: _QUICK if bench.quick else None]
    bench.plan(len(pairs))
    for each in pairs:
        bench.repeat(each.key, functools.partial(_measured, each))
    return list(checks(bench.rows))


def _measured(pair: Pair) -> Row:
    """Run a pair; return what was foretold and what came."""
    before = pair.script.job(str(interpreters.with_tensorflow(pair.version)))
    source = specs.dump_job(before)
    changes = pair.script.changes[pair.change]
    after = specs.parse_job(edits.edited(source, changes)).spec
    row: Row = {"script": pair.script.style, "version": pair.version, "change": pair.change}
    model = predictions.model(runs.recorded(before))
    try:
        told = predictions.forecast(model, changes)
    except InvalidInput as error:
        return {**row, "refused": str(error)}
    rate = _examples_per_second(runs.recorded(after))
    return {
        **row, "refused": None, "times": told.times, "low": told.low, "high": told.high,
        "came": rate / told.examples_per_second, "before": told.examples_per_second,
        "binds": told.now.binds, "then_binds": told.then.binds,
    }  # fmt: skip


def _examples_per_second(recording: Recording) -> float:
    total = rates.total(each.examples_per_second for each in Case.of(recording).active_trainers)
    if not total:
        raise RuntimeError(f"{recording.run.name} made no steps")
    return total


def checks(rows: Sequence[Row]) -> Iterator[Check]:
    """Yield the checks of all pairs."""
    pairs = [row for row in rows if row["refused"] is None]
    count = len(pairs)
    yield Check(
        name="changes foretold", value=count, low=None, high=None,
        target=f">= {LEAST_PAIRS}", holds=count >= LEAST_PAIRS,
    )  # fmt: skip
    refused = len(rows) - count
    yield Check(
        name="changes of which it says that it cannot tell", value=refused, low=None, high=None,
        target="reported", holds=True,
    )  # fmt: skip
    if not pairs:
        return
    yield errors.quantile("median error", [error(row) for row in pairs], 0.5, MEDIAN)
    share = sum(row["low"] <= row["came"] <= row["high"] for row in pairs) / count
    yield Check(
        name=f"what came lies in the interval of {forecasts.CONFIDENCE:.0%}",
        value=share, low=None, high=None,
        target=f">= {HOLDS:g}", holds=share >= HOLDS,
    )  # fmt: skip


def error(row: Row) -> float:
    """Return how far what was foretold is from what came, as a share of that."""
    return abs(float(row["times"]) / float(row["came"]) - 1)


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was told of each change, and what came."""
    yield "| script | TensorFlow | change | told | came | error | bound before |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        head = f"| {row['script']} | {row['version']} | {row['change']} |"
        if row["refused"] is not None:
            yield f"{head} - | - | - | {row['refused']} |"
        else:
            told = f"{row['times']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
            miss = row["times"] / row["came"] - 1
            yield f"{head} {told} | {row['came']:.2f} | {miss:+.0%} | {row['binds']} |"


def draw(result: Result, path: Path) -> None:
    """Draw the errors of each script."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        if row["refused"] is None:
            groups.setdefault(f"{row['script']} {row['version']}", []).append(100 * error(row))
    plots.strips(path, groups, label="% of error", title="Changes of unchanged scripts, foretold")
