"""Probes killed at random moments: what they have cut comes back, always.

Each job is real, with an emulated host; its trainers count as many examples as the quota of one server lets
them. A probe of it is killed while it begins, cuts, measures or puts back; and with it, in turn, the
supervisor that knows when a cut ends, or the guard, too. A guard starts its supervisor again; where both are
killed, the job is lost until it is resumed. Then quotas, weights, links, paused processes and the job file
have to be as they were before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from pathlib import Path

from support import group_files, kills, leftovers, paced_cores

from benchmarks import plots, trials
from benchmarks.protocols import Bench, Check, Result, Row, none, reported
from paceline.engines.local import machines
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.jobs.runs import Run
from paceline.services.local import jobs
from paceline.services.studying.probes import ProbeTimes

PROBE, SUPERVISOR, GUARD = "the probe", "probe and supervisor", "probe, supervisor and guard"
VICTIMS = (PROBE, SUPERVISOR, GUARD)
KILLS = 1000
#: So many jobs at once, each with a probe that is killed so often.
JOBS, KILLS_OF_A_JOB = 10, 20
#: A probe is killed after at most so many seconds: by then it has cut every kind of thing.
MOST_SECONDS = 30.0
TIMES = ProbeTimes(window=0.5, settle=0.2, known=2.0, most=240.0)
PATIENCE_SECONDS = 240.0
#: What is not back then is noted.
LATE_SECONDS = 15.0
_POLL_SECONDS = 0.2
#: Of cgroups v1 and v2: what a probe may write.
_FILES = frozenset(
    ("cpu.cfs_quota_us", "cpu.shares", "memory.limit_in_bytes", "cpu.max", "cpu.weight", "memory.max")
)


def run(bench: Bench) -> list[Check]:
    """Kill probes, of several jobs side by side."""
    of_a_job = 3 if bench.quick else KILLS_OF_A_JOB
    rounds = 1 if bench.quick else KILLS // (JOBS * KILLS_OF_A_JOB)
    bench.plan(rounds)
    for number in range(rounds):
        bench.repeat(f"round {number}", functools.partial(_round, number, of_a_job))
    return list(_checks([kill for row in bench.rows for kill in row["kills"]], quick=bench.quick))


def _checks(rows: Sequence[Row], *, quick: bool) -> Iterator[Check]:
    count, least = len(rows), 0 if quick else KILLS
    yield Check(name="kills", value=count, low=count, high=count, target=f">= {least}", holds=count >= least)
    yield none("after which something was not as before", [bool(row["changed"]) for row in rows])
    for victim in VICTIMS:
        own = [row for row in rows if row["victim"] == victim]
        if own:
            cut = [float(row["cut"]) for row in own]
            yield reported(f"share of kills that met something cut, {victim}", cut)
            seconds = [row["seconds"] for row in own if row["seconds"] is not None]
            yield reported(f"seconds until all is as before, {victim}", seconds)


def _round(number: int, of_a_job: int) -> Row:
    """Kill probes of some jobs side by side; return what became of each kill."""
    with futures.ThreadPoolExecutor(JOBS) as pool:
        rows = pool.map(lambda job: _killed(f"{number} {job}", of_a_job), range(JOBS))
    return {"kills": [kill for found in rows for kill in found]}


def _killed(seed: str, count: int) -> list[Row]:
    """Run a job and kill so many probes of it; return what was seen after each."""
    chance, found = random.Random(seed), list[Row]()
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder, trials.service() as api:
        training = api.submit(_job(Path(folder)), source="", base=Path(folder))
        try:
            paced_cores.training(api, training)
            before = state(api, training)
            while len(found) < count:
                victim, is_cut_wanted = VICTIMS[len(found) % len(VICTIMS)], len(found) % 2 == 1
                after_seconds = chance.uniform(0.0, MOST_SECONDS)
                found.append(_kill(api, training, victim, is_cut_wanted, after_seconds, before))
        finally:
            api.stop(training.name)
            api.wait(training.name, timeout_seconds=PATIENCE_SECONDS)
    return found


def _job(folder: Path) -> JobSpec:
    host = Host(name="host-0", bandwidth_bits_per_second=1_000_000_000)
    return dataclasses.replace(paced_cores.job(folder, "ps-0"), hosts=(host,))


def _kill(
    api: jobs.Jobs,
    training: Run,
    victim: str,
    is_cut_wanted: bool,
    after_seconds: float,
    before: Mapping[str, str],
) -> Row:
    """Probe a job, kill, and wait until all is as it was before.

    Args:
        api: where the job is.
        training: the job.
        victim: what is killed.
        is_cut_wanted: whether to wait then until something is cut.
        after_seconds: of the probe; one that ends before that is begun anew.
        before: the state that has to come back.
    """
    until = time.monotonic() + after_seconds
    while True:
        probe = paced_cores.probe(api, training, TIMES)
        with contextlib.suppress(subprocess.TimeoutExpired):
            probe.wait(max(0.0, until - time.monotonic()))
            continue
        while is_cut_wanted and probe.poll() is None and state(api, training) == before:
            time.sleep(_POLL_SECONDS)
        if probe.poll() is None:
            break
    guard, *supervisor = leftovers.supervisor_pids(RunFolder.of(training))
    others = {PROBE: [], SUPERVISOR: supervisor, GUARD: [guard, *supervisor]}[victim]
    was_cut = state(api, training) != before
    for pid in (*others, probe.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    probe.wait()
    killed_at = time.monotonic()
    if victim == GUARD:
        kills.until(lambda: api.is_lost(api.get(training.name)), seconds=PATIENCE_SECONDS)
        api.resume(training.name)
    back, late = _seconds_until_back(api, training, before, killed_at)
    changed = [] if back is not None else _differences(before, state(api, training)) or ["the supervisor"]
    return {"victim": victim, "cut": was_cut, "seconds": back, "late": late, "changed": changed}


def _seconds_until_back(
    api: jobs.Jobs, training: Run, before: Mapping[str, str], since: float
) -> tuple[float | None, list[str]]:
    """Return when all was as before, if it ever was; and what was not yet when most of them are."""
    late = list[str]()

    def is_back() -> bool:
        now = state(api, training)
        if time.monotonic() - since > LATE_SECONDS and not late:
            late.extend(_differences(before, now) or ["the supervisor"])
        return now == before and len(leftovers.supervisor_pids(RunFolder.of(training))) == 2

    with contextlib.suppress(TimeoutError):
        kills.until(is_back, seconds=PATIENCE_SECONDS, every_seconds=_POLL_SECONDS)
        return time.monotonic() - since, late
    return None, late


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{name}: {before.get(name)!r}, now {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def state(api: jobs.Jobs, training: Run) -> dict[str, str]:
    """Return all that a probe may change of a job: what the kernel has, and what is stored."""
    folder = RunFolder.of(training)
    groups = machines.read().cgroups
    assert groups is not None, "there are cgroups where this is run"
    found = group_files.links(training)
    for root in {groups.roots["cpu"], groups.roots["memory"]}:
        for path in (root / folder.token).rglob("*"):
            if path.name in _FILES:
                found[str(path.relative_to(root))] = path.read_text()
    for pid in groups.pids(folder.token):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/stat").read_text()
            if text.rpartition(")")[2].split()[0] == "T":
                found[f"process {pid}"] = "stopped"
    stored = api.get(training.name)
    found["job file"] = f"{stored.spec}"
    found["adjustments"] = f"{api.store.load_state(training.name).adjustments}"
    return found


def draw(result: Result, path: Path) -> None:
    """Draw how long it took until all was as before."""
    kills_of_all = [kill for row in result.rows for kill in row["kills"]]
    groups = {
        victim: [
            row["seconds"] for row in kills_of_all if row["victim"] == victim and row["seconds"] is not None
        ]
        for victim in VICTIMS
    }
    plots.strips(
        path, groups, label="seconds until all is as before", title="Probes killed at random moments"
    )
