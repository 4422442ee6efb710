"""A server whose process, database or disk fails while jobs are submitted, again and again: no job is lost,
none is made twice, what cannot be done now is said. What happens stands in ``support.server_faults``.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from support import submitters
from support.server_faults import SCENES

from benchmarks import plots
from benchmarks.protocols import Bench, Check, Result, Row, at_most, none

#: How often each fault happens.
FAULTS, QUICK_FAULTS = 20, 3
#: From the end of a fault until a submit is answered again.
RECOVERY_SECONDS = 10.0


def run(bench: Bench) -> list[Check]:
    """Let each fault happen again and again."""
    faults = QUICK_FAULTS if bench.quick else FAULTS
    bench.plan(faults * len(SCENES))
    for name, scene in SCENES.items():
        for number in range(faults):
            bench.repeat(f"{name} {number}", functools.partial(scene, random.Random(number)))
    return list(_checks(bench.rows))


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    yield none("submits that were answered, and whose job is not there", [row["lost"] for row in rows])
    yield none("keys of which there are two jobs", [row["doubled"] for row in rows])
    yield none("jobs without a supervisor", [row["unattended"] for row in rows])
    yield none("changes that are not in the audit log", [row["unaudited"] for row in rows])
    yield none("refusals that are no problem+json with 503 or 507", [len(row["wrong"]) for row in rows])
    for name in ("database", "disk"):
        found = [row["recovery"] for row in rows if row["key"].startswith(name)]
        yield at_most(f"seconds until a submit is answered again, {name}", [max(found)], RECOVERY_SECONDS)
    for what in ("answered", "refusals"):
        count = sum(row[what] for row in rows)
        yield Check(
            name=f"submits: {what}", value=count, low=count, high=count, target="reported", holds=True
        )


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what was done."""
    yield (
        f"{len(rows)} faults while {submitters.CLIENTS} clients submitted, each sending again what was not "
        "answered: the server killed; one of two servers over one PostgreSQL killed, to both of which each "
        "submit was sent; PostgreSQL killed and started again; a full disk."
    )


def draw(result: Result, path: Path) -> None:
    """Draw how many submits were answered around each fault."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        groups.setdefault(row["key"].partition(" ")[0], []).append(float(row["answered"]))
    plots.strips(path, groups, label="submits", title="Submits answered around a fault")
