"""Kill -9 of workers and parameter servers at random moments of a training, against the same undisturbed.

Each pair of runs has a seed of its own; the disturbed one loses replicas at random points of its progress, so
that a slow machine changes nothing. What was trained is counted by the job itself: the ``progress`` that the
chief reports with its evaluation says how many different examples are trained for certain (``examples``), how
many there were (``total_examples``), and how many may have been trained ``twice``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path

from support import kills

from benchmarks import plots, trials
from benchmarks.protocols import Bench, Check, Result, Row, interval
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.job_specs import RestartPolicy, RestartWhen
from paceline.model.jobs.runs import Run
from paceline.services.local import jobs

VICTIMS = ("ps-0", "ps-1", "worker-0", "worker-1")
SIDES = ("undisturbed", "disturbed")
AUC_DIFFERENCE = 0.003
PATIENCE_SECONDS = 300.0


@dataclasses.dataclass(frozen=True)
class Kill:
    """Whom to kill when so much of all steps is done: its agent, or the command that it wraps."""

    victim: str
    whole: bool
    progress: float


def run(bench: Bench) -> list[Check]:
    """Run the pairs."""
    pairs, deaths = (1, 2) if bench.quick else (6, 5)
    bench.plan(2 * pairs)
    data = trials.clicks_data("clicks-tiny" if bench.quick else "clicks-quick")
    generator = random.Random(0)
    for seed in range(pairs):
        chosen = _kills(generator, deaths)
        for side, planned in zip(SIDES, ((), chosen), strict=True):
            bench.repeat(f"{side} {seed}", functools.partial(_run, side, seed, planned, data))
    return _checks(bench.rows, pairs * deaths)


def _kills(generator: random.Random, count: int) -> tuple[Kill, ...]:
    """Every replica once before one is killed again, at random moments and in random order."""
    order = itertools.cycle(generator.sample(VICTIMS, len(VICTIMS)))
    moments = sorted(generator.uniform(0.02, 0.95) for _ in range(count))
    return tuple(Kill(next(order), generator.random() < 0.5, moment) for moment in moments)


def _run(side: str, seed: int, planned: Sequence[Kill], data: Path) -> Row:
    spec = trials.example(
        "clicks", "--data", str(data), seed=seed, checkpoint={"every_seconds": 3, "keep": 2}
    )
    restart = RestartPolicy(when=RestartWhen.ON_FAILURE, limit=100)
    spec = dataclasses.replace(
        spec, roles=tuple(dataclasses.replace(role, restart=restart) for role in spec.roles)
    )
    with trials.service() as api:
        run = api.submit(spec, source="", base=data)
        hits = sum(_strike(api, run, each) for each in planned)
        run = api.wait(run.name, timeout_seconds=trials.TIMEOUT_SECONDS)
        if run.phase != "succeeded":
            raise RuntimeError(f"{run.name} {run.phase}: {run.message}")
        evaluation = api.store.evaluations(run.name)[-1]
        assert run.finished_at is not None
        assert run.started_at is not None
        return {
            "side": side,
            "seed": seed,
            "planned": [dataclasses.asdict(each) for each in planned],
            "kills": hits,
            "auc": evaluation.auc,
            "step": evaluation.step,
            "seconds": run.finished_at - run.started_at,
            "progress": _progress(RunFolder.of(run).path),
        }


def _strike(api: jobs.Jobs, run: Run, planned: Kill) -> bool:
    """Kill when it is time and the victim is there; return whether it was killed before the job ended."""

    def is_time() -> bool:
        last = next(reversed(api.store.step_reports(run.name)), None)
        done = last.step / last.total_steps if last and last.step and last.total_steps else 0.0
        return done >= planned.progress or api.get(run.name).phase.is_final

    def struck() -> bool:
        found = kills.replica_pids(RunFolder.of(run), planned.victim, whole=planned.whole)
        return kills.kill(found) or api.get(run.name).phase.is_final

    kills.until(is_time, seconds=PATIENCE_SECONDS)
    kills.until(struck, seconds=PATIENCE_SECONDS)
    return not api.get(run.name).phase.is_final


def _progress(folder: Path) -> dict[str, int] | None:
    """What the chief counted by the end; None if it does not count."""
    found = None
    for path in folder.glob("replicas/worker-0.*/reports.jsonl"):
        for line in path.read_text().splitlines():
            found = json.loads(line).get("progress") or found
    return found


def _checks(rows: Sequence[Row], deaths: int) -> list[Check]:
    undisturbed, disturbed = ([row for row in rows if row["side"] == side] for side in SIDES)
    value, low, high = interval(
        [other["auc"] - one["auc"] for one, other in zip(undisturbed, disturbed, strict=True)]
    )
    killed = float(sum(row["kills"] for row in disturbed))
    lost = [row["total_examples"] - row["examples"] for row in _counted(rows)]
    wrong = [row["twice"] for row in _counted(undisturbed)]
    return [
        Check(
            name="AUC, disturbed minus undisturbed",
            value=value, low=low, high=high,
            target=f"within {AUC_DIFFERENCE}", holds=low >= -AUC_DIFFERENCE and high <= AUC_DIFFERENCE,
        ),
        _none("examples lost", lost, len(rows)),
        _none("examples that an undisturbed run counts as trained twice", wrong, len(undisturbed)),
        Check(
            name="kills of running replicas", value=killed, low=None, high=None,
            target=f">= {deaths}", holds=killed >= deaths,
        ),
    ]  # fmt: skip


def _counted(rows: Sequence[Row]) -> list[dict[str, int]]:
    return [row["progress"] for row in rows if row["progress"] is not None]


def _none(name: str, values: Sequence[int], runs: int) -> Check:
    """The check that every run has counted, and none has counted any."""
    if len(values) < runs:
        return Check(name=name, value=None, low=None, high=None, target="0", holds=False)
    total = float(sum(abs(value) for value in values))
    return Check(name=name, value=total, low=total, high=total, target="0", holds=total == 0)


def draw(result: Result, path: Path) -> None:
    """Draw the AUC of all runs by side."""
    groups: dict[str, list[float]] = {side: [] for side in SIDES}
    for row in result.rows:
        groups[row["side"]].append(row["auc"])
    plots.strips(path, groups, label="AUC", title="Trainings whose replicas were killed at random")
