"""The ladder: one model on one machine, from training as TensorFlow's documentation has it to all that
Paceline does.

Every rung is a real job with 2 PS and 2 workers. Beside them stand the limit, the same model in one process
without PS on the same cores, and `ParameterServerStrategy` with Keras as its tutorial has it. In each round
every side runs once, in another order; sides that a figure compares run one after the other, because the
machine drifts.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import plots, rungs, stepped, trials
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, interval
from paceline.model.imbalances import max_over_mean
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.measures.samples import Sample
from paceline.model.roles import Role

WARM_UP_SECONDS = 5.0
WINDOW_SECONDS = 10.0
AUC_EXAMPLES = {"clicks-large": 1_000_000, "clicks-small": 1_000_000, rungs.CENSUS: 260_000}
ROUNDS, LARGE_ROUNDS = 3, 7  # of the large batch there are two sides alone
BATCH, LARGE_BATCH = 512, 4096
#: Other settings of the large batch, of both sides: their steps are long enough for two to overlap.
LARGE_SETTINGS = {"steps_in_flight": 2}
MODELS = (*rungs.DATA, rungs.CENSUS)


class Side(NamedTuple):
    """What runs once in a round."""

    name: str
    data: str
    batch: int = BATCH

    @property
    def key(self) -> str:
        """Return its name in the rows."""
        return f"{self.data} {self.name}" + ("" if self.batch == BATCH else f" batch {self.batch}")


def run(bench: Bench) -> list[Check]:
    """Measure all sides of all models, round by round."""
    quick = [Side(side, "clicks-small") for side in (rungs.FIRST, rungs.BEST)]
    sides = quick if bench.quick else list(_sides())
    names = {name for name, _, _ in rungs.RUNGS}
    judged = [] if bench.quick else [each for each in sides if each.batch == BATCH]
    # One process has no PS to send to; the scripts of TensorFlow's documentation evaluate nothing.
    sending = [side for side in judged if side.name in {*names, rungs.DOCUMENTED, rungs.STRATEGY}]
    evaluating = [side for side in judged if side.name in {*names, rungs.LIMIT}]
    repeats = [(0, side) for side in quick] if bench.quick else list(_repeats(sides))
    bench.plan(len(repeats) + len(sending) + len(evaluating))
    for number, side in repeats:
        bench.repeat(f"{side.key} {number}", functools.partial(_speed, side))
    for side in sending:
        bench.repeat(f"{side.key} network", functools.partial(_network, side))
    for side in evaluating:
        bench.repeat(f"{side.key} AUC", functools.partial(_quality, side))
    return _checks(bench.rows) if not bench.quick else []


def _repeats(sides: Sequence[Side]) -> Iterator[tuple[int, Side]]:
    """Yield what runs after what, with the number of the round; compared sides stand together."""
    generator = random.Random(0)
    compared = (rungs.BEST, rungs.DOCUMENTED, rungs.STRATEGY, rungs.LIMIT)
    for number in range(LARGE_ROUNDS):
        groups: dict[tuple[str, int] | Side, list[Side]] = {}
        for side in sides:
            if number < ROUNDS or side.batch == LARGE_BATCH:
                key = (side.data, side.batch) if side.name in compared else side
                groups.setdefault(key, []).append(side)
        for group in generator.sample(list(groups.values()), len(groups)):
            yield from ((number, side) for side in generator.sample(group, len(group)))


def _sides() -> Iterator[Side]:
    for data in MODELS:
        for rung, _, _ in rungs.RUNGS:
            yield Side(rung, data)
        yield Side(rungs.DOCUMENTED, data)
        yield Side(rungs.LIMIT, data)
    for name in rungs.WITHOUT:
        yield Side(name, "clicks-large")
    yield Side(rungs.REFERENCES, "clicks-large")
    yield Side(rungs.STRATEGY, "clicks-large")
    for name in (rungs.BEST, rungs.LIMIT):
        yield Side(name, "clicks-large", LARGE_BATCH)


def _speed(side: Side) -> Row:
    """Return examples per second within a window of training, and what that took of the replicas."""
    window = _window(side)
    rate = stepped.rate(window.before, window.after)
    return {"side": side.key, "examples_per_second": rate, **_used(window.spec, window.samples)}


def _network(side: Side) -> Row:
    """Return what goes over the interfaces of the parameter servers; for that, hosts are emulated."""
    window = _window(side, hosts=(Host(name="host-0"), Host(name="host-1")))
    if window.moved is None:
        return {"side": side.key, "bytes_per_example": None, "ps_bytes_max_over_mean": None}
    pairs = zip(window.before, window.after, strict=True)
    return {
        "side": side.key,
        "bytes_per_example": sum(window.moved) / sum(last.examples - first.examples for first, last in pairs),
        "ps_bytes_max_over_mean": max_over_mean(window.moved),
    }


class Window(NamedTuple):
    """A window of a side's training: what its workers had counted before and after, the samples, and the
    bytes of each parameter server (None without emulated hosts).
    """

    spec: JobSpec
    before: list[stepped.Count]
    after: list[stepped.Count]
    samples: list[Sample]
    moved: list[int] | None


def _window(side: Side, hosts: tuple[Host, ...] = ()) -> Window:
    with trials.service() as api:
        counts = api.home.path / "counts"
        settings = LARGE_SETTINGS if side.batch == LARGE_BATCH else {}
        made = rungs.spec(side.name, side.data, side.batch, counts, epochs=10_000, **settings)
        # Ended at once: the last checkpoint is not needed.
        spec = dataclasses.replace(made, hosts=hosts, termination_grace_seconds=1.0)
        training = api.submit(spec, source="", base=ROOT)
        try:
            trials.wait_for_steps(api, training, counts)
            time.sleep(WARM_UP_SECONDS)
            since, before, sent = time.time(), stepped.read(counts), trials.server_bytes(training)
            until = since + WINDOW_SECONDS
            time.sleep(WINDOW_SECONDS)
            after = stepped.read(counts)
            while not all(last.at > first.at for first, last in zip(before, after, strict=True)):
                time.sleep(1.0)  # an epoch of the strategy may be longer than the window
                after, until = stepped.read(counts), time.time()
            moved = trials.moved(sent, trials.server_bytes(training))
        finally:
            api.stop(training.name)
            api.wait(training.name, timeout_seconds=120)
        samples = list(api.store.samples(training.name, since=since, until=until))
        return Window(spec, before, after, samples, moved)


def _used(spec: JobSpec, samples: Sequence[Sample]) -> dict[str, Any]:
    """Return what each replica used in the window, on average; None where nothing was measured."""
    found: dict[str, Any] = {"cpu_cores": {}, "involuntary_switches": {}, "voluntary_switches": {}}
    for replica in spec.replicas():
        own = [sample for sample in samples if sample.replica == replica]
        for name, means in found.items():
            values = [getattr(sample, name) for sample in own if getattr(sample, name) is not None]
            means[str(replica)] = statistics.fmean(values) if values else None
    loads = [found["cpu_cores"][str(one)] for one in spec.replicas() if one.role is Role.PS]
    measured = [load for load in loads if load is not None]
    found["ps_cpu_max_over_mean"] = max_over_mean(measured) if len(measured) == len(loads) else None
    return found


def _quality(side: Side) -> Row:
    """Return the AUC after the same number of examples on every rung."""
    with trials.service() as api:
        counts = api.home.path / "counts"
        steps = AUC_EXAMPLES[side.data] // side.batch
        spec = rungs.spec(side.name, side.data, side.batch, counts, epochs=10, max_steps=steps)
        training = trials.finish(api, spec)
        return {"side": side.key, "auc": api.store.evaluations(training.name)[-1].auc}


def _rates(rows: Sequence[Row], side: Side) -> list[float]:
    return [
        row["examples_per_second"] for row in rows if row["side"] == side.key and "examples_per_second" in row
    ]


def _gain(rows: Sequence[Row], side: Side, other: Side) -> tuple[float, float, float]:
    """Return how many times as fast as another one side is, round by round, with its interval."""
    return interval([a / b for a, b in zip(_rates(rows, side), _rates(rows, other), strict=True)])


def _ratio(rows: Sequence[Row], name: str, one: Side, other: Side, least: float) -> Check:
    """Return the check that one side is so many times as fast as another, round by round."""
    value, low, high = _gain(rows, one, other)
    return Check(name=name, value=value, low=low, high=high, target=f">= {least:g}", holds=low >= least)


def _checks(rows: Sequence[Row]) -> list[Check]:
    large, small, census = (Side(rungs.BEST, data) for data in MODELS)
    bigger = Side(rungs.BEST, "clicks-large", LARGE_BATCH)
    return [
        _ratio(rows, "clicks-large: over rung 0", large, Side(rungs.DOCUMENTED, large.data), 30),
        _ratio(rows, "clicks-large: over the TF2 strategy", large, Side(rungs.STRATEGY, large.data), 25),
        _ratio(rows, "clicks-small: over rung 0", small, Side(rungs.DOCUMENTED, small.data), 1.0),
        _ratio(rows, "Census: over rung 0", census, Side(rungs.DOCUMENTED, census.data), 1.0),
        _ratio(rows, "batch 512: over the limit", large, Side(rungs.LIMIT, large.data), 0.7),
        _ratio(rows, "batch 4,096: over the limit", bigger, Side(rungs.LIMIT, large.data, LARGE_BATCH), 0.9),
        _behind(rows, large.data, 0.002),
        *(_behind(rows, data, None) for data in MODELS if data != large.data),
    ]


def _behind(rows: Sequence[Row], data: str, most: float | None) -> Check:
    """Return how far the last rung's AUC is behind the best one; on Census, Adam's of rung 0 is the best."""
    aucs = {row["side"]: row["auc"] for row in rows if row.get("auc") is not None}
    mine = {side: auc for side, auc in aucs.items() if side.startswith(data)}
    behind = max(mine.values()) - mine[Side(rungs.BEST, data).key]
    name = f"{data}: AUC behind the best rung's"
    target = "whatever it is" if most is None else f"<= {most:g}"
    return Check(
        name=name, value=behind, low=None, high=None, target=target, holds=most is None or behind <= most
    )


def details(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table of what each side reached, and each rung over the one before."""
    lines = [
        "| side | examples/s | over the rung before | AUC | bytes/example | PS bytes, max/mean "
        "| cores of PS | cores of workers | involuntary switches/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = {name for name, *_ in rungs.RUNGS}
    before = None
    for side in _sides():
        own = [row for row in rows if row["side"] == side.key]
        rates = _rates(rows, side)
        if not rates:
            continue
        value, low, high = interval(rates)
        gain = "-"
        if before is not None and before[1:] == side[1:] and side.name in names:
            gain = "{:.2f} ({:.2f} to {:.2f})".format(*_gain(rows, side, before))
        cells = [
            side.key,
            f"{value:,.0f} ({low:,.0f} to {high:,.0f})",
            gain,
            _cell(own, "auc", "{:.4f}"),
            _cell(own, "bytes_per_example", "{:,.0f}"),
            _cell(own, "ps_bytes_max_over_mean", "{:.2f}"),
            _by_replica(own, "cpu_cores", "ps", "{:.2f}"),
            _by_replica(own, "cpu_cores", "worker", "{:.2f}"),
            _by_replica(own, "involuntary_switches", "", "{:,.0f}"),
        ]
        lines.append("| " + " | ".join(cells) + " |")
        before = side
    return lines


def _cell(rows: Sequence[Row], name: str, form: str) -> str:
    values = [row[name] for row in rows if row.get(name) is not None]
    return form.format(statistics.fmean(values)) if values else "not measured"


def _by_replica(rows: Sequence[Row], name: str, role: str, form: str) -> str:
    """Return the mean of each replica of a role over the repeats, one after the other."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for replica, value in row.get(name, {}).items():
            if replica.startswith(role) and value is not None:
                found.setdefault(replica, []).append(value)
    means = [form.format(statistics.fmean(found[replica])) for replica in sorted(found)]
    return " / ".join(means) if means else "not measured"


def draw(result: Result, path: Path) -> None:
    """Draw the rates of all sides."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        if "examples_per_second" in row:
            groups.setdefault(row["side"], []).append(row["examples_per_second"])
    plots.strips(path, dict(sorted(groups.items())), label="examples/s", title="The ladder")
