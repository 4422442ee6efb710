"""How often diagnosis is right about unchanged scripts: the primary cause, and alarms on healthy jobs.

What is asked for is judged on the scripts that no rule was tuned on. A cause that is an info is right where
it is among the remarks and nothing worse is told: several infos may be true of a job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.prerequisites import NotHere

from benchmarks.diagnosis import labels, scores
from benchmarks.diagnosis.labels import HEALTHY, UNSEEN, Label
from benchmarks.protocols import Bench, Check, Result, Row
from paceline.diagnosing import catalogues
from paceline.model.explanations.causes import Cause
from paceline.model.explanations.findings import Severity

FOLDER = Path(__file__).parent / "recordings"
PRIMARY, FALSE_ALARMS = 0.95, 0.02
LEAST_RUNS, LEAST_HEALTHY, LEAST_SCRIPTS, LEAST_VERSIONS = 120, 30, 3, 2


def run(bench: Bench) -> list[Check]:
    """Judge every recording; with ``--quick`` each third one."""
    found = labels.read(FOLDER)
    if not found:
        raise NotHere(
            "nothing is recorded: python -m benchmarks.diagnosis_unchanged.corpus does it, in hours"
        )
    chosen = list(found.values())[:: 3 if bench.quick else 1]
    bench.plan(len(chosen))
    for label in chosen:
        bench.repeat(label.name, lambda label=label: judged(label))  # type: ignore[misc]
    return list(checks(bench.rows))


def judged(label: Label, folder: Path = FOLDER) -> Mapping[str, Any]:
    """Return what is true of a recording, and what diagnosis says of it."""
    answer = scores.answer(folder / label.file)
    row = scores.row(label, answer)
    remarked = label.cause in set(names(answer.causes)) and not row["told"]
    if label.cause != HEALTHY and is_info(label.cause) and remarked:
        row["said"] = label.cause
    return {**row, "script": label.model, "version": label.size}


def names(causes: Sequence[Cause]) -> Iterator[str]:
    """Yield the names of causes and of what follows from them."""
    for cause in causes:
        yield cause.name
        yield from names(cause.effects)


def is_info(cause: str) -> bool:
    """Whether a cause is only worth knowing."""
    return catalogues.topic(cause).severity is Severity.INFO


def checks(rows: Sequence[Row]) -> Iterator[Check]:
    """Yield what is asked for, of unseen scripts, and each cause and the seen scripts for comparison."""
    unseen = [row for row in rows if row["split"] == UNSEEN]
    healthy = [row for row in unseen if row["cause"] == HEALTHY]
    seen = [row for row in rows if row["split"] != UNSEEN]
    yield scores.count("runs of unseen scripts", len(unseen), LEAST_RUNS)
    yield scores.count("healthy runs among them", len(healthy), LEAST_HEALTHY)
    yield scores.count("scripts", len({row["script"] for row in unseen}), LEAST_SCRIPTS)
    yield scores.count("TensorFlow versions", len({row["version"] for row in unseen}), LEAST_VERSIONS)
    yield scores.share("primary cause right", _right(unseen), len(unseen), least=PRIMARY)
    alarms = sum(map(scores.alarms, healthy))
    yield scores.share("healthy runs with a false alarm", alarms, len(healthy), most=FALSE_ALARMS)
    for script in sorted({row["script"] for row in unseen}):
        own = [row for row in unseen if row["script"] == script]
        yield scores.share(f"{script}: primary cause right", _right(own), len(own))
    yield scores.share("scripts that rules were tried on: right", _right(seen), len(seen))


def _right(rows: Sequence[Row]) -> int:
    return sum(map(scores.is_right, rows))


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was said of each cause, the right ones first, and each run that was judged wrong."""
    yield from scores.details(rows)
    unseen = [row for row in rows if row["split"] == UNSEEN]
    for each in scores.mistakes(unseen):
        yield f"\nWrong: `{each.name}`: {each.said}"


def draw(result: Result, path: Path) -> None:
    """Draw the confusion matrix of unseen scripts."""
    scores.draw(result, path)
