"""Inputs: decoding is much quicker than training, and a slow link shows as waiting for input, nowhere else.

Each round decodes the clicks on one core's worth of CPU time, trains on them as rung 6 of the ladder does,
and trains with one worker over a web server, first without a limit and then behind a link that carries half
of what that took.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import links, plots, rungs, stepped, trials
from benchmarks.protocols import KEPT, ROOT, Bench, Check, Result, Row, interval
from paceline import training
from paceline.examples.clicks import generate, train
from paceline.model.roles import Role
from paceline.training.input import inputs

DATA = "clicks-large"
ROUNDS, QUICK_ROUNDS = 5, 1
WARM_UP_SECONDS = 5.0
#: What was read ahead has to be used up before a slow link is felt.
DRAIN_SECONDS, QUICK_DRAIN_SECONDS = 30.0, 15.0
#: A slow link brings examples a row group at a time; the window has to hold many.
WINDOW_SECONDS, LINK_WINDOW_SECONDS = 15.0, 40.0
LINK_SHARE = 0.5
DECODING, TRAINING, FREE, SLOW = "decoding", "rung 6", "free link", "slow link"


def run(bench: Bench) -> list[Check]:
    """Measure all sides, round by round."""
    rounds = QUICK_ROUNDS if bench.quick else ROUNDS
    drain = QUICK_DRAIN_SECONDS if bench.quick else DRAIN_SECONDS
    folder = KEPT / DATA
    generate.generate(folder, rungs.DATA[DATA])
    bench.plan(4 * rounds)
    for number in range(rounds):
        bench.repeat(f"{DECODING} {number}", functools.partial(_decode, folder))
        bench.repeat(f"{TRAINING} {number}", _train)
        free = bench.repeat(f"{FREE} {number}", functools.partial(_over_link, folder, None, WARM_UP_SECONDS))
        limit = LINK_SHARE * free["examples_per_second"] * _bytes_per_example(folder)
        bench.repeat(f"{SLOW} {number}", functools.partial(_over_link, folder, limit, drain))
    return _checks(bench.rows)


def _decode(folder: Path) -> Row:
    """Return how many examples a second of CPU time reads and encodes."""
    data = generate.load(folder)
    model = train.model(data.parameters.tables)
    source = training.Source((data.train_pattern,))
    for _ in inputs.once(source, model.features):
        break  # what is loaded at first use is no part of it
    before = time.process_time()
    examples = sum(len(chunk.labels) for chunk in inputs.once(source, model.features))
    seconds = time.process_time() - before
    return {"side": DECODING, "examples_per_second": examples / seconds}


def _over_link(folder: Path, bytes_per_second: float | None, warm_up: float) -> Row:
    """Return what one worker does that reads over a link."""
    with links.serving(folder, bytes_per_second) as url:
        files = [f"{url}{path.name}" for path in sorted(folder.glob("train-*.parquet"))]
        window = WINDOW_SECONDS if bytes_per_second is None else LINK_WINDOW_SECONDS
        row = _train(1, warm_up, window, steps_in_flight=1, inputs={"train": files})
    side = FREE if bytes_per_second is None else SLOW
    return {**row, "side": side, "link_bytes_per_second": bytes_per_second}


def _train(
    workers: int = 2, warm_up: float = WARM_UP_SECONDS, window: float = WINDOW_SECONDS, **more: Any
) -> Row:
    """Return the rate within a window of training, and each step's seconds with and without the wait."""
    with trials.service() as api:
        counts = api.home.path / "counts"
        spec = rungs.spec(rungs.BEST, DATA, 512, counts, epochs=10_000, **more)
        roles = tuple(
            dataclasses.replace(role, replicas=workers) if role.role is Role.WORKER else role
            for role in spec.roles
        )
        spec = dataclasses.replace(spec, roles=roles)
        job = api.submit(spec, source="", base=ROOT)
        try:
            trials.wait_for_steps(api, job, counts)
            time.sleep(warm_up)
            since, before = time.time(), stepped.read(counts)
            time.sleep(window)
            until, after = time.time(), stepped.read(counts)
        finally:
            api.stop(job.name)
            api.wait(job.name, timeout_seconds=120)
        reports = api.store.step_reports(job.name, since=since + 2, until=until)
    steps = sum(each.steps or 0 for each in reports)
    seconds = sum(each.interval_seconds or 0 for each in reports)
    waited = sum(each.input_wait_seconds or 0 for each in reports)
    # The exact count stops at the last step, before a wait; the reports hold the waits as well.
    reported = sum(each.examples or 0 for each in reports) / seconds if seconds else None
    return {
        "side": TRAINING,
        "examples_per_second": stepped.rate(before, after),
        "reported_examples_per_second": reported,
        "input_wait_share": waited / seconds if seconds else None,
        "step_seconds_without_wait": (seconds - waited) / steps if steps else None,
    }


def _bytes_per_example(folder: Path) -> float:
    total = sum(path.stat().st_size for path in folder.glob("train-*.parquet"))
    return total / generate.load(folder).parameters.train_rows


def _values(rows: Sequence[Row], side: str, name: str) -> list[float]:
    return [row[name] for row in rows if row["side"] == side]


def _checks(rows: Sequence[Row]) -> list[Check]:
    rate = "examples_per_second"
    per_core = [each / rungs.CORES for each in _values(rows, TRAINING, rate)]
    decoded = [a / b for a, b in zip(_values(rows, DECODING, rate), per_core, strict=True)]
    slow, free = ([row for row in rows if row["side"] == side] for side in (SLOW, FREE))
    added = [_shown(a, b) for a, b in zip(slow, free, strict=True)]
    return [
        _within("decoding over training, both for each core", decoded, 5.0, None),
        _within(
            "free link: share of time waiting for input", _values(rows, FREE, "input_wait_share"), None, 0.05
        ),
        _within(
            "slow link: share of time waiting for input", _values(rows, SLOW, "input_wait_share"), 0.35, 0.65
        ),
        _within("slow link: of the time that it adds, shown as waiting for input", added, 0.8, 1.05),
    ]


def _shown(slow: Row, free: Row) -> float:
    """Return how much of the time that an example takes longer behind the slow link is input wait.

    Some is not: after a wait a step begins with cold caches, and the small pieces of the link cost CPU.
    """
    seconds, before = (1 / row["reported_examples_per_second"] for row in (slow, free))
    share, share_before = (row["input_wait_share"] for row in (slow, free))
    return float((share * seconds - share_before * before) / (seconds - before))


def _within(name: str, values: Sequence[float], least: float | None, most: float | None) -> Check:
    """Return the check that the mean of the values, with its whole interval, lies between two bounds."""
    value, low, high = interval(values)
    bounds = [f"{sign} {bound:g}" for sign, bound in ((">=", least), ("<=", most)) if bound is not None]
    holds = (least is None or low >= least) and (most is None or high <= most)
    return Check(name=name, value=value, low=low, high=high, target=" and ".join(bounds), holds=holds)


def draw(result: Result, path: Path) -> None:
    """Draw where the time of a step goes on both links."""
    groups = {
        f"{side}: {name}": [row[key] for row in result.rows if row["side"] == side]
        for side in (FREE, SLOW)
        for name, key in (
            ("waiting, share", "input_wait_share"),
            ("step, seconds", "step_seconds_without_wait"),
        )
    }
    plots.strips(path, groups, label="share of time, or seconds", title="A slow link is input wait")
