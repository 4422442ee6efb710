"""How every benchmark runs, resumes, judges itself and is written down (``docs/architecture.md``, "Figures").

A benchmark is a module with ``run(bench) -> list[Check]`` and ``draw(result, path)``, and if the page of
figures is to have more than its checks, ``details(rows) -> lines``. It asks
``bench.repeat(key, measure)`` for each repeat; finished repeats are kept, so a long benchmark that is cut off
goes on where it stopped. Those of full runs are kept in ``benchmarks/unfinished``: committed, they go on on
another machine, too.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from rich.progress import Progress

Row = dict[str, Any]
ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
KEPT = ROOT / "bench-out"
#: Of full runs that are not done.
UNFINISHED = Path(__file__).parent / "unfinished"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """One figure asked for: its value, the interval from the repeats, and what it has to be.

    ``target`` is text for people; ``holds`` says whether it is met.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    target: str
    holds: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """A benchmark's outcome, as written to JSON.

    Attributes:
        name: of the benchmark.
        quick: whether it had fewer repeats.
        rows: of each repeat what was measured.
        checks: what follows.
        commits: on which the repeats were made; empty: on that which is checked out.
        cpus: of the machines; empty: that of this one.
    """

    name: str
    quick: bool
    rows: Sequence[Row]
    checks: Sequence[Check]
    commits: Sequence[str] = ()
    cpus: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the result with when, where and on what it was measured."""
        return {
            "name": self.name,
            "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "quick": self.quick,
            "machine": machine() | ({"cpu": ", ".join(self.cpus)} if self.cpus else {}),
            "commit": ", ".join(self.commits) or commit(),
            "rows": list(self.rows),
            "checks": [dataclasses.asdict(check) for check in self.checks],
        }


class Bench:
    """What a benchmark is given: how to run, and repeats that are kept.

    Args:
        name: of the benchmark.
        quick: whether it is to have fewer repeats.
        progress: shows how far it is.
        baseline: the commit to compare with, if it is not the benchmark's own.
        since: kept repeats of this commit and of those after it count, too, and not only those of the
            commit that is checked out: nothing that was changed since then concerns them.
    """

    def __init__(
        self,
        name: str,
        *,
        quick: bool,
        progress: Progress,
        baseline: str | None = None,
        since: str | None = None,
    ) -> None:
        self.name = name
        self.quick = quick
        self.baseline = baseline
        self._kept = (KEPT if quick else UNFINISHED) / f"{name}{'-quick' if quick else ''}.rows.jsonl"
        self._progress = progress
        self._task = progress.add_task(name, total=None)
        self._finished = {line["row"]["key"]: line for line in self._read(since)}
        self._used: list[dict[str, Any]] = []

    @property
    def rows(self) -> list[Row]:
        """Return the rows of all repeats so far, in order."""
        return [line["row"] for line in self._used]

    def result(self, checks: Sequence[Check]) -> Result:
        """Return what has come out, with the commits and machines of its repeats."""
        return Result(
            name=self.name,
            quick=self.quick,
            rows=self.rows,
            checks=checks,
            commits=tuple(dict.fromkeys(line["commit"] for line in self._used)),
            cpus=tuple(dict.fromkeys(line["cpu"] for line in self._used)),
        )

    def _read(self, since: str | None) -> list[dict[str, Any]]:
        if not self._kept.exists():
            return []
        lines = [json.loads(line) for line in self._kept.read_text().splitlines()]
        commits = {line["commit"] for line in lines}
        counting = {each for each in commits if each == commit() or is_since(each, since)}
        return [line for line in lines if line["commit"] in counting]

    def plan(self, repeats: int) -> None:
        """Say how many repeats there will be, for the progress bar."""
        self._progress.update(self._task, total=repeats)

    def repeat(self, key: str, measure: Callable[[], Mapping[str, Any]]) -> Row:
        """Return the row of one repeat: kept from an earlier run, or measured now."""
        if key not in self._finished:
            row = {"key": key, **measure()}
            line = {"commit": commit(), "cpu": machine()["cpu"], "row": row}
            self._kept.parent.mkdir(exist_ok=True)
            with self._kept.open("a") as file:
                file.write(json.dumps(line) + "\n")
            self._finished[key] = line
        self._used.append(self._finished[key])
        self._progress.advance(self._task)
        return self.rows[-1]

    def forget(self) -> None:
        """Remove the kept repeats: the result is written."""
        self._kept.unlink(missing_ok=True)


def read(path: Path) -> Result:
    """Return a written result."""
    told = json.loads(path.read_text())
    checks = [Check(**each) for each in told["checks"]]
    return Result(name=told["name"], quick=told["quick"], rows=told["rows"], checks=checks)


def written_rows(name: str) -> list[Row]:
    """Return the rows of a benchmark's written result; none where it was not run."""
    file = RESULTS / f"{name}.json"
    return list(json.loads(file.read_text())["rows"]) if file.exists() else []


def module(name: str) -> ModuleType:
    """Return the module of a benchmark."""
    return importlib.import_module(f"benchmarks.{name.replace('-', '_')}")


def interval(values: Sequence[float], *, resamples: int = 10_000) -> tuple[float, float, float]:
    """Return (value, low, high): the mean and its 95 % percentile-bootstrap interval (Efron 1979).

    With fewer than three values the interval is their range.
    """
    data = np.asarray(values, dtype=float)
    value = float(data.mean())
    if len(data) < 3:
        return value, float(data.min()), float(data.max())
    picks = np.random.default_rng(0).integers(0, len(data), size=(resamples, len(data)))
    low, high = np.percentile(data[picks].mean(axis=1), [2.5, 97.5])
    return value, float(low), float(high)


def at_most(name: str, values: Sequence[float], limit: float) -> Check:
    """Return the check that the mean of the values, with its whole interval, is at most ``limit``."""
    value, low, high = interval(values)
    return Check(name=name, value=value, low=low, high=high, target=f"<= {limit:g}", holds=high <= limit)


def reported(name: str, values: Sequence[float]) -> Check:
    """Return a figure of which nothing is asked but that it is told."""
    value, low, high = interval(values)
    return Check(name=name, value=value, low=low, high=high, target="reported", holds=True)


def percentile_at_most(name: str, values: Sequence[float], percent: float, limit: float) -> Check:
    """Return the check that a percentile of the values, with its whole bootstrap interval, is at most
    ``limit``.
    """
    data = np.asarray(values, dtype=float)
    picks = np.random.default_rng(0).integers(0, len(data), size=(10_000, len(data)))
    low, high = np.percentile(np.percentile(data[picks], percent, axis=1), [2.5, 97.5])
    value = float(np.percentile(data, percent))
    return Check(
        name=name, value=value, low=float(low), high=float(high),
        target=f"<= {limit:g}", holds=bool(high <= limit),
    )  # fmt: skip


def at_least(name: str, values: Sequence[float], limit: float) -> Check:
    """Return the check that every single value is at least ``limit``; value is the least of them."""
    low, high = min(values), max(values)
    return Check(
        name=name, value=low, low=low, high=high, target=f">= {limit:g} in every run", holds=low >= limit
    )


def none(name: str, counts: Sequence[int]) -> Check:
    """Return the check that nothing was counted in any repeat."""
    total = float(sum(counts))
    return Check(name=name, value=total, low=total, high=total, target="0", holds=total == 0)


def machine() -> dict[str, Any]:
    """Return facts of this machine: none that names it."""
    model = next(
        (line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), "unknown"
    )
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
    }


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def commit() -> str:
    """Return the commit that is checked out, with a ``+`` when the sources differ from it."""
    head = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"], cwd=ROOT, check=False)
    return (head.stdout.strip() or "unknown") + ("+" if changed.returncode else "")


def is_since(commit: str, since: str | None) -> bool:
    """Whether a commit is another one or after it, and is part of what is checked out."""
    if since is None or commit.endswith("+"):
        return False
    pairs = ((since, commit), (commit, "HEAD"))
    return all(
        subprocess.run(
            ["git", "merge-base", "--is-ancestor", *pair], cwd=ROOT, capture_output=True, check=False
        ).returncode
        == 0
        for pair in pairs
    )
