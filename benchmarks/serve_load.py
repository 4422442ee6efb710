"""What a server bears: 50 users at once with 10,000 stored jobs and a live one of 220 replicas, and 200 who
follow that one.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import functools
import itertools
import json
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import psutil

from benchmarks import large_jobs, plots
from benchmarks.protocols import Bench, Check, Result, Row, at_most, none, percentile_at_most
from benchmarks.served import Server, serving
from paceline.control import states
from paceline.model.digests import Digest
from paceline.model.jobs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.model.runs import Run
from paceline.model.statuses import JobPhase
from paceline.services import homes, supervisors
from paceline.stores import open_store

JOBS, USERS, FOLLOWERS = 10_000, 50, 200
#: How long users look, and for how long others follow; and the same when it is to be quick.
LOOK_SECONDS, FOLLOW_SECONDS = 60.0, 600.0
QUICK_LOOK_SECONDS, QUICK_FOLLOW_SECONDS = 10.0, 20.0
#: An open page asks for what changes so often.
PAUSE_SECONDS = 2.0
ANSWER_SECONDS, BEHIND_SECONDS, MEMORY_BYTES, GROWTH = 0.3, 2.0, 400e6, 1.1
#: What each user asks for in turn: the pages, and then the parts of them that change.
PATHS = {
    "job list": "/", "job list, sorted": "/?sort=speed", "job list, found": "/?search=job-77&label=team=ads",
    "job page": f"/jobs/{large_jobs.NAME}", "job list, part": "/?part=true",
    "job page, part": f"/jobs/{large_jobs.NAME}/now",
}  # fmt: skip


def run(bench: Bench) -> list[Check]:
    """Fill a store, start a server over it, and ask it."""
    look, follow = (
        (QUICK_LOOK_SECONDS, QUICK_FOLLOW_SECONDS) if bench.quick else (LOOK_SECONDS, FOLLOW_SECONDS)
    )
    jobs = JOBS // 10 if bench.quick else JOBS
    bench.plan(2)
    bench.repeat("users", functools.partial(_loaded, jobs, functools.partial(_users, seconds=look)))
    bench.repeat("followers", functools.partial(_loaded, jobs, functools.partial(_follow, seconds=follow)))
    return list(_checks(bench.rows))


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    users, followers = rows
    for name in PATHS:
        yield percentile_at_most(
            f"{name}, seconds, 95th percentile of {USERS} users at once", users["seconds"][name], 95,
            ANSWER_SECONDS,
        )  # fmt: skip
    yield none("answers that were errors", [users["errors"], followers["errors"]])
    yield percentile_at_most(
        "seconds that updates are behind what was measured, 95th percentile", followers["behind"], 95,
        BEHIND_SECONDS,
    )  # fmt: skip
    for row in rows:
        yield at_most(f"memory of the server, bytes, {row['key']}", [max(row["memory"])], MEMORY_BYTES)
    third = len(followers["memory"]) // 3
    growth = max(followers["memory"][-third:]) / max(followers["memory"][third : 2 * third])
    yield at_most("memory in the last third of following over that in the second", [growth], GROWTH)


def _loaded(jobs: int, use: Any) -> dict[str, Any]:
    """Have a server used over a store of so many jobs and a live one."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        home = homes.Home.from_environment({"PACELINE_HOME": folder})
        _fill(home, jobs)
        with _living(home), serving(home) as served:
            time.sleep(5.0)  # It has something to tell.
            return dict(asyncio.run(use(served)))


def _fill(home: homes.Home, jobs: int) -> None:
    roles = (RoleSpec(role=Role.PS, replicas=2), RoleSpec(role=Role.WORKER, replicas=8))
    now = time.time()
    with open_store(home.store_url) as store:
        for number in range(jobs):
            spec = JobSpec(
                name=f"job-{number}", roles=roles, command=("train",),
                labels={"team": ("ads", "search", "feed")[number % 3], "model": f"m{number % 40}"},
            )  # fmt: skip
            at = now - 86_400 - 600.0 * number
            made = Run(
                name=spec.name, spec=spec, source="kind: TrainingJob\n", engine="local",
                directory=str(home.runs / spec.name), submitted_at=at,
            )  # fmt: skip
            state = states.initial(spec)
            store.create_run(made, state)
            store.save_state(spec.name, dataclasses.replace(state, phase=JobPhase.SUCCEEDED), at=at + 500)
            digest = Digest(
                at=at + 600, examples_per_second=1000.0 + number, trend=tuple(map(float, range(20))),
                progress=1.0, imbalance=1.0 + number % 7, code="PS101",
                finding="Every PS is at its CPU limit.",
            )  # fmt: skip
            store.save_digest(spec.name, digest)


@contextlib.contextmanager
def _living(home: homes.Home) -> Iterator[None]:
    """Let a large job live: what is measured of it comes once a second."""
    ended = multiprocessing.Event()
    begun = multiprocessing.Event()
    process = multiprocessing.Process(target=_live, args=(home, begun, ended))
    process.start()
    begun.wait(60)
    try:
        yield
    finally:
        ended.set()
        process.join()


def _live(home: homes.Home, begun: Any, ended: Any) -> None:
    chance, start = random.Random(0), time.time()
    folder = home.folder(large_jobs.NAME)
    folder.path.mkdir(parents=True)
    supervisors.acquire(folder)
    with open_store(home.store_url) as store:
        large_jobs.begin(store, home, at=start)
        for second in itertools.count(1):
            if ended.wait(max(0.0, start + second - time.time())):
                return
            store.append_samples(large_jobs.NAME, large_jobs.samples([time.time()], chance))
            reports = large_jobs.reports([second], start=start, total=100_000, chance=chance)
            store.append_step_reports(large_jobs.NAME, reports)
            begun.set()


def _client(served: Server) -> httpx2.AsyncClient:
    """Return what asks a server as a browser would."""
    limits = httpx2.Limits(max_connections=FOLLOWERS + USERS)
    headers = {"Authorization": f"Bearer {served.token}", "Accept": "text/html"}
    return httpx2.AsyncClient(base_url=served.url, headers=headers, limits=limits, timeout=60.0)


async def _users(served: Server, *, seconds: float) -> dict[str, Any]:
    """Let users look at pages, each at one after the other, and note how long each answer takes."""
    taken: dict[str, list[float]] = {name: [] for name in PATHS}
    errors = 0
    until = time.monotonic() + seconds

    async def use(client: httpx2.AsyncClient, number: int) -> None:
        nonlocal errors
        await asyncio.sleep(PAUSE_SECONDS * number / USERS)
        first = number % len(PATHS)
        for name in itertools.cycle([*PATHS][first:] + [*PATHS][:first]):
            if time.monotonic() >= until:
                return
            begun = time.perf_counter()
            answer = await client.get(PATHS[name])
            taken[name].append(time.perf_counter() - begun)
            errors += answer.status_code != 200
            await asyncio.sleep(PAUSE_SECONDS)

    async with _client(served) as client:
        memory = asyncio.ensure_future(_memory(served.pid, until))
        await asyncio.gather(*(use(client, number) for number in range(USERS)))
        return {"seconds": taken, "errors": errors, "memory": await memory}


async def _follow(served: Server, *, seconds: float) -> dict[str, Any]:
    """Let many follow the live job, and note how far behind what was measured each update is."""
    behind: list[float] = []
    errors = 0
    until = time.monotonic() + seconds

    async def follow(client: httpx2.AsyncClient, number: int) -> None:
        nonlocal errors
        await asyncio.sleep(0.01 * number)
        path = f"/api/v1/jobs/{large_jobs.NAME}/stream"
        async with client.stream("GET", path) as answer:
            errors += answer.status_code != 200
            async for line in answer.aiter_lines():
                if line.startswith("data: ") and '"imbalance"' in line:
                    at = datetime.datetime.fromisoformat(json.loads(line[6:])["at"]).timestamp()
                    behind.append(time.time() - at)
                if time.monotonic() >= until:
                    return

    async with _client(served) as client:
        memory = asyncio.ensure_future(_memory(served.pid, until))
        await asyncio.gather(*(follow(client, number) for number in range(FOLLOWERS)))
        return {"behind": behind[:: max(1, len(behind) // 5000)], "errors": errors, "memory": await memory}


async def _memory(pid: int, until: float) -> list[int]:
    """Return what the server has of memory, once a second."""
    found = []
    while time.monotonic() < until:
        found.append(psutil.Process(pid).memory_info().rss)
        await asyncio.sleep(1.0)
    return found


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many answers each figure rests on."""
    users, followers = rows
    asked = sum(map(len, users["seconds"].values()))
    yield (
        f"{asked} answers to {USERS} users, each of whom waits {PAUSE_SECONDS:g} s between two; "
        f"{len(followers['memory'])} s with {FOLLOWERS} followers. Users, followers and what is measured "
        f"share the {os.cpu_count()} cores with the server."
    )


def draw(result: Result, path: Path) -> None:
    """Draw how long answers take."""
    seconds = result.rows[0]["seconds"]
    plots.strips(
        path, {name: values[:400] for name, values in seconds.items()}, label="seconds",
        title="Answers to 50 users at once", limits=dict.fromkeys(seconds, ANSWER_SECONDS),
    )  # fmt: skip
