"""What each cure gains on unchanged scripts, by style and TensorFlow, and where it is refused.

A cell is a cure, a style and its TensorFlow (``cure_cells``). Its pairs run one after the other, without the
cure and with it, the one first in one pair and the other in the next; the pairs have the seeds 0, 1 and 2.
Both sides train as many examples. The speed is what all trainers print with their own clocks from the moment
at which all of them train; the loss is the mean of what they print over the last quarter. Then the same
script, in one process in plain TensorFlow without any of Paceline, restores the checkpoint of each side and
says its loss on examples that were held out.

Other cells count seconds until the second worker's first step, or the trainers that train at all, or ask for
the reason of a refusal. In sessions with more than one trainer both sides wait for the chief a second at a
time, or most of a run would have one worker only.

All of it takes about five hours on two cores: 120 pairs of some 130 s, and 22 jobs of a minute or two. What
``tests/instrumentation/fetch-tensorflows`` has not fetched is left out, and so is a cell that needs emulated
hosts where this user may not make them.
"""

from __future__ import annotations

import contextlib
import functools
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from support import interpreters, kills
from support.prerequisites import NotHere

from benchmarks import cure_cells, plots, trials
from benchmarks.cure_cells import CELLS, FOREVER, RATE, REFUSED, STARTS, WAIT, Cell
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, at_least, at_most, interval, none, reported
from paceline.engines.local.folders import RunFolder
from paceline.errors import Conflict, PacelineError
from paceline.model.jobs.runs import CURED, Run
from paceline.model.variables import cures
from paceline.model.variables.cures import CureOutcome
from paceline.services.local import jobs

SEEDS = (0, 1, 2)
#: The first steps are slower; they are left out.
WARM_UP_SECONDS = 3.0
#: Losses are those of this part of the steps, the last.
COMPARED = 0.25
LOSS_LIMIT, HELD_OUT_LIMIT, WAIT_LIMIT = 0.01, 0.05, 10.0
#: A trainer that has made no step in so long waits for another one. Imports and graphs take 20 s.
STARTS_SECONDS, QUICK_STARTS_SECONDS = 90.0, 45.0
#: In a script that trains for so long a cure has said all that it has to say.
SAID_SECONDS = 5.0
_CHECKPOINT = "checkpoint"
NOTHING = "nothing was found in the script that it could change"
QUICK = ("lazy-adam feed", "device-filters monitored filters of its own")
_MADE = re.compile(r"^made (\d+) at ([0-9.]+)$", re.MULTILINE)
_LOSS = re.compile(r"^step (\d+) loss (\S+)$", re.MULTILINE)
_FIRST = re.compile(r"^(?:first step|made \d+) at ([0-9.]+)$", re.MULTILINE)
RESTORED = re.compile(r"^restored loss (\S+)$", re.MULTILINE)


def run(bench: Bench) -> list[Check]:
    """Measure each cell; with ``--quick`` a pair and a refusal."""
    cells = [
        cell
        for cell in CELLS
        if not bench.quick or cell.name in QUICK
        if interpreters.with_tensorflow(cell.version) and not cure_cells.lacks_hosts(cell)
    ]
    if not cells:
        raise NotHere("no TensorFlow is fetched: tests/instrumentation/fetch-tensorflows has them")
    seeds = SEEDS[: 1 if bench.quick else None]
    bench.plan(sum(len(seeds) if cell.kind == RATE else 1 for cell in cells))
    limit = QUICK_STARTS_SECONDS if bench.quick else STARTS_SECONDS
    others: dict[str, Callable[[Cell], Row]] = {
        WAIT: _waited, STARTS: functools.partial(_started, limit), REFUSED: _refused,
    }  # fmt: skip
    for cell in cells:
        key = f"{cell.name} {cell.version}"
        if cell.kind != RATE:
            bench.repeat(key, functools.partial(_row, cell, others[cell.kind]))
            continue
        for seed in seeds:
            steps = cell.steps // 5 if bench.quick else cell.steps
            measure = functools.partial(_pair, seed, steps)
            row = bench.repeat(f"{key} {seed}", functools.partial(_row, cell, measure))
            if row["refused"] is not None or row["failure"] is not None:
                break
    return list(checks(bench.rows))


def _row(cell: Cell, measure: Callable[[Cell], Row]) -> Row:
    """Return what is measured of a cell, or why that could not be done."""
    row: Row = {
        "cell": cell.name, "cure": cell.cure, "style": cell.style, "version": cell.version, "kind": cell.kind,
        "about": cell.about, "applied": None, "refused": None, "failure": None,
    }  # fmt: skip
    try:
        return {**row, **measure(cell)}
    except (PacelineError, RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
        return {**row, "failure": str(error) or type(error).__name__}


# --- Jobs


@contextlib.contextmanager
def _training(
    cell: Cell, seed: int = 0, steps: int = FOREVER, *, is_cured: bool
) -> Iterator[tuple[jobs.Jobs, Run]]:
    """Yield a job that has begun; it is stopped at the end if it has not ended by itself."""
    with trials.service() as api:
        folder = api.home.path / _CHECKPOINT
        spec = cell.spec(_python(cell.version), folder, seed=seed, steps=steps, is_cured=is_cured)
        begun = api.submit(spec, source="", base=ROOT)
        try:
            yield api, begun
        finally:
            with contextlib.suppress(Conflict):  # It has ended.
                api.stop(begun.name)
            api.wait(begun.name, timeout_seconds=120)


# --- Jobs that train to their end


def _pair(seed: int, steps: int, cell: Cell) -> Row:
    """Train without the cure and with it, in one order or the other; stop where the cure is not applied."""
    found: dict[bool, Row] = {}
    for is_cured in (seed % 2 == 0, seed % 2 != 0):
        found[is_cured] = side = _trained(cell, seed, steps, is_cured=is_cured)
        if is_cured and side["refused"] is not None:
            return {"seed": seed, "refused": side["refused"]}
    without, with_it = found[False], found[True]
    return {
        "seed": seed, "applied": with_it["applied"],
        **{name: [without[name], with_it[name]] for name in ("rate", "loss", "held_out")},
    }  # fmt: skip


def _trained(cell: Cell, seed: int, steps: int, *, is_cured: bool) -> Row:
    """Let a job train to its end, and restore its checkpoint."""
    with _training(cell, seed, steps, is_cured=is_cured) as (api, begun):
        ended = api.wait(begun.name, timeout_seconds=trials.TIMEOUT_SECONDS)
        if ended.phase != "succeeded":
            raise RuntimeError(f"{ended.phase}: {ended.message}")
        printed = _printed(ended)
        return {
            **_said(api, ended, cell),
            "rate": rate([made(text) for text in printed.values()], cell.batch),
            "loss": last_loss(printed.values(), steps),
            "held_out": _restored(cell, api.home.path / _CHECKPOINT),
        }


def _restored(cell: Cell, folder: Path) -> float | None:
    """Return the loss of a checkpoint in plain TensorFlow; None: it is not restored."""
    done = subprocess.run(
        [_python(cell.version), cell.script, *cell.words(folder, 0, 0), "--restore"],
        env=cure_cells.environment(), capture_output=True, text=True, check=False,
        timeout=trials.START_SECONDS,
    )  # fmt: skip
    found = RESTORED.findall(done.stdout)
    return float(found[-1]) if found else None


# --- Jobs that are stopped when they have shown what is asked


def _first_steps(api: jobs.Jobs, begun: Run, count: int, seconds: float) -> list[float]:
    """Return when trainers made their first steps, once so many did or the time is over."""

    def firsts() -> list[float]:
        if api.get(begun.name).phase.is_final:
            raise RuntimeError(f"{begun.name}: {api.get(begun.name).message}")
        found = (_FIRST.search(text) for text in _printed(begun).values())
        return [float(each[1]) for each in found if each]

    with contextlib.suppress(TimeoutError):
        kills.until(lambda: len(firsts()) >= count, seconds=seconds, every_seconds=0.2)
    return firsts()


def _waited(cell: Cell) -> Row:
    """Return after how many seconds the last trainer follows the first, without the cure and with it."""
    seconds, said = [], {}
    for is_cured in (False, True):
        with _training(cell, is_cured=is_cured) as (api, begun):
            firsts = _first_steps(api, begun, cell.trainers, trials.START_SECONDS)
            if len(firsts) < cell.trainers:
                raise RuntimeError("not all trainers have begun")
            seconds.append(max(firsts) - min(firsts))
            said = _heard(api, begun, cell)
    return {**said, "seconds": seconds}


def _started(limit: float, cell: Cell) -> Row:
    """Return how many trainers train within a time, without the cure and with it, of those that are there."""
    present = cell.trainers - ("--away" in cell.arguments)
    trained, said = [], {}
    for is_cured in (False, True):
        with _training(cell, is_cured=is_cured) as (api, begun):
            trained.append(len(_first_steps(api, begun, present, limit)))
            said = _heard(api, begun, cell)
    return {**said, "trained": trained, "present": present}


def _refused(cell: Cell) -> Row:
    """Return why a cure is refused, and whether the script trains all the same."""
    with _training(cell, is_cured=True) as (api, begun):
        firsts = _first_steps(api, begun, cell.trainers, trials.START_SECONDS)
        return {**_heard(api, begun, cell), "trained": [len(firsts)], "present": cell.trainers}


def _heard(api: jobs.Jobs, begun: Run, cell: Cell) -> Row:
    """Return what was said of the cure by a job that trains, once it had the time to say it."""
    time.sleep(SAID_SECONDS)
    return _said(api, begun, cell)


# --- What was said


def _python(version: str) -> Path:
    python = interpreters.with_tensorflow(version)
    if python is None:
        raise RuntimeError(f"TensorFlow {version} is not fetched any more")
    return python


def _printed(run: Run) -> dict[str, str]:
    """Return what each replica has printed."""
    logs = RunFolder.of(run).path.glob("logs/*.log")
    return {path.name.partition(".")[0]: path.read_text(errors="replace") for path in sorted(logs)}


def _said(api: jobs.Jobs, run: Run, cell: Cell) -> Row:
    events = (event for _, event in api.store.events(run.name) if event.kind == CURED)
    found = (cures.parse(event.message) for event in events)
    return outcome(each for each in found if each is not None and each.cure == cell.cure)


def outcome(outcomes: Iterable[CureOutcome]) -> Row:
    """Return to what a cure was applied; if to nothing, why it was refused."""
    said = list(dict.fromkeys(outcomes))
    applied = [f"{each.count}: {each.detail}" for each in said if each.is_applied]
    refused = [each.detail for each in said if not each.is_applied]
    if applied:
        return {"applied": "; ".join(dict.fromkeys(applied)), "refused": None}
    return {"applied": None, "refused": "; ".join(dict.fromkeys(refused)) or NOTHING}


def made(text: str) -> list[tuple[int, float]]:
    """Return how many steps a replica had made at which moments, as it prints them."""
    return [(int(steps), float(at)) for steps, at in _MADE.findall(text)]


def rate(trainers: Sequence[Sequence[tuple[int, float]]], batch: int) -> float:
    """Return the examples a second of all trainers while all of them train.

    Args:
        trainers: how many steps each had made at which moments; nothing of what makes none.
        batch: examples of a step.

    Raises:
        RuntimeError: they did not train at the same time for long enough.
    """
    known = [each for each in trainers if each]
    since = max((each[0][1] for each in known), default=0.0) + WARM_UP_SECONDS
    until = min((each[-1][1] for each in known), default=0.0)
    total = 0.0
    for each in known:
        within = [(steps, at) for steps, at in each if since <= at <= until]
        if len(within) < 2:
            raise RuntimeError(f"too few steps in the {until - since:.1f} s in which all trained")
        (first, begun), *_, (last, ended) = within
        total += batch * (last - first) / (ended - begun)
    if not total:
        raise RuntimeError("no steps were printed")
    return total


def last_loss(texts: Iterable[str], steps: int) -> float:
    """Return the mean of the losses that trainers print of the last part of so many global steps.

    Raises:
        RuntimeError: they print none.
    """
    losses = [
        float(loss)
        for text in texts
        for step, loss in _LOSS.findall(text)
        if int(step) > (1 - COMPARED) * steps
    ]
    if not losses:
        raise RuntimeError("no losses were printed")
    return statistics.mean(losses)


# --- Judging


def apart(values: Sequence[float]) -> float:
    """Return by which part of the first the second differs."""
    before, after = values
    return after / before - 1


def _pairs(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the pairs of each cell and TensorFlow in which the cure was applied."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["kind"] == RATE and row["applied"] is not None:
            found.setdefault((row["cell"], row["version"]), []).append(row)
    return found


def _is_restored(row: Row) -> bool:
    """Whether the checkpoint with the cure is read, and is as good as the one without."""
    return None not in row["held_out"] and abs(apart(row["held_out"])) <= HELD_OUT_LIMIT


def checks(rows: Sequence[Row]) -> Iterator[Check]:
    """Yield what is claimed of the cures, and whether the rows show it."""
    by_cell = _pairs(rows)
    for cure in cures.CURES:
        own = {cell: pairs for cell, pairs in by_cell.items() if pairs[0]["cure"] == cure.name}
        if not own:
            continue
        factors = [row["rate"][1] / row["rate"][0] for pairs in own.values() for row in pairs]
        yield reported(f"{cure.name}: times the examples/s, {len(own)} cells", factors)
        losses = [statistics.mean(apart(row["loss"]) for row in pairs) for pairs in own.values()]
        worst = max(losses, key=abs)
        yield Check(
            name=f"{cure.name}: loss apart after as many examples, the farthest of {len(own)} cells",
            value=worst, low=min(losses), high=max(losses), target=f"within {LOSS_LIMIT:g}",
            holds=abs(worst) <= LOSS_LIMIT,
        )  # fmt: skip
    unfit = len({(row["cell"], row["version"]) for row in rows if row["kind"] == RATE and row["refused"]})
    yield Check(
        name="cells of pairs in which a cure was refused", value=unfit, low=unfit, high=unfit,
        target="reported", holds=True,
    )  # fmt: skip
    restored = [float(_is_restored(row)) for pairs in by_cell.values() for row in pairs]
    if restored:
        yield at_least("checkpoints of runs with a cure that plain TensorFlow restores", restored, 1)
    waited = [row["seconds"] for row in rows if row.get("seconds")]
    if waited:
        yield reported("seconds between first steps, as it came", [before for before, _ in waited])
        yield at_most("the same with recovery-wait", [after for _, after in waited], WAIT_LIMIT)
    started = [row for row in rows if row["kind"] == STARTS and row["failure"] is None]
    if started:
        yield reported("of the trainers that are there, train as it came", [_part(row, 0) for row in started])
        yield at_least("the same with the cure", [_part(row, 1) for row in started], 1)
    refused = [row for row in rows if row["kind"] == REFUSED and row["failure"] is None]
    if refused:
        given = [float(row["refused"] is not None and _part(row, 0) == 1) for row in refused]
        yield at_least("refused with a reason while the script trains", given, 1)
    yield none("cells that failed", [row["failure"] is not None for row in rows])


def _part(row: Row, side: int) -> float:
    return float(row["trained"][side] / row["present"])


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table of the pairs, one of what is no speed, and one of refusals."""
    yield "| cure | style | TensorFlow | times the examples/s | loss apart, % | checkpoint | applied to |"
    yield _ruled(7)
    for pairs in _pairs(rows).values():
        value, low, high = interval([row["rate"][1] / row["rate"][0] for row in pairs])
        losses = ", ".join(f"{100 * apart(row['loss']):+.2f}" for row in pairs)
        restored = f"{sum(map(_is_restored, pairs))} of {len(pairs)} restored"
        yield (
            f"| {_named(pairs[0])} | {value:.2f} ({low:.2f} to {high:.2f}) | {losses} | {restored} | "
            f"{pairs[0]['applied']} |"
        )
    yield from _others(rows)
    yield from ("", "| cure | style | TensorFlow | where | why it is refused |", _ruled(5))
    for row in rows:
        if row["failure"] is not None:
            yield f"| {_named(row)} | {row['about']} | failed: {_cell(row['failure'])} |"
        elif row["refused"] is not None and row["kind"] in (RATE, REFUSED):
            yield f"| {_named(row)} | {row['about']} | {_cell(row['refused'])} |"


def _others(rows: Sequence[Row]) -> Iterator[str]:
    yield from ("", "| cure | style | TensorFlow | what | as it came | with the cure |", _ruled(6))
    for row in rows:
        if row.get("seconds"):
            before, after = row["seconds"]
            yield f"| {_named(row)} | seconds between first steps | {before:.1f} | {after:.1f} |"
        elif row["kind"] == STARTS and row["failure"] is None:
            before, after = (f"{count} of {row['present']}" for count in row["trained"])
            yield f"| {_named(row)} | {row['about']}: trainers that train | {before} | {after} |"


def _ruled(columns: int) -> str:
    return "|" + " --- |" * columns


def _named(row: Row) -> str:
    return f"{row['cure']} | {row['style']} | {row['version']}"


def _cell(text: str) -> str:
    """Return a text as it may stand in a cell of a table."""
    return " ".join(text.replace("|", "/").split())


def draw(result: Result, path: Path) -> None:
    """Draw the factors of each cure, over all of its cells."""
    groups: dict[str, list[float]] = {}
    for pairs in _pairs(result.rows).values():
        factors = [row["rate"][1] / row["rate"][0] for row in pairs]
        groups.setdefault(pairs[0]["cure"], []).extend(factors)
    title = "What cures gain on unchanged scripts (each dot a pair)"
    plots.strips(path, groups or {"no pair": [1.0]}, label="times the examples/s", title=title)
