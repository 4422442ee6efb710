"""The memory of a replica nears its limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paceline.diagnosing import needs, pressures
from paceline.diagnosing.cases import Case
from paceline.diagnosing.memory import growths
from paceline.diagnosing.memory.growths import Growth
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import ExitKind
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role
from paceline.model.words import listed

NEAR = Threshold(
    "memory-limits.near", 0.9, Unit.SHARE,
    means="A replica that uses this share of its memory limit is near it.",
    source="DLRover gives parameter servers more from 0.9 on",
)  # fmt: skip
SOON_SECONDS = Threshold(
    "memory-limits.soon-seconds", 24 * 3600.0, Unit.SECONDS,
    means="A limit that is reached later than this is no problem today.",
)  # fmt: skip
_PLANNED_USE = Threshold(
    "memory-limits.planned-use", 0.8, Unit.SHARE,
    means="What is used today should take no more than this share of a new limit. If memory grows, what it "
    "grows by until the job ends counts too.",
    source="DLRover plans for 0.8",
)  # fmt: skip
_STEP_BYTES = Threshold(
    "memory-limits.step-bytes", 64 * 2**20, Unit.BYTES,
    means="A new limit is rounded up to a multiple of this.",
)  # fmt: skip

TOPIC = Topic(
    code="MEM001",
    name="memory-near-limit",
    title="The memory of a replica nears its limit",
    severity=Severity.WARNING,
    why="At its limit the kernel kills the replica. A worker comes back and goes on; with a parameter server "
    "all trainers lose what was done since the last checkpoint. One that grows steadily is killed again.",
    fix="More memory, if it needs it; if it grows without end, find what is kept: tables that grow with new "
    "ids, batches that are read ahead, lists in the script. Large tables cut over more parameter servers "
    "take less of each.",
    risk="More memory asked for means fewer replicas on a host.",
)


class _Near(NamedTuple):
    """A replica near its memory limit; sizes are in bytes; growth None: its memory does not grow."""

    replica: ReplicaSnapshot
    used: int
    limit: int
    growth: Growth | None


@rule(TOPIC, needs=(needs.MEMORY,))
def memory_near_limit(case: Case) -> Iterator[Hit]:
    """Replicas that are near their memory limit, or grow so fast that they will reach it soon."""
    for role in Role:
        found = [near for each in case.of_role(role) if (near := _near(case, each))]
        if not found:
            continue
        found.sort(key=lambda near: (near.growth.left_seconds if near.growth else 0.0, -near.used))
        first = next((near for near in found if near.growth), found[0])
        yield Hit(
            what=_what(case, first),
            subjects=tuple(str(near.replica.replica) for near in found),
            evidence=tuple(_evidence(case, found)),
            changes=_changes(case, role, found),
            next_steps=_next_steps(case, first),
        )


def _near(case: Case, replica: ReplicaSnapshot) -> _Near | None:
    used, limit = replica.memory_bytes, replica.memory_limit_bytes
    ended = replica.row.exit
    if not limit or used is None or (ended is not None and ended.kind is ExitKind.OUT_OF_MEMORY):
        # Another cause reports a replica that has already run out of memory.
        return None
    since = growths.training_since(case, replica)
    growth = growths.growth(case, case.histories.get(replica.replica, ()), limit, since=since)
    if growth is not None and not (_matters(case, growth) and silences.trains(case)):
        growth = None
    return _Near(replica, used, limit, growth) if growth or used >= case.value(NEAR) * limit else None


def _matters(case: Case, growth: Growth) -> bool:
    """Return whether the limit will be reached soon and before the job ends."""
    rest, soon = case.snapshot.eta_seconds, case.value(SOON_SECONDS)
    return growth.left_seconds < min(soon, rest if rest is not None else soon)


def _what(case: Case, near: _Near) -> str:
    name, used = near.replica.replica, near.used / near.limit
    text = f"{name} uses {used:.0%} of its memory of {quantities.format_bytes(near.limit)}"
    if near.growth is None:
        return f"{text}."
    soonest = quantities.format_seconds(near.growth.soonest_seconds)
    latest = quantities.format_seconds(near.growth.latest_seconds)
    when = soonest if soonest == latest else f"{soonest} to {latest}"
    if case.recording.run.phase.is_final:
        return f"{text}, and grew so fast that it would have been full {when} later."
    return f"{text}, and grows so fast that it will be full in {when}."


def _evidence(case: Case, found: list[_Near]) -> Iterator[Evidence]:
    size = quantities.format_bytes
    used = (f"{near.replica.replica} {size(near.used)} of {size(near.limit)}" for near in found)
    yield Evidence(
        text=listed(used), sources=(case.source("memory_bytes", [near.replica for near in found]),)
    )
    yield from pressures.evidence(case, pressures.MEMORY, [near.replica for near in found])
    growing = [(near, near.growth) for near in found if near.growth is not None]
    for near, growth in growing[:2]:
        trend = growth.bytes_per_second
        per_minute = [size(each * 60) for each in (trend.slope, trend.low, trend.high)]
        history = case.histories[near.replica.replica]
        source = EvidenceSource(
            what="samples", field="memory_bytes", replicas=(near.replica.replica,), count=growth.points,
            since=history[0].at, until=history[-1].at,
        )  # fmt: skip
        yield Evidence(
            text=f"{near.replica.replica} grew by {per_minute[0]} a minute ({per_minute[1]} to "
            f"{per_minute[2]}) over {quantities.format_seconds(growth.watched_seconds)}",
            sources=(source,),
        )


def _changes(case: Case, role: Role, found: list[_Near]) -> tuple[FieldChange, ...]:
    """Return the change to the memory that is needed; none if it grows and the job's end is not known."""
    spec, rest = case.spec.role(role), case.snapshot.eta_seconds
    if spec is None or spec.memory_bytes is None:
        return ()
    needed = 0.0
    for near in found:
        if near.growth is not None and rest is None:
            return ()
        grown = near.growth.bytes_per_second.high * (rest or 0.0) if near.growth else 0.0
        needed = max(needed, near.used + grown)
    step = int(case.value(_STEP_BYTES))
    size = -int(-(needed / case.value(_PLANNED_USE)) // step) * step
    if size <= spec.memory_bytes:
        return ()
    return (FieldChange(path=("spec", "roles", str(role), "memory"), value=quantities.quantity_bytes(size)),)


def _next_steps(case: Case, near: _Near) -> tuple[str, ...]:
    role = near.replica.replica.role
    spec = case.spec.role(role)
    steps = []
    if near.growth is not None:
        steps.append(f"find what {near.replica.replica} keeps: more memory only puts it off if it never ends")
    if spec is not None and spec.memory_bytes is not None and spec.memory_growth is None:
        steps.append(f"spec.roles.{role}.memory_growth: {{factor: 1.5}} gives more after a kill")
    if role is Role.PS:
        steps.append(f"paceline plan {case.recording.run.name} shows what each PS holds")
    return tuple(steps)
