"""How evenly traffic lies over the parameter servers at rung 6, for ids that are more and more skewed.

Foretold: by the plan, from the rows that the chief counted in its first batches. Measured: by the kernel,
which counts the bytes of each parameter server's own interface in an emulated network, all read at the same
moments of a real run.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import plots, rungs, trials
from benchmarks.protocols import KEPT, ROOT, Bench, Check, Result, Row
from paceline import specs
from paceline.examples.clicks import generate
from paceline.model.imbalances import max_over_mean
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.roles import Role
from paceline.services import variable_plans

LIMIT = 1.10
SERVERS = (2, 4, 8)
EXPONENTS = (1.05, 1.2, 1.5)
BATCH = 512
ROUNDS = 2
WARM_UP_SECONDS = 3.0
WINDOW_SECONDS = 15.0
ROWS = 100_000


def run(bench: Bench) -> list[Check]:
    """Measure every number of servers with every exponent."""
    sides = [(servers, exponent) for servers in SERVERS for exponent in EXPONENTS]
    sides = [(2, 1.05), (4, 1.5)] if bench.quick else sides
    rounds = 1 if bench.quick else ROUNDS
    bench.plan(rounds * len(sides))
    for number in range(rounds):
        for servers, exponent in sides:
            key = f"{servers} PS, exponent {exponent:g}, {number}"
            bench.repeat(key, functools.partial(_measure, servers, exponent))
    return [
        _check("measured by the kernel", bench.rows, "measured"),
        _check("foretold by the plan", bench.rows, "foretold"),
    ]


def _check(name: str, rows: Sequence[Row], kind: str) -> Check:
    values = [row[kind] for row in rows]
    return Check(
        name=f"max/mean of traffic over PS, {name}",
        value=max(values),
        low=min(values),
        high=max(values),
        target=f"<= {LIMIT:.2f} in every run",
        holds=max(values) <= LIMIT,
    )


def _measure(servers: int, exponent: float) -> Row:
    """Return the bytes of each server's interface in a window of training, and what the plan says."""
    with trials.service() as api:
        counts = api.home.path / "counts"
        training = api.submit(_spec(servers, exponent, counts), source="", base=ROOT)
        try:
            trials.wait_for_steps(api, training, counts)
            time.sleep(WARM_UP_SECONDS)
            before = trials.server_bytes(training)
            time.sleep(WINDOW_SECONDS)
            moved = trials.moved(before, trials.server_bytes(training))
            if moved is None:
                raise RuntimeError("this benchmark needs emulated hosts, so root")
            foretold = _foretold(training)
        finally:
            api.stop(training.name)
            api.wait(training.name, timeout_seconds=120)
        return {
            "servers": servers,
            "exponent": exponent,
            "bytes": moved,
            "measured": max_over_mean(moved),
            "foretold": foretold,
        }


def _spec(servers: int, exponent: float, counts: Path) -> JobSpec:
    data = KEPT / f"clicks-zipf-{exponent:g}"
    large = rungs.DATA["clicks-large"]
    generate.generate(
        data, dataclasses.replace(large, train_rows=ROWS, evaluation_rows=10_000, zipf=exponent)
    )
    made = rungs.job(
        rungs.BEST, "clicks", data, BATCH, counts, epochs=10_000, checkpoint={"every_seconds": 100_000}
    )
    roles = tuple(
        dataclasses.replace(role, replicas=servers) if role.role is Role.PS else role for role in made.roles
    )
    hosts = (Host(name="host-0"), Host(name="host-1"))
    # Ended at once: the last checkpoint is not needed.
    return dataclasses.replace(made, roles=roles, hosts=hosts, termination_grace_seconds=1.0)


def _foretold(training: Run) -> float | None:
    measured = specs.load_variables(Path(training.directory) / "variables.json")
    made = variable_plans.alternatives(training.spec, measured)[0].plan
    return None if made is None else made.traffic_imbalance()


def draw(result: Result, path: Path) -> None:
    """Draw what was measured for each number of servers."""
    groups = {
        f"{servers} PS": [row["measured"] for row in result.rows if row["servers"] == servers]
        for servers in sorted({row["servers"] for row in result.rows})
    }
    title = "Traffic over PS, ids of Zipf exponents 1.05 to 1.5 (dashed: the limit)"
    plots.strips(path, groups, label="max/mean", title=title, limits=dict.fromkeys(groups, LIMIT))
