"""How often diagnosis is right about the corpus: the primary cause, each cause, and alarms on healthy jobs.

Recordings of the split ``fit`` may be looked at to set thresholds; what is asked for is judged on the others.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.prerequisites import NotHere

from benchmarks import plots
from benchmarks.diagnosis import labels
from benchmarks.diagnosis.labels import HEALTHY, UNSEEN, Label
from benchmarks.protocols import Bench, Check, Result, Row
from paceline.diagnosing import diagnoses, topics
from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.explanations.findings import Severity
from paceline.services.observing import recordings as services
from paceline.stores import recordings

FOLDER = Path(__file__).parent / "recordings"
PRIMARY, EACH, FALSE_ALARMS = 0.95, 0.9, 0.02
LEAST_RUNS, LEAST_CAUSES, LEAST_HEALTHY = 160, 20, 40
#: Of a normal distribution, two-sided 95 %.
_Z = 1.96


def run(bench: Bench) -> list[Check]:
    """Judge every recording; with ``--quick`` each third one."""
    found = labels.read(FOLDER)
    if not found:
        raise NotHere("there is no corpus: python -m benchmarks.diagnosis.corpus makes it, in some hours")
    chosen = list(found.values())[:: 3 if bench.quick else 1]
    bench.plan(len(chosen))
    for label in chosen:
        bench.repeat(label.name, lambda label=label: judged(label))  # type: ignore[misc]
    return list(checks(bench.rows))


def judged(label: Label) -> Mapping[str, Any]:
    """Return what is true of a recording, and what diagnosis says of it."""
    return row(label, answer(FOLDER / label.file))


def answer(path: Path) -> Explanation:
    """Return what diagnosis says of a recording's file."""
    recording = recordings.read(path)
    return diagnoses.diagnose(recording, services.situation(recording))


def row(label: Label, answer: Explanation) -> Row:
    """Return what is true of a run, and what was said of it."""
    return {
        "split": label.split,
        "cause": label.cause,
        "also": [*label.accepted, *label.also],
        "accepted": list(label.accepted),
        "severity": label.severity,
        "said": primary(answer),
        "told": sorted({each.name for each in _told(answer.causes)}),
    }


def primary(answer: Explanation) -> str:
    """Return the cause that is told first: an info only where nothing worse is told."""
    told = [each for each in answer.causes if not each.is_past]
    serious = [each for each in told if each.severity is not Severity.INFO]
    hints = [each for each in told if each.name not in topics.STANDING]
    return next((each.name for each in (*serious, *hints)), HEALTHY)


def _told(causes: Sequence[Cause]) -> Iterator[Cause]:
    for cause in causes:
        if cause.severity is not Severity.INFO:
            yield cause
        yield from _told(cause.effects)


def checks(rows: Sequence[Row]) -> Iterator[Check]:
    """Yield what is asked for, of unseen runs, and the same of the others for comparison."""
    unseen = [row for row in rows if row["split"] == UNSEEN]
    faulty = [row for row in unseen if row["cause"] != HEALTHY]
    healthy = [row for row in unseen if row["cause"] == HEALTHY]
    yield count("unseen runs", len(unseen), LEAST_RUNS)
    yield count("causes among them", len({row["cause"] for row in faulty}), LEAST_CAUSES)
    yield count("unseen healthy runs", len(healthy), LEAST_HEALTHY)
    yield share("unseen runs: primary cause right", sum(map(is_right, unseen)), len(unseen), least=PRIMARY)
    yield share(
        "unseen healthy runs with a false alarm", sum(map(alarms, healthy)), len(healthy), most=FALSE_ALARMS
    )
    for name, (precision, recall) in scores(unseen).items():
        yield _least(f"{name}: precision", precision)
        yield _least(f"{name}: recall", recall)
    fit = [row for row in rows if row["split"] != UNSEEN]
    yield share("runs to fit: primary cause right", sum(map(is_right, fit)), len(fit))


def is_right(row: Row) -> bool:
    """Whether the primary cause is the one by construction, or one that may stand for it."""
    if row["cause"] == HEALTHY:
        return not alarms(row)
    return row["said"] in (row["cause"], *row["accepted"])


def alarms(row: Row) -> bool:
    """Whether anything worse than an info is told."""
    return bool(row["told"])


def said(row: Row) -> str:
    """Return what was said of a run; of a healthy one an info, as what it is busy with, says nothing bad."""
    return HEALTHY if row["cause"] == HEALTHY and not alarms(row) else str(row["said"])


def scores(rows: Sequence[Row]) -> dict[str, tuple[float | None, float | None]]:
    """Return precision and recall of each cause as the primary one; None: never said, or never true."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for name in sorted({row["cause"] for row in rows} - {HEALTHY}):
        named = [row for row in rows if said(row) == name]
        true = [row for row in rows if row["cause"] == name]
        right = sum(name in (row["cause"], *row["also"]) for row in named)
        caught = sum(is_right(row) for row in true)
        found[name] = (right / len(named) if named else None, caught / len(true))
    return found


def count(name: str, count: int, least: int) -> Check:
    """Return that there are enough of something."""
    return Check(name=name, value=count, low=count, high=count, target=f">= {least}", holds=count >= least)


def _least(name: str, value: float | None) -> Check:
    holds = value is not None and value >= EACH
    return Check(name=name, value=value, low=None, high=None, target=f">= {EACH:g}", holds=holds)


def share(name: str, count: int, of: int, *, least: float | None = None, most: float | None = None) -> Check:
    """Return a share with its interval. Source: Wilson 1927."""
    low, high = wilson(count, of)
    share = count / of if of else None
    holds = share is not None and (least is None or share >= least) and (most is None or share <= most)
    asked = f">= {least:g}" if least is not None else f"<= {most:g}" if most is not None else "reported"
    return Check(name=name, value=share, low=low, high=high, target=asked, holds=holds)


def wilson(count: int, of: int) -> tuple[float | None, float | None]:
    """Return the 95 % interval of a share: Wilson's score interval (1927)."""
    if of == 0:
        return None, None
    share, squared = count / of, _Z**2 / of
    middle = (share + squared / 2) / (1 + squared)
    half = _Z * math.sqrt(share * (1 - share) / of + squared / (4 * of)) / (1 + squared)
    return max(0.0, middle - half), min(1.0, middle + half)


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the confusion of unseen runs: what was said of each cause, the right ones first."""
    unseen = [row for row in rows if row["split"] == UNSEEN]
    yield "| true | runs | said |\n| --- | --- | --- |"
    for name in sorted({row["cause"] for row in unseen}):
        own = [row for row in unseen if row["cause"] == name]
        counts = Counter(map(said, own))
        ordered = sorted(counts.items(), key=lambda item: (item[0] != name, -item[1]))
        yield f"| {name} | {len(own)} | {', '.join(f'{count} {each}' for each, count in ordered)} |"


def draw(result: Result, path: Path) -> None:
    """Draw the confusion matrix of unseen runs."""
    unseen = [row for row in result.rows if row["split"] == UNSEEN]
    names = [HEALTHY, *sorted({row["cause"] for row in unseen} - {HEALTHY})]
    others = sorted(set(map(said, unseen)) - set(names))
    counts = Counter((row["cause"], said(row)) for row in unseen)
    matrix = [[counts[true, each] for each in (*names, *others)] for true in names]
    plots.matrix(path, matrix, rows=names, columns=[*names, *others], title="True cause, and what was said")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mistake:
    """A run of which something else is said than what is true."""

    name: str
    true: str
    said: str


def mistakes(rows: Sequence[Row]) -> list[Mistake]:
    """Return the runs that were judged wrong."""
    return [Mistake(name=row["key"], true=row["cause"], said=said(row)) for row in rows if not is_right(row)]
