"""Traces: what the default schedule costs, and whether a trace's bytes are those that the kernel counts.

Cost: one training job, windows in pairs in random order. In one of a pair every worker takes and writes one
trace, in the other none. The schedule takes a trace in each of its intervals, so what such a window loses
counts for its part of an interval.

Bytes: rung 2 of the ladder on emulated hosts, where each replica has an interface of its own. The giant
table is the largest variable; the plan gives it its PS. What the traces say of that PS
is compared with what the kernel counted on its interface over the same seconds, frames and all.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from support import kills

from benchmarks import agent_cost, plots, rungs, stepped, trials
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, at_least, at_most
from paceline import specs
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId
from paceline.model.traces import trace_summaries
from paceline.model.traces.traced_steps import Trace, name_at
from paceline.services import variable_plans
from paceline.services.local import jobs
from paceline.services.observing import traces
from paceline.sources import traces as sources

WORKERS = 2
EVERY_SECONDS = 60.0
WINDOW_SECONDS = 2.0
WARM_UP_SECONDS = 10.0
PAIRS_PER_REPEAT = 5
COUNT_SECONDS = 12.0
TRACES_PER_REPEAT = 4
BATCH = 512
COST_LIMIT = 0.01
BYTES_LIMIT = 0.1
_RUNG = "2 fused table"


def run(bench: Bench) -> list[Check]:
    """Measure the cost, then the bytes."""
    costs, comparisons = (3, 1) if bench.quick else (30, 10)
    bench.plan(costs + comparisons)
    _measure_cost(bench, costs)
    for number in range(comparisons):
        bench.repeat(f"bytes {number}", functools.partial(_bytes, quick=bench.quick))
    counted = [row for row in bench.rows if "traced_bytes" in row]
    apart = [abs(row["traced_bytes"] / row["kernel_bytes"] - 1) for row in counted]
    return [
        at_most("throughput that the schedule costs, per CPU second", _losses(bench.rows, "cpu"), COST_LIMIT),
        at_most("throughput that the schedule costs, by the clock", _losses(bench.rows, "clock"), COST_LIMIT),
        at_least("rung 2: the giant table and its PS are named", [row["named"] for row in counted], 1),
        at_most("rung 2: bytes apart from the kernel's, on its PS", apart, BYTES_LIMIT),
    ]


def _measure_cost(bench: Bench, repeats: int) -> None:
    data = trials.clicks_data("clicks-quick")
    generator = random.Random(0)
    with trials.service() as api:
        counts = api.home.path / "counts"
        spec = trials.counted(
            "clicks", counts, "--data", str(data), epochs=10_000, trace={"every_seconds": 0}
        )
        training = api.submit(spec, source="", base=ROOT)
        job = agent_cost.Job(training, counts)
        try:
            job.wait_for_training(api)
            time.sleep(WARM_UP_SECONDS)
            for number in range(repeats):
                orders = [generator.choice([(True, False), (False, True)]) for _ in range(PAIRS_PER_REPEAT)]
                bench.repeat(f"cost {number}", functools.partial(_cost, api, job, orders))
        finally:
            api.stop(training.name)
            api.wait(training.name, timeout_seconds=120)


def _cost(api: jobs.Jobs, job: agent_cost.Job, orders: Sequence[tuple[bool, bool]]) -> Row:
    """Return throughput in windows with a trace and without, the means of pairs."""
    windows: dict[bool, list[agent_cost.Window]] = {True: [], False: []}
    taken: list[Trace] = []
    for order in orders:
        for tracing in order:
            if tracing:
                name = name_at(api.clock())
                with api.trace_site(job.run).asked(name):
                    windows[True].append(job.window(WINDOW_SECONDS))
                taken += sources.read(Path(job.run.directory), name).traces
            else:
                windows[False].append(job.window(WINDOW_SECONDS))

    row: Row = {"traces_per_window": len(taken) / WORKERS / len(orders)}
    for side, chosen in (("tracing", windows[True]), ("plain", windows[False])):
        row[f"{side}_by_clock"] = statistics.fmean(window.examples_per_second for window in chosen)
        row[f"{side}_by_cpu"] = statistics.fmean(window.examples_per_cpu_second for window in chosen)
    return row


def _losses(rows: Sequence[Row], by: str) -> list[float]:
    return [
        (1 - row[f"tracing_by_{by}"] / row[f"plain_by_{by}"])
        * (WINDOW_SECONDS / EVERY_SECONDS / row["traces_per_window"])
        for row in rows
        if f"plain_by_{by}" in row
    ]


def _bytes(*, quick: bool) -> Row:
    """Return the bytes of a step on the PS of the giant table: as traced, and as the kernel counted."""
    with trials.service() as api:
        counts = api.home.path / "counts"
        spec = rungs.spec(_RUNG, "clicks-small" if quick else "clicks-large", BATCH, counts, epochs=10_000)
        spec = dataclasses.replace(spec, hosts=(Host(name="a"), Host(name="b")))
        training = api.submit(spec, source="", base=ROOT)
        try:
            trials.wait_for_steps(api, training, counts)
            time.sleep(WARM_UP_SECONDS)
            giant, server = _giant(spec, training)
            found = _taken(api, training)
            since, before = time.time(), stepped.read(counts)
            time.sleep(COUNT_SECONDS)
            until, after = time.time(), stepped.read(counts)
            found += _taken(api, training)
            samples = _samples(api, training, server, since, until)
        finally:
            api.stop(training.name)
            api.wait(training.name, timeout_seconds=120)
    examples = sum(last.examples - first.examples for first, last in zip(before, after, strict=True))
    kernel = _moved(samples, since, until) / (examples / BATCH)
    return {
        "giant": giant,
        "server": server,
        "named": float(_costliest(found) == (giant, server)),
        "traced_bytes": statistics.fmean(_on(server, [trace]) for trace in found),
        "kernel_bytes": kernel,
    }


def _taken(api: jobs.Jobs, training: Run) -> list[Trace]:
    """Return traces taken now; not while bytes are counted, since what is traced is sent as well."""
    readings = [traces.take(api, training.name, timeout_seconds=60) for _ in range(TRACES_PER_REPEAT // 2)]
    return [trace for reading in readings for trace in reading.traces]


def _samples(api: jobs.Jobs, training: Run, server: str, since: float, until: float) -> list[Sample]:
    """Return the samples of a PS, once the last of them within a time is stored."""

    def stored() -> list[Sample] | None:
        found = api.store.samples(training.name, replica=ReplicaId.parse(server), since=since)
        return found if found and found[-1].at >= until else None

    return kills.until(stored)


def _moved(samples: Sequence[Sample], since: float, until: float) -> float:
    """Return the bytes in and out within a time; a sample that it cuts counts by the part within."""
    total = 0.0
    for sample in samples:
        if sample.network_received_bytes is None or sample.network_sent_bytes is None:
            raise RuntimeError("the kernel's counters are not there: this benchmark needs root")
        moved = sample.network_received_bytes + sample.network_sent_bytes
        total += moved * trials.share_within(sample, since, until)
    return total


def _giant(spec: JobSpec, training: Run) -> tuple[str, str]:
    """Return the largest variable and the PS that it lies on."""
    variables = specs.load_variables(str(Path(training.directory) / "variables.json"))
    plan = variable_plans.alternatives(spec, variables)[0].plan
    if plan is None:
        raise RuntimeError("the job's variables cannot be planned")
    shard = max(plan.shards, key=lambda shard: shard.memory_bytes)
    return shard.variable.name, f"ps-{shard.server}"


def _costliest(found: Sequence[Trace]) -> tuple[str | None, str]:
    """Return the variable that takes most of a PS's time, and that PS."""
    totals: dict[tuple[str | None, str], float] = {}
    for row in trace_summaries.server_time(found):
        if row.variable is not None:
            key = row.variable, row.server
            totals[key] = totals.get(key, 0.0) + row.microseconds
    return max(totals, key=lambda key: totals[key])


def _on(server: str, found: Sequence[Trace]) -> float:
    return sum(row.bytes or 0 for row in trace_summaries.traffic(found) if row.server == server)


def draw(result: Result, path: Path) -> None:
    """Draw the loss of each repeat."""
    groups = {
        "per CPU second": [100 * loss for loss in _losses(result.rows, "cpu")],
        "by the clock": [100 * loss for loss in _losses(result.rows, "clock")],
    }
    title = "Throughput lost to the default schedule of traces, by repeat (dashed: the limit of the mean)"
    plots.strips(path, groups, label="%", title=title, limits=dict.fromkeys(groups, 100 * COST_LIMIT))
