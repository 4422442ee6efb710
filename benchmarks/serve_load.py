"""What a server bears: 50 users at once with 10,000 stored jobs and a live one of 220 replicas, and 200 who
follow that one; and how soon a browser shows something.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import psutil
from support.served import Server, serving

from benchmarks import busy_homes, large_jobs, paints, plots
from benchmarks.protocols import Bench, Check, Result, Row, at_most, none, percentile_at_most, reported
from paceline.services.local import state_dirs

JOBS, USERS, FOLLOWERS = 10_000, 50, 200
#: How long users look, and for how long others follow; and the same when it is to be quick.
LOOK_SECONDS, FOLLOW_SECONDS = 60.0, 600.0
QUICK_LOOK_SECONDS, QUICK_FOLLOW_SECONDS = 10.0, 20.0
#: How often a browser opens each page.
PAINTS, QUICK_PAINTS = 20, 5
#: Each user waits so long between two requests: an open page asks for what changes so often.
PAUSE_SECONDS = 2.0
ANSWER_SECONDS, BEHIND_SECONDS, PAINT_SECONDS, MEMORY_BYTES, GROWTH = 0.3, 2.0, 1.0, 400e6, 1.05
JOB_PAGE = f"/jobs/{large_jobs.NAME}"
#: What a browser opens.
PAGES = {"job list": "/", "job page": JOB_PAGE}
#: What each user asks for in turn: the pages, and then the parts of them that change.
PATHS = {
    **PAGES, "job list, sorted": "/?sort=speed", "job list, found": "/?search=job-77&label=team=ads",
    "job list, part": "/?part=true", "job page, part": f"{JOB_PAGE}/now",
    "job page, course": f"/api/v1{JOB_PAGE}/course?gauge=cpu", "job page, time line": f"{JOB_PAGE}/timeline",
    "job page, steps": f"{JOB_PAGE}/steps", "job page, output": f"/api/v1{JOB_PAGE}/logs?after=",
}  # fmt: skip


def run(bench: Bench) -> list[Check]:
    """Fill a store, start a server over it, and ask it."""
    paints.chromium()
    look, follow = (
        (QUICK_LOOK_SECONDS, QUICK_FOLLOW_SECONDS) if bench.quick else (LOOK_SECONDS, FOLLOW_SECONDS)
    )
    bench.plan(3)
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        home = state_dirs.Home.from_environment({"PACELINE_HOME": folder})
        busy_homes.fill(home, JOBS // 10 if bench.quick else JOBS)
        for name, use in (
            ("users", lambda served: asyncio.run(_users(served, seconds=look))),
            ("followers", lambda served: asyncio.run(_follow(served, seconds=follow))),
            ("browser", functools.partial(_open, repeats=QUICK_PAINTS if bench.quick else PAINTS)),
        ):
            bench.repeat(name, functools.partial(_loaded, home, use))
    return list(_checks(bench.rows))


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    users, followers, browser = rows
    for name in PATHS:
        yield percentile_at_most(
            f"{name}, seconds, 95th percentile of {USERS} users at once", users["seconds"][name], 95,
            ANSWER_SECONDS,
        )  # fmt: skip
    for name in PAGES:
        yield percentile_at_most(
            f"{name}, seconds to the first paint, 95th percentile",
            browser["seconds"][name],
            95,
            PAINT_SECONDS,
        )
    yield none("answers that were errors", [users["errors"], followers["errors"]])
    yield percentile_at_most(
        "seconds that updates are behind what was measured, 95th percentile", followers["behind"], 95,
        BEHIND_SECONDS,
    )  # fmt: skip
    yield reported("seconds that followers are behind just before the next update", followers["oldest"])
    for row in (users, followers):
        yield at_most(f"memory of the server, bytes, {row['key']}", [max(row["memory"])], MEMORY_BYTES)
    third = len(followers["memory"]) // 3
    last, second = followers["memory"][-third:], followers["memory"][third : 2 * third]
    growth = statistics.median(last) / statistics.median(second)
    yield at_most("memory in the last third of following over that in the second", [growth], GROWTH)


def _loaded(home: state_dirs.Home, use: Any) -> dict[str, Any]:
    """Have a server used that has a large live job."""
    with busy_homes.living(home), serving(home) as served:
        time.sleep(5.0)  # It has something to tell.
        return dict(use(served))


def _open(served: Server, *, repeats: int) -> dict[str, Any]:
    return {"seconds": paints.first_paints(served, PAGES, repeats)}


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
    """Let many follow the live job, and note how far behind what was measured they are.

    The progress that they are told says which second it was measured in.
    """
    behind: list[float] = []
    oldest: list[float] = []
    errors = 0
    until = time.monotonic() + seconds

    async def follow(client: httpx2.AsyncClient, start: float, number: int) -> None:
        nonlocal errors
        await asyncio.sleep(0.01 * number)
        known: float | None = None
        async with client.stream("GET", f"/api/v1{JOB_PAGE}/stream") as answer:
            errors += answer.status_code != 200
            async for line in answer.aiter_lines():
                if line.startswith("data: ") and '"progress"' in line:
                    now, measured = time.time(), start + _second(line)
                    if known is not None:
                        oldest.append(now - known)
                    if known is not None and measured > known:  # The first may be as old as it likes.
                        behind.append(now - measured)
                    known = measured
                if time.monotonic() >= until:
                    return

    async with _client(served) as client:
        job = (await client.get(f"/api/v1{JOB_PAGE}", headers={"Accept": "application/json"})).json()
        submitted = datetime.datetime.fromisoformat(job["submitted_at"]).timestamp()
        start = submitted + large_jobs.WAITED_SECONDS
        memory = asyncio.ensure_future(_memory(served.pid, until))
        await asyncio.gather(*(follow(client, start, number) for number in range(FOLLOWERS)))
        return {
            "behind": behind[:: max(1, len(behind) // 5000)],
            "oldest": oldest[:: max(1, len(oldest) // 5000)],
            "errors": errors,
            "memory": await memory,
        }


def _second(line: str) -> int:
    """Return the second of the live job that an update tells of."""
    progress: float = json.loads(line.removeprefix("data: "))["progress"]
    return round(progress * busy_homes.STEPS)


async def _memory(pid: int, until: float) -> list[int]:
    """Return what the server has of memory, once a second."""
    found = []
    while time.monotonic() < until:
        found.append(psutil.Process(pid).memory_info().rss)
        await asyncio.sleep(1.0)
    return found


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many answers each figure rests on."""
    users, followers, browser = rows
    asked = sum(map(len, users["seconds"].values()))
    yield (
        f"{asked} answers to {USERS} users, each of whom waits {PAUSE_SECONDS:g} s between two; "
        f"{len(followers['memory'])} s with {FOLLOWERS} followers. Users, followers, the browser and what is "
        f"measured share the {os.cpu_count()} cores with the server."
    )
    for name, seconds in browser["seconds"].items():
        yield f"First paint of the {name}, opened {len(seconds)} times: {paints.spread(seconds)}."


def draw(result: Result, path: Path) -> None:
    """Draw how long answers take."""
    seconds = result.rows[0]["seconds"]
    plots.strips(
        path, {name: values[:400] for name, values in seconds.items()}, label="seconds",
        title="Answers to 50 users at once", limits=dict.fromkeys(seconds, ANSWER_SECONDS),
    )  # fmt: skip
