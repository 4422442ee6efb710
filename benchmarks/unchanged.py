"""What is seen of unchanged scripts, against the truth: styles by versions of TensorFlow.

Each style is one job, of two parameter servers and two workers on emulated hosts where the style has them.
The truth of steps is what the script prints with its own clock, over the same seconds. The truth of bytes is
what the kernel counted on the interfaces of the parameter servers, frames and all, while nothing was traced;
against it stands what a traced step moves, times the steps of each trainer.

TensorFlows that ``tests/instrumentation/fetch-tensorflows`` has not fetched are left out; the table says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import statistics
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from support import interpreters, kills
from support.prerequisites import NotHere
from support.styles import STYLES, VERSIONS, Style

from benchmarks import plots, trials
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, at_least, at_most
from paceline import specs
from paceline.engines.local.folders import RunFolder
from paceline.errors import Conflict, PacelineError
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.measures.samples import StepReport
from paceline.model.traces import trace_summaries, traced_steps
from paceline.services.local import jobs
from paceline.services.observing import traces as taking
from paceline.specs.job_file import variable_files

RATE_LIMIT, BYTES_LIMIT, TRACE_SECONDS, TRACED_TIMES = 0.02, 0.05, 10.0, 1.7
#: TensorFlow ends a worker by itself now and then (`training.deadlines` has one reason).
TRIES = 3
WARM_UP_SECONDS, WINDOW_SECONDS, TRACES = 5.0, 15.0, 3
#: A style of TensorFlow 1 and one of TensorFlow 2.
_QUICK = ("monitored", "loop-strategy")
_MADE = re.compile(r"^made (\d+) at ([0-9.]+)$", re.MULTILINE)
_LOSS = re.compile(r"^step \d+ loss (\S+)$", re.MULTILINE)
_YAML = "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: unchanged}\n"


def run(bench: Bench) -> list[Check]:
    """Measure each style with each TensorFlow that it is for."""
    cells = [(name, version) for name, style in STYLES.items() for version in style.versions]
    if bench.quick:
        ends = {name: (style.versions[0], style.versions[-1]) for name, style in STYLES.items()}
        cells = [(name, version) for name in _QUICK for version in ends[name]]
    bench.plan(len(cells))
    for name, version in cells:
        bench.repeat(f"{name} {version}", functools.partial(_cell, name, version))
    seen = [row for row in bench.rows if row["skipped"] is None]
    if not seen:
        raise NotHere("no TensorFlow is fetched: tests/instrumentation/fetch-tensorflows has them")
    return list(_checks(seen))


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    yield at_most("steps a second apart from those printed", _values(rows, "rate_apart"), RATE_LIMIT)
    yield at_least("losses reported are losses printed", _values(rows, "loss"), 1)
    yield at_least("variables seen, of those that are trained", _values(rows, "variables"), 1)
    apart = _values([row for row in rows if row["traced_by"] == "session"], "bytes_apart")
    yield at_most("bytes apart from the kernel's, where a session is traced", apart, BYTES_LIMIT)
    profiled = _values([row for row in rows if row["traced_by"] == "profiler"], "bytes_apart")
    if profiled:
        yield at_most("bytes apart from the kernel's, by the profiler", profiled, BYTES_LIMIT)
    yield at_most("seconds until a trace is there", _values(rows, "trace_seconds"), TRACE_SECONDS)
    yield at_most(
        "times an untraced step that a traced one takes", _values(rows, "traced_times"), TRACED_TIMES
    )


def _values(rows: Sequence[Row], name: str) -> list[float]:
    return [abs(row[name]) for row in rows if row[name] is not None]


def _cell(name: str, version: str) -> Row:
    """Return what is seen of a style with a TensorFlow."""
    style, python = STYLES[name], interpreters.with_tensorflow(version)
    row: Row = {"style": name, "version": version, "skipped": None}
    if python is None:
        return {**row, "skipped": "not fetched"}
    for _ in range(TRIES):
        with trials.service() as api:
            training = api.submit(_spec(style, str(python)), source="", base=ROOT)
            try:
                return {**row, **_Job(api, training, style).seen()}
            except _BegunAnew:
                continue
            finally:
                with contextlib.suppress(Conflict):  # It has failed.
                    api.stop(training.name)
                api.wait(training.name, timeout_seconds=120)
    return {**row, "skipped": f"a worker ended by itself in {TRIES} jobs of {TRIES}"}


class _BegunAnew(Exception):
    """A replica ended while it was measured, and was started again."""


def _spec(style: Style, python: str) -> JobSpec:
    spec: dict[str, Any] = {
        "command": [python, style.path, *style.arguments],
        "environment": {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"},
        "roles": {role: {"replicas": count, "memory": "2Gi"} for role, count in style.roles.items()},
    }
    if "ps" in style.roles and os.geteuid() == 0:
        spec["hosts"] = [{"name": "a"}, {"name": "b"}]
    return specs.parse_job(_YAML + yaml.safe_dump({"spec": spec})).spec


@dataclasses.dataclass(frozen=True)
class _Job:
    """A job that trains."""

    api: jobs.Jobs
    run: Run
    style: Style

    def seen(self) -> Row:
        """Return what is seen of it, and how far that is from the truth."""
        kills.until(self._trains, seconds=trials.START_SECONDS)
        time.sleep(WARM_UP_SECONDS)
        since, before = time.time(), trials.server_bytes(self.run)
        time.sleep(WINDOW_SECONDS)
        until, after = time.time(), trials.server_bytes(self.run)
        reports = kills.until(lambda: self._reports(until))
        if any(not name.endswith(".1") for name in self._printed()):
            raise _BegunAnew
        taken, seconds = self._taken()
        moved = trials.moved(before, after)
        traced = _moved(taken, reports, since, until)
        return {
            "rate_apart": self._rate_apart(reports, since, until),
            "loss": self._loss(reports),
            "variables": self._variables(),
            "bytes_apart": None if moved is None or traced is None else traced / sum(moved) - 1,
            "trace_seconds": seconds,
            "traced_times": _traced_times(taken) if self.style.is_session else None,
            "traced_by": ("session" if self.style.is_session else "profiler") if taken else None,
            "time": any(
                0 < split.compute_microseconds <= split.total_microseconds
                for each in taken
                for split in each.splits
            ),
        }

    @property
    def _is_coordinated(self) -> bool:
        """Whether one process prints and reports for all that make steps."""
        return "chief" in self.style.roles and not self.style.is_session

    def _trains(self) -> bool:
        """Whether every trainer has said twice how many steps it has made."""
        now = self.api.get(self.run.name)
        if now.phase.is_final:
            raise RuntimeError(f"{now.name} {now.phase}: {now.message}")
        trainers = (
            1 if self._is_coordinated else sum(self.style.roles.values()) - self.style.roles.get("ps", 0)
        )
        return sum(len(made) > 1 for made in self._made().values()) == trainers

    def _printed(self) -> dict[str, str]:
        """Return what each attempt of a replica has printed, in order."""
        logs = sorted(RunFolder.of(self.run).path.glob("logs/*.log"))
        return {path.stem: path.read_text(errors="replace") for path in logs}

    def _made(self) -> dict[str, list[tuple[int, float]]]:
        """Return of each trainer how many steps it had made, and when."""
        found = {name.partition(".")[0]: _MADE.findall(text) for name, text in self._printed().items()}
        return {
            name: [(int(made), float(at)) for made, at in lines] for name, lines in found.items() if lines
        }

    def _reports(self, until: float) -> list[StepReport] | None:
        """Return the step reports, once those of a moment are stored."""
        latest = self.api.store.latest_step_reports(self.run.name)
        if not latest or min(report.at for report in latest.values()) < until:
            return None
        return self.api.store.step_reports(self.run.name)

    def _rate_apart(self, reports: Sequence[StepReport], since: float, until: float) -> float:
        """Return by which part of it the rate that is seen differs from what the trainers print."""
        printed = seen = 0.0
        for trainer, lines in self._made().items():
            (first, begun), *_, (last, ended) = [line for line in lines if since <= line[1] <= until]
            printed += (last - first) / (ended - begun)
            own = [each for each in reports if self._is_coordinated or str(each.replica) == trainer]
            seen += _made_within(own, begun, ended) / (ended - begun)
        return seen / printed - 1

    def _loss(self, reports: Sequence[StepReport]) -> float | None:
        """Return the part of the reported losses that was printed, if any was; None: none is reported."""
        losses = [report.loss for report in reports if report.loss is not None]
        printed = {float(loss) for text in self._printed().values() for loss in _LOSS.findall(text)}
        if not losses or not printed:
            return 1.0 if losses else None
        return sum(_is_among(loss, printed) for loss in losses) / len(losses)

    def _variables(self) -> float:
        """Return the part of the variables that is seen, with the parameter server of each."""
        found = variable_files.load_variables(Path(self.run.directory) / traced_steps.VARIABLES)
        placed = {each.name for each in found if each.devices and self._is_placed(each.devices)}
        return len(placed & self.style.variables) / len(self.style.variables)

    def _is_placed(self, devices: Sequence[str]) -> bool:
        return "ps" not in self.style.roles or all("/job:ps/" in device for device in devices)

    def _taken(self) -> tuple[list[traced_steps.Trace], float | None]:
        """Return traces, and how long the first took to come."""
        found: list[traced_steps.Trace] = []
        seconds = None
        for _ in range(TRACES):
            begun = time.monotonic()
            try:
                found += taking.take(self.api, self.run.name, timeout_seconds=60).traces
            except PacelineError:
                break
            seconds = time.monotonic() - begun if seconds is None else seconds
        return found, seconds


def _made_within(reports: Sequence[StepReport], since: float, until: float) -> float:
    """Return the steps of reports within a time; of one that it cuts, those of the part within."""
    return sum((each.steps or 0) * trials.share_within(each, since, until) for each in reports)


def _is_among(value: float, values: Collection[float]) -> bool:
    return any(abs(value - each) <= 1e-6 * abs(each) for each in values)


def _moved(
    taken: Sequence[traced_steps.Trace], reports: Sequence[StepReport], since: float, until: float
) -> float | None:
    """Return the bytes that the steps within a time moved, by what a traced step of each trainer moves."""
    total = 0.0
    for trainer in sorted({trace.trainer for trace in taken}):
        traced = [trace for trace in taken if trace.trainer == trainer]
        step_bytes = sum(row.bytes or 0.0 for row in trace_summaries.traffic(traced)) / len(traced)
        own = [report for report in reports if str(report.replica) == trainer]
        total += step_bytes * _made_within(own, since, until)
    return total or None


def _traced_times(taken: Sequence[traced_steps.Trace]) -> float | None:
    """Return how many times as long traced steps took as those before them, without waiting for input."""
    found = [
        (split.total_microseconds - (split.input_wait_microseconds or 0.0)) / trace.untraced_step_microseconds
        for trace in taken
        if trace.untraced_step_microseconds
        for split in trace.splits
    ]
    return statistics.mean(found) if found else None


def draw(result: Result, path: Path) -> None:
    """Draw how far what is seen is from the truth."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        for name, title in (("rate_apart", "steps a second"), ("bytes_apart", "bytes")):
            if row.get(name) is not None:
                groups.setdefault(title, []).append(100 * row[name])
    plots.strips(path, groups, label="% apart from the truth", title="Unchanged scripts")


def table(rows: Sequence[Row]) -> list[str]:
    """Return what is seen of each style with each TensorFlow, as lines of Markdown."""
    found = {(row["style"], row["version"]): row for row in rows}
    lines = [
        "| style | " + " | ".join(version.rpartition(".")[0] for version in VERSIONS) + " |",
        "| --- |" + " --- |" * len(VERSIONS),
    ]
    for name, style in STYLES.items():
        cells = [
            _letters(found.get((name, version))) if version in style.versions else "-" for version in VERSIONS
        ]
        lines.append(f"| {style.title} | " + " | ".join(cells) + " |")
    return lines


def _letters(row: Row | None) -> str:
    """Return a letter for each thing that is seen."""
    if row is None or row["skipped"] is not None:
        return "not measured"
    seen = {
        "s": row["rate_apart"] is not None and abs(row["rate_apart"]) <= RATE_LIMIT,
        "l": row["loss"] == 1,
        "v": row["variables"] == 1,
        "b": row["bytes_apart"] is not None and abs(row["bytes_apart"]) <= BYTES_LIMIT,
        "t": row["time"],
    }
    return "".join(letter for letter, is_seen in seen.items() if is_seen) or "nothing"
