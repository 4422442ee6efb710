"""The rungs of the ladder as jobs, and the data that they train on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import trials
from benchmarks.protocols import KEPT
from paceline.examples.clicks import generate
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import Role

CORES = 2
CENSUS = "census"
LIMIT, STRATEGY = "limit: one process", "TF2 strategy"
DOCUMENTED, REFERENCES = "0 as documented", "0 as documented, TF1 variables"
FIRST, BEST = "0 in the library", "6 everything"
SMALL_PAGES = "6 without huge pages"
_SCRIPTS = {
    DOCUMENTED: ("benchmarks.as_documented",),
    REFERENCES: ("benchmarks.as_documented", "--reference-variables"),
    STRATEGY: ("benchmarks.strategy",),
}
_PLAIN_PAGES = {"GLIBC_TUNABLES": ""}

_ADAM = {"name": "adam", "learning_rate": 0.001}
#: What each rung adds to the one before, and its threads; TensorFlow's default is the cores of the machine.
RUNGS: tuple[tuple[str, Mapping[str, Any], int], ...] = (
    (
        FIRST,
        {
            "optimizer": _ADAM,
            "wide_optimizer": _ADAM,
            "fused_tables": False,
            "partitioning": {"strategy": "none"},
            "variable_placement": "round-robin",
            "transfers": {"packed": False},
            "steps_in_flight": 1,
        },
        CORES,
    ),
    (
        "1 sparse optimizer",
        {
            "optimizer": {"name": "adagrad", "learning_rate": 0.05},
            "wide_optimizer": {"name": "ftrl", "learning_rate": 0.3},
        },
        CORES,
    ),
    ("2 fused table", {"fused_tables": True}, CORES),
    ("3 partitioned", {"partitioning": {"strategy": "fixed", "rows": "contiguous"}}, CORES),
    ("4 hashed rows", {"partitioning": {"strategy": "fixed", "rows": "hashed"}}, CORES),
    ("5 threads = cores", {}, 1),
    (
        BEST,
        {
            "partitioning": {"strategy": "min-size", "rows": "hashed"},
            "variable_placement": "balanced",
            "compute_precision": "bfloat16",
            "transfers": {"packed": True, "precision": "bfloat16"},
            "steps_per_exchange": 6,
        },
        1,
    ),
)

#: What each part of the last rung is worth: all but that.
WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "6 without packing": {"transfers": {"packed": False, "precision": "bfloat16"}},
    "6 without bfloat16 on the wire": {"transfers": {"packed": True, "precision": "float32"}},
    "6 without shared exchanges": {"steps_per_exchange": 1},
    "6 without bfloat16 in layers": {"compute_precision": "float32"},
    SMALL_PAGES: {},
}

DATA: dict[str, generate.Parameters] = {
    "clicks-large": generate.Parameters(
        train_rows=1_000_000,
        evaluation_rows=100_000,
        tables=(
            3_000_000, 60_000, 40_000, 25_000, 20_000, 15_000, 10_000, 8_000, 6_000, 5_000, 3_000, 2_000,
            1_500, 1_000, 800, 600, 500, 400, 300, 200, 100, 80, 60, 40, 20, 10,
        ),
    ),
    "clicks-small": generate.Parameters(
        train_rows=1_000_000,
        evaluation_rows=100_000,
        tables=(
            15_000, 10_000, 8_000, 5_000, 4_000, 3_000, 2_000, 1_000, 500, 400, 300, 200, 150, 100, 80, 60,
            50, 40, 30, 25, 20, 15, 12, 10, 8, 5,
        ),
    ),
}  # fmt: skip


def spec(side: str, data: str, batch: int, counts: Path, **more: object) -> JobSpec:
    """Return the job of a side, a rung or one beside the ladder; it counts its examples in a folder."""
    if data == CENSUS:
        return job(side, "census", trials.census_data(), batch, counts, **more)
    folder = KEPT / data
    generate.generate(folder, DATA[data])
    return job(side, "clicks", folder, batch, counts, **more)


def job(side: str, example: str, folder: Path, batch: int, counts: Path, **more: object) -> JobSpec:
    """Return the job of a side on the data of an example in a folder."""
    beside = {**dict.fromkeys((LIMIT, *WITHOUT), BEST), **dict.fromkeys(_SCRIPTS, FIRST)}
    block, threads = _blocks()[beside.get(side, side)]
    script, *options = _SCRIPTS.get(side, ("benchmarks.stepped",))
    arguments = ("--data", str(folder), *options)
    chosen = {**block, **WITHOUT.get(side, {}), "batch_size": batch, **more}
    made = trials.counted(example, counts, *arguments, script=script, **chosen)
    if side == SMALL_PAGES or side not in (BEST, LIMIT, *WITHOUT):
        made = dataclasses.replace(made, environment=_PLAIN_PAGES)
    roles = tuple(
        dataclasses.replace(role, cpu_cores=None, memory_bytes=None, threads=threads) for role in made.roles
    )
    if side == LIMIT:
        roles = tuple(
            dataclasses.replace(role, replicas=1, threads=CORES) for role in roles if role.role is Role.WORKER
        )
    if side == STRATEGY:
        roles = (*roles, RoleSpec(role=Role.CHIEF, replicas=1, threads=CORES))
    return dataclasses.replace(made, roles=roles)


def _blocks() -> dict[str, tuple[dict[str, Any], int]]:
    block: dict[str, Any] = {}
    found = {}
    for name, added, threads in RUNGS:
        block = {**block, **added}
        found[name] = (block, threads)
    return found
