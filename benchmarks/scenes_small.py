"""The study of where to put parameter servers, replayed on emulated hosts, with its open question answered.

A big table lies whole on one PS, as TensorFlow places it, and each PS has ten light workers. Scene 1 puts one
PS and its workers on each host, scene 2 PS and workers on separate ones. Paceline is asked why it is no
faster, and the job file is changed as it says: that is the cured side. All three are up in turn, and again.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.prerequisites import NotHere

from benchmarks import plots, stepped, trials
from benchmarks.diagnosis import trials as starts
from benchmarks.diagnosis.sites import Site
from benchmarks.protocols import KEPT, ROOT, Bench, Check, Result, Row, interval, none
from paceline import specs
from paceline.engines.local import machines
from paceline.examples.clicks import generate
from paceline.model.explanations.causes import Cause, FieldChange
from paceline.model.jobs.runs import Run
from paceline.services.local import jobs
from paceline.services.observing import recordings
from paceline.specs.edits import edits

#: The workers of each server, by how many servers there are: 55 processes take more memory than 24 GiB.
WORKERS_PER_SERVER = {2: 10, 3: 10, 4: 10, 5: 8}
REPEATS = 2
TOGETHER, APART, CURED = "scene 1: together", "scene 2: apart", "as Paceline says"
#: Cores of all PS, and of all workers, together: the machine has two.
SERVER_CORES, WORKER_CORES = 0.3, 1.5
#: Long enough that each worker has made many steps, and longer than the window of a diagnosis.
SETTLE_SECONDS, WINDOW_SECONDS = 10.0, 35.0
#: So many processes start slowly on two cores.
PATIENCE_SECONDS = 600.0
#: No epoch ends meanwhile: shards are taken in turn then, which is not what is compared.
DATA = generate.Parameters(
    train_rows=2_000_000, evaluation_rows=10_000, tables=(200_000, *generate.TABLES[3:])
)

_JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata:
  name: scenes
spec:
  working_dir: {root}
  command: [{python}, -m, benchmarks.stepped, {counts}, clicks, --data, {data}]
  termination_grace: 2s   # the last checkpoint is not needed
  placement: {{strategy: {strategy}}}
  hosts: [{hosts}]
  roles:
    ps: {{replicas: {servers}, cpu: {server_cpu}m, threads: 1}}
    worker: {{replicas: {workers}, cpu: {worker_cpu}m, threads: 1}}
  training:
    optimizer: {{name: adagrad, learning_rate: 0.05}}
    wide_optimizer: {{name: ftrl, learning_rate: 0.3}}
    batch_size: 256
    embedding_dimension: 128
    hidden_units: [16]
    epochs: 10000
    # As TensorFlow does it by itself: every variable whole, one after the other.
    partitioning: {{strategy: none}}
    variable_placement: round-robin
    trace: {{every_seconds: 15, steps: 3}}
    checkpoint: {{every_seconds: 100000}}
"""


def run(bench: Bench) -> list[Check]:
    """Run all sides for each number of servers, in turn."""
    if machines.read().lacks_namespaces:
        raise NotHere("this benchmark needs emulated hosts, so root")
    servers, repeats = ((2,), 1) if bench.quick else (tuple(WORKERS_PER_SERVER), REPEATS)
    bench.plan(len(servers) * repeats * 3)
    for number in range(repeats):
        for count in servers:
            _round(bench, count, number)
    return list(_checks(bench.rows))


def _round(bench: Bench, servers: int, number: int) -> None:
    """Run both scenes, each first in turn, and then the first one with the changes that were found in it."""
    key = f"{servers} PS, {{}}, {number}"
    scenes = (TOGETHER, APART) if number % 2 == 0 else (APART, TOGETHER)
    found = {
        side: bench.repeat(key.format(side), functools.partial(measure, side, servers, ())) for side in scenes
    }
    first = found[TOGETHER]
    changes = [FieldChange(path=tuple(each["path"]), value=each["value"]) for each in first["changes"]]
    bench.repeat(key.format(CURED), functools.partial(measure, CURED, servers, changes))


def job_source(side: str, servers: int, counts: Path) -> str:
    """Return the job file of a side; its workers count their examples in a folder."""
    data = KEPT / "clicks-scenes"
    generate.generate(data, DATA)
    if side == APART:
        names = [f"{kind}-{number}" for kind in ("ps", "worker") for number in range(servers)]
    else:
        names = [f"both-{number}" for number in range(servers)]
    # Each replica has cores of its own, so that a scene differs from the other in nothing but the network.
    workers = servers * WORKERS_PER_SERVER[servers]
    return _JOB.format(
        root=ROOT,
        python=trials.example("clicks").command[0],
        counts=counts,
        data=data,
        strategy="isolate" if side == APART else "colocate",
        hosts=", ".join(f"{{name: {name}, bandwidth: 1G}}" for name in names),
        servers=servers,
        server_cpu=round(1000 * SERVER_CORES / servers),
        workers=workers,
        worker_cpu=round(1000 * WORKER_CORES / workers),
    )


def measure(side: str, servers: int, changes: Sequence[FieldChange]) -> Mapping[str, Any]:
    """Return the speed of a side, the load of its servers, and what Paceline says of it while it runs."""
    with trials.service() as api:
        counts = api.home.path / "counts"
        source = edits.edited(job_source(side, servers, counts), changes)
        spec = specs.parse_job(source).spec
        training = api.submit(spec, source=source, base=ROOT)
        try:
            # Fifty processes that start with their quotas alone take longer than all that is measured.
            site = Site.of(api, training)
            starts.wait_for_steps(site, None, patience_seconds=PATIENCE_SECONDS)
            site.limit()
            time.sleep(SETTLE_SECONDS)
            before = stepped.read(counts)
            time.sleep(WINDOW_SECONDS)
            speed = stepped.rate(before, stepped.read(counts))
            said = _said(api, training)
        finally:
            api.stop(training.name)
            api.wait(training.name, timeout_seconds=300)
    return {"side": side, "servers": servers, "examples_per_second": speed, **said}


def _said(api: jobs.Jobs, training: Run) -> dict[str, Any]:
    _, answer = recordings.explain(api, training.name)
    primary = answer.causes[0] if answer.causes else Cause(name="", what="")
    loads = {
        str(each.replica): each.cpu_cores for each in api.snapshot(training.name).replicas if each.cpu_cores
    }
    return {
        "primary": primary.name,
        "what": primary.what,
        "subjects": list(primary.subjects),
        "says_placement_is_no_matter": any(
            "placed makes no difference" in each.text for each in primary.evidence
        ),
        "changes": [{"path": list(each.path), "value": each.value} for each in primary.changes],
        "gain": None if primary.gain is None else [primary.gain.low, primary.gain.high],
        "server_cores": [loads[name] for name in sorted(loads) if name.startswith("ps")],
    }


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    sick = [row for row in rows if row["side"] != CURED]
    yield none("runs of either scene in which no variable is named", [_unnamed(row) for row in sick])
    yield none(
        "of these in which it is not said that placement makes no difference",
        [not row["says_placement_is_no_matter"] for row in sick],
    )
    ratios = _ratios(rows, TOGETHER, APART)
    value, low, high = interval(ratios)
    yield Check(
        name="examples/s of scene 1 over scene 2", value=value, low=low, high=high,
        target="whatever it is", holds=True,
    )  # fmt: skip
    for servers in sorted({row["servers"] for row in rows}):
        own = [row for row in rows if row["servers"] == servers]
        value, low, high = interval(_ratios(own, CURED, TOGETHER))
        yield Check(
            name=f"{servers} PS: examples/s with the change over those without", value=value, low=low,
            high=high, target="> 1", holds=low > 1,
        )  # fmt: skip
    yield none("runs with the change in which it is still found", [_named(row) for row in rows])


def _unnamed(row: Row) -> int:
    return int(row["primary"] != "giant-variable" or "deep/vectors" not in row["what"])


def _named(row: Row) -> int:
    return int(row["side"] == CURED and row["primary"] == "giant-variable")


def _ratios(rows: Sequence[Row], one: str, other: str) -> list[float]:
    """Return the ratios of speeds of two sides that were up one after the other."""
    speeds = {(row["side"], row["key"].replace(row["side"], "")): row["examples_per_second"] for row in rows}
    return [speed / speeds[other, key] for (side, key), speed in speeds.items() if side == one]


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was said of each scene."""
    for servers in sorted({row["servers"] for row in rows}):
        row = next(each for each in rows if each["servers"] == servers)
        cores = ", ".join(f"{each:.2f}" for each in row["server_cores"])
        yield f"- {servers} PS, {row['side']}: cores of the PS {cores}. {row['what']}"


def draw(result: Result, path: Path) -> None:
    """Draw the speed of each side, by the number of servers."""
    groups = {
        f"{servers} PS, {side}": [
            row["examples_per_second"]
            for row in result.rows
            if (row["servers"], row["side"]) == (servers, side)
        ]
        for servers in sorted({row["servers"] for row in result.rows})
        for side in (TOGETHER, APART, CURED)
    }
    plots.strips(path, groups, label="examples/s", title="Ten light workers for each PS, one big table")
