"""The gradient of a table has become dense: it has all rows instead of the few that a batch uses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.optimizers import reliefs, table_works
from paceline.diagnosing.optimizers.table_works import TableWork
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.traces import trace_summaries
from paceline.model.traces.traced_steps import Direction

TIMES_PULLED = Threshold(
    "dense-gradients.times-pulled", 3.0, Unit.TIMES,
    means="A gradient is one of all rows if a step pushes at least this many times the bytes that it pulls. "
    "A gradient of the rows that were looked up is as large as those rows. A gradient of all rows is this "
    "much larger, or it costs little.",
)  # fmt: skip
LEAST_SHARE = Threshold(
    "dense-gradients.least-share", 0.2, Unit.SHARE,
    means="A dense gradient makes steps slow if it takes at least this share of the bytes of a step, or of "
    "the time of operations on servers.",
)  # fmt: skip
#: A lookup reads a variable through its handle; this operation reads the variable's whole value.
_WHOLE_READ = "ReadVariableOp"

TOPIC = Topic(
    code="OPT002",
    name="dense-gradient",
    title="A sparse gradient has become dense",
    severity=Severity.WARNING,
    why="The gradient of a lookup holds only the rows of the batch (tf.IndexedSlices). Some operations know "
    "no such gradient and make one of all rows of it, zeros and all: clipping by tf.convert_to_tensor, a "
    "loss term over the whole table, arithmetic on it. Each step then pushes and applies the whole table.",
    fix="Keep the gradient as tf.IndexedSlices up to apply_gradients.",
    risk="A penalty of the rows of a batch is not that of all rows: rare rows shrink less.",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Moved:
    """The bytes of a table, and of everything, that a step of all trainers moves; None: not measured."""

    pushed: float | None
    pulled: float | None
    all_bytes: float


@rule(
    TOPIC,
    needs=(needs.TRACE,),
    explains=(
        "dense-update", "hot-ps", "ps-cpu-bound", "too-few-ps", "ps-network-bound", "too-many-workers",
        "waiting-for-ps",
    ),
)  # fmt: skip
def dense_gradient(case: Case) -> Iterator[Hit]:
    """Tables that are looked up by rows, but whose optimizer applies a gradient of all rows."""
    total, least = table_works.total_microseconds(case), case.value(LEAST_SHARE)
    for work in table_works.of_case(case):
        if not work.gradient:
            continue
        moved = _moved(case, work.name)
        time = work.microseconds / total if total > 0 else 0.0
        wire = _needless_share(work, moved)
        if max(time, wire) < least or not _is_dense(case, work, moved):
            continue
        gain = reliefs.gain(case, time, wire)
        yield Hit(
            what=_what(case, work, moved),
            subjects=(work.name, *work.servers),
            evidence=(
                Evidence(
                    text=f"{work.name} is looked up by rows, and updated by {work.kinds[0]}, which takes all "
                    f"rows: {time:.0%} of the time of operations on PS",
                    sources=(table_works.source(case),),
                ),
                *_bytes(case, moved),
            ),
            next_steps=(
                "in your script: clip and scale the .values of tf.IndexedSlices; tf.clip_by_global_norm does",
                "in your script: penalize the rows that were looked up, not the whole table",
            ),
            gain=gain if headrooms.matters(gain, case) else None,
            severity=headrooms.severity(gain, case) if gain is not None else None,
        )


def _moved(case: Case, name: str) -> _Moved:
    found: dict[Direction, list[float]] = {}
    total = 0.0
    for row in trace_summaries.traffic(case.recording.traces):
        if row.bytes is None:
            continue
        total += row.bytes
        if row.variable == name:
            found.setdefault(row.direction, []).append(row.bytes)
    pushed, pulled = found.get(Direction.PUSH), found.get(Direction.PULL)
    return _Moved(
        pushed=None if pushed is None else sum(pushed),
        pulled=None if pulled is None else sum(pulled),
        all_bytes=total,
    )


def _needless_share(work: TableWork, moved: _Moved) -> float:
    """Return the share of all bytes that would not move if only the rows of the batches moved."""
    pushed, pulled = moved.pushed or 0.0, moved.pulled or 0.0
    extra = pushed + pulled if _is_read_whole(work) else max(0.0, pushed - pulled)
    return extra / moved.all_bytes if moved.all_bytes > 0 else 0.0


def _is_read_whole(work: TableWork) -> bool:
    """Return whether the loss reads the whole table besides the looked-up rows, as a penalty on it does."""
    return _WHOLE_READ in work.kinds


def _is_dense(case: Case, work: TableWork, moved: _Moved) -> bool:
    """Return whether far more bytes are pushed than pulled; without measured bytes, the operations suffice.

    The comparison excludes small tables: a batch may use nearly all of their rows, so the gradient has to be
    large.
    """
    if not moved.pushed or not moved.pulled or _is_read_whole(work):
        return True
    return moved.pushed >= case.value(TIMES_PULLED) * moved.pulled


def _what(case: Case, work: TableWork, moved: _Moved) -> str:
    plan = case.recording.plan
    rows = next((each.rows for each in plan.variables if each.name == work.name), None) if plan else None
    whole = "all rows" if rows is None else f"all {rows:,} rows"
    bytes_ = "" if moved.pushed is None else f": {quantities.format_bytes(moved.pushed)} in a step"
    return f"The gradient of {work.name} has become one of {whole}{bytes_}."


def _bytes(case: Case, moved: _Moved) -> Iterator[Evidence]:
    if moved.pushed is not None and moved.pulled is not None:
        yield Evidence(
            text=f"a step of all trainers pushes {quantities.format_bytes(moved.pushed)} of it and pulls "
            f"{quantities.format_bytes(moved.pulled)}",
            sources=(dataclasses.replace(table_works.source(case), field="transfers"),),
        )
