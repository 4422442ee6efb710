"""PyTorch jobs with unchanged scripts: the cause that ``why`` names of five kinds of them, and the cost.

A run is a job of the tests' script over gloo, slow in one way or healthy. It is judged by what is named
first once all ranks train, as ``why`` would: of a healthy one nothing worse than a remark may be.

Cost is measured as that of TensorFlow's scripts is (`benchmarks.instrumentation_cost`): within one job of two
ranks some steps are made with all that is wrapped and the next ones without, in random order, the same on
both. Reports are made by a thread meanwhile, whichever side it meets; so their CPU time is measured itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml
from support import interpreters, kills, ports
from support.prerequisites import NotHere

from benchmarks import plots, trials
from benchmarks.instrumentation_cost import FOLDER
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, at_most, interval, reported
from paceline import specs
from paceline.errors import Conflict
from paceline.model.explanations.causes import Cause
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.services.local import jobs
from paceline.services.observing import diagnosis_runs

SCRIPT = ROOT / "tests" / "scripts" / "foreign" / "torch_ddp.py"
RIGHT, COST, COST_UPPER = 0.95, 0.005, 0.01
#: Longer than the time by which a job that runs is judged, and than ranks have to stand still for a hang.
JUDGED_SECONDS, HUNG_SECONDS = 35.0, 45.0
BLOCK_STEPS, BLOCKS = 40, 200
_YAML = "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: pytorch}\n"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of job.

    Attributes:
        names: of causes that are right; none: it is healthy.
        variations: options of the script.
        cpu: cores of a rank.
        seconds: from when all train until it is judged.
    """

    names: tuple[str, ...]
    variations: tuple[str, ...]
    cpu: float = 0.4
    seconds: float = JUDGED_SECONDS


#: Each is made with two ranks and with three.
KINDS = {
    "healthy": Kind(
        (), ("--pause=0.05", "--pause=0.03 --batch=64 --evaluate", "--pause=0.1 --width=128 --workers=1")
    ),
    "input-bound": Kind(
        ("slow-storage", "slow-decoding"), ("--read=0.1", "--read=0.3 --batch=64", "--read=0.2 --workers=1")
    ),
    "compute-bound": Kind(
        ("compute-bound",), ("--rounds=60", "--rounds=30 --width=256", "--rounds=100 --batch=64"), cpu=0.25
    ),
    "straggler": Kind(
        ("slow-rank",),
        (
            "--slow-rank=1 --slow-rounds=80",
            "--slow-rank=0 --slow-rounds=120",
            "--slow-rank=1 --slow-rounds=300",
        ),
    ),
    "hang": Kind(
        ("hang",),
        (
            "--stop-rank=1 --stop-step=200 --pause=0.02", "--stop-rank=0 --stop-step=300 --pause=0.02",
            "--stop-rank=1 --stop-step=150 --pause=0.05",
        ),
        seconds=HUNG_SECONDS,
    ),
}  # fmt: skip
_QUICK = ("healthy", "straggler")
#: Trains by steps with and without, in blocks; the order is its argument: ``1`` with, ``0`` without.
COST_SCRIPT = """
import json, os, sys, time
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import dataloader
from torch.optim import optimizer as optimizers

order, block = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(3)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
watch = sys.modules["paceline_instrumentation.torches"].TorchWatch
reported = [0.0]
report = watch._report

def timed(*arguments):
    began = time.thread_time()
    report(*arguments)
    reported[0] += time.thread_time() - began

watch._report = timed
rows = TensorDataset(torch.randn(32 * block, 64), torch.randn(32 * block, 1))
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
network = DistributedDataParallel(model)
optimizer = torch.optim.Adam(network.parameters(), 1e-3)
taking = [each for each in vars(dataloader).values() if "__next__" in getattr(each, "__dict__", ())]
places = [(torch.autograd, "backward"), (dataloader.DataLoader, "__iter__")]
places += [(each, "__next__") for each in taking]
if hasattr(optimizers.Optimizer, "_optimizer_step_code"):
    places.append((optimizers.Optimizer, "_optimizer_step_code"))
hooks = getattr(optimizers, "_global_optimizer_post_hooks", {})
kept = dict(hooks)
wrapped = [getattr(*each) for each in places]
cells = [each.cell_contents for each in torch.autograd.backward.__closure__]
(seen,) = [each for each in cells if isinstance(each, watch)]

def switch(on):
    for (owner, name), own in zip(places, wrapped):
        setattr(owner, name, own if on else own.__wrapped__)
    hooks.clear()
    if on:
        hooks.update(kept)
    network._set_ddp_runtime_logging_sample_rate(seen._stride if on else 1000000)
    seen._looked = time.perf_counter()

def train():
    for inputs, wanted in DataLoader(rows, 32):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(network(inputs), wanted).backward()
        optimizer.step()

for _ in range(10):
    train()
begun = time.perf_counter()
for side in order:
    switch(side == "1")
    distributed.barrier()
    began, used = time.perf_counter(), time.process_time()
    train()
    took = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - used}
    if rank == 0:
        print(json.dumps({"with": side == "1", "steps": block, **took}), flush=True)
if rank == 0:
    print(json.dumps({"reports": reported[0] / (time.perf_counter() - begun)}))
switch(True)
distributed.destroy_process_group()
"""


def run(bench: Bench) -> list[Check]:
    """Judge jobs of each kind, and measure pairs of blocks of steps."""
    if interpreters.with_torch() is None:
        raise NotHere("no PyTorch: tests/end_to_end/fetch-torch has it")
    cells = [
        (kind, options, ranks)
        for kind, each in KINDS.items()
        if kind in _QUICK or not bench.quick
        for options in each.variations[: 1 if bench.quick else None]
        for ranks in ((2,) if bench.quick else (2, 3))
    ]
    processes, generator = (1 if bench.quick else 10), random.Random(0)
    bench.plan(len(cells) + processes)
    for kind, options, ranks in cells:
        bench.repeat(f"{kind} {options} x {ranks}", functools.partial(_judged, kind, options, ranks))
    for number in range(processes):
        order = "".join(generator.choice(("10", "01")) for _ in range(BLOCKS // (10 if bench.quick else 2)))
        bench.repeat(f"cost {number}", functools.partial(_cost, order))
    return list(_checks(bench.rows))


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    told, cost = (
        [row for row in rows if row["kind"] != "cost"],
        [row for row in rows if row["kind"] == "cost"],
    )
    right = sum(row["right"] for row in told) / len(told)
    yield Check(
        name="jobs of which the right cause is named first, or none of a healthy one", value=right,
        low=None, high=None, target=f">= {RIGHT:g}", holds=right >= RIGHT,
    )  # fmt: skip
    for per, name in (("lost_by_clock", "by the clock"), ("lost_by_cpu", "per CPU second")):
        value, low, high = interval([row[per] for row in cost])
        yield Check(
            name=f"throughput that it costs, {name}", value=value, low=low, high=high,
            target=f"<= {COST:g}, its upper end <= {COST_UPPER:g}",
            holds=value <= COST and high <= COST_UPPER,
        )  # fmt: skip
    yield at_most("cores that reports take", [row["report_cores"] for row in cost], COST)
    yield reported("steps a second without it", [row["per_second"] for row in cost])


# --- Causes


def _judged(kind: str, options: str, ranks: int) -> Row:
    """Return what is named first of a job, and whether that is right."""
    with trials.service() as api:
        training = api.submit(_spec(kind, options, ranks), source="", base=ROOT)
        try:
            kills.until(lambda: _all_train(api, training, ranks), seconds=trials.START_SECONDS)
            time.sleep(KINDS[kind].seconds)
            causes = diagnosis_runs.Looker(api, training.name).look().explanation.causes
            return {
                "kind": kind, "options": options, "ranks": ranks, "right": _is_right(kind, options, causes),
                "causes": [{"name": each.name, "what": each.what} for each in causes],
            }  # fmt: skip
        finally:
            with contextlib.suppress(Conflict):  # It has ended.
                api.stop(training.name)
            api.wait(training.name, timeout_seconds=120)


def _spec(kind: str, options: str, ranks: int) -> JobSpec:
    command = [str(interpreters.with_torch()), str(SCRIPT), "--steps=1000000000", *options.split()]
    worker = {"replicas": ranks, "cpu": KINDS[kind].cpu, "memory": "1Gi"}
    spec = {
        "framework": "pytorch", "command": command, "roles": {"worker": worker}, "success": "all-workers",
        "termination_grace": "2s",
    }  # fmt: skip
    return specs.parse_job(_YAML + yaml.safe_dump({"spec": spec})).spec


def _all_train(api: jobs.Jobs, training: Run, ranks: int) -> bool:
    now = api.get(training.name)
    if now.phase.is_final:
        raise RuntimeError(f"{now.name} {now.phase}: {now.message}")
    reports = api.store.step_reports(training.name)
    return len({each.replica for each in reports if each.steps}) == ranks


def _is_right(kind: str, options: str, causes: Sequence[Cause]) -> bool:
    """Whether the first cause is one of the kind's and names the rank at fault, if one is."""
    if not KINDS[kind].names:
        return all(each.severity is Severity.INFO for each in causes)
    if not causes or causes[0].name not in KINDS[kind].names:
        return False
    at_fault = [
        each.partition("=")[2] for each in options.split() if each.partition("=")[0].endswith("-rank")
    ]
    return all(f"worker-{each}" in causes[0].subjects for each in at_fault)


# --- Cost


def _cost(order: str) -> Row:
    """Let two ranks train, some steps with it and some without it in turn."""
    moments = _moments(order)
    *blocks, last = moments

    def rate(per: str, *, instrumented: bool) -> float:
        made = [each for each in blocks if each["with"] is instrumented]
        return float(sum(each["steps"] for each in made) / sum(each[per] for each in made))

    lost = {
        per: 1 - rate(per, instrumented=True) / rate(per, instrumented=False)
        for per in ("seconds", "cpu_seconds")
    }
    return {
        "kind": "cost", "lost_by_clock": lost["seconds"], "lost_by_cpu": lost["cpu_seconds"],
        "report_cores": last["reports"], "per_second": rate("seconds", instrumented=False),
    }  # fmt: skip


def _moments(order: str) -> list[Mapping[str, float]]:
    """Return what the first of two ranks prints."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        port = ports.free_port()
        ranks = [
            subprocess.Popen(
                [str(interpreters.with_torch()), "-c", COST_SCRIPT, order, str(BLOCK_STEPS)],
                env=_environment(Path(folder), rank, port), text=True,
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
            )
            for rank in range(2)
        ]  # fmt: skip
        output, _ = ranks[0].communicate()
        if any(each.wait() for each in ranks):
            raise RuntimeError("a rank has failed")
        return [json.loads(line) for line in output.splitlines()]


def _environment(folder: Path, rank: int, port: int) -> dict[str, str]:
    own = {
        "PACELINE_REPORT_FILE": str(folder / f"reports-{rank}.jsonl"), "PACELINE_RUN_DIR": str(folder),
        "PACELINE_ROLE": "worker", "PACELINE_INDEX": str(rank), "PYTHONPATH": str(FOLDER),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": "2",
        "LOCAL_RANK": "0", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, **own}


def draw(result: Result, path: Path) -> None:
    """Draw what each process lost."""
    rows = [row for row in result.rows if row["kind"] == "cost"]
    groups = {
        "by the clock": [row["lost_by_clock"] * 100 for row in rows],
        "per CPU second": [row["lost_by_cpu"] * 100 for row in rows],
    }
    plots.strips(path, groups, label="% of throughput", title="What seeing into PyTorch costs")


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table of the kinds of jobs."""
    yield "| kind | runs | right | named first |"
    yield "| --- | --- | --- | --- |"
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        first = [row["causes"][0]["name"] if row["causes"] else "none" for row in own]
        named = ", ".join(f"{first.count(each)} {each}" for each in dict.fromkeys(first))
        yield f"| {kind} | {len(own)} | {sum(row['right'] for row in own)} | {named} |"
