"""What parameter servers compute for each table in a step, as traced: for the rows of a batch, or for all.

A table is a variable of which a step looks rows up. How the operations of an update tell its kind was read
in TensorFlow's optimizers and in traces: kernels named ``SparseApply`` and ``Scatter`` take the rows of some
ids; ``Apply`` without ``Sparse`` takes a gradient of all rows; an update that is put together from ``Mul``,
``Sqrt`` and the like ends in an ``Assign`` of all rows.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import EvidenceSource
from paceline.model.traces import trace_summaries
from paceline.model.traces.trace_summaries import ServerTime
from paceline.model.traces.traced_steps import Direction

_LOOKUPS = re.compile(r"(Resource)?Gather(V2|Nd)?$|(Resource)?Sparse\w*Gather")
_OF_ROWS = re.compile(r"(Resource)?(Gather|Scatter|SparseApply)")
_APPLY = re.compile(r"(Resource)?Apply[A-Z]")
_ASSIGN = re.compile(r"Assign(Add|Sub)?(VariableOp)?$")
#: Optimizers of Keras that let moments of all rows decay in each step, by the names of their classes (read
#: in tf_keras: the optimizers of 2.11 and later, and those of before, which it calls legacy).
_WHOLE_OPTIMIZERS = frozenset({"Adam", "AdamW", "Nadam"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableWork:
    """What a step has servers compute for one table.

    Attributes:
        servers: that hold a part of it.
        kinds: of the operations that take all of its rows, the longest first.
        microseconds: of these.
        gradient: whether one of them takes a gradient of all rows; else only the update does.
    """

    name: str
    servers: tuple[str, ...]
    kinds: tuple[str, ...]
    microseconds: float
    gradient: bool


def of_case(case: Case) -> tuple[TableWork, ...]:
    """Return the tables of which each step updates all rows, by the traces, the longest first."""
    times: dict[str, list[ServerTime]] = {}
    for each in trace_summaries.server_time(case.recording.traces):
        if each.variable is not None:
            times.setdefault(each.variable, []).append(each)
    tables = _tables(case)
    found = []
    for name, own in times.items():
        if name not in tables and not any(_LOOKUPS.match(each.kind) for each in own):
            continue
        work = _work(name, own)
        if work is not None:
            found.append(work)
    return tuple(sorted(found, key=lambda each: (-each.microseconds, each.name)))


def _tables(case: Case) -> set[str]:
    asked = {row.variable for row in trace_summaries.traffic(case.recording.traces)
             if row.direction is Direction.IDS and row.variable is not None}  # fmt: skip
    planned = case.recording.plan.variables if case.recording.plan else ()
    return asked | {each.name for each in planned if each.sparse}


def _work(name: str, own: Sequence[ServerTime]) -> TableWork | None:
    gradient = any(_APPLY.match(each.kind) for each in own)
    if not gradient and not any(_ASSIGN.match(each.kind) for each in own):
        return None
    whole = [each for each in own if not _OF_ROWS.match(each.kind)]
    whole.sort(key=lambda each: -each.microseconds)
    return TableWork(
        name=name,
        servers=tuple(sorted({each.server for each in whole})),
        kinds=tuple(dict.fromkeys(each.kind for each in whole)),
        microseconds=sum(each.microseconds for each in whole),
        gradient=gradient,
    )


def are_whole(updates: Iterable[str]) -> bool:
    """Whether updates of a table, by their operations or the optimizer of Keras, take all of its rows."""
    return any(each in _WHOLE_OPTIMIZERS or _ASSIGN.match(each) for each in updates)


def is_traced(case: Case, variable: str) -> bool:
    """Whether traces have operations of a variable, so that they say how it is updated."""
    return any(each.variable == variable for trace in case.recording.traces for each in trace.operations)


def total_microseconds(case: Case) -> float:
    """Return what a step has servers compute in all, as traced."""
    return sum(each.microseconds for each in trace_summaries.server_time(case.recording.traces))


def waiting_share(case: Case) -> float | None:
    """Return the share of a step that trainers pull and push, as traced; None: it was not."""
    splits = [split for trace in case.recording.traces if (split := trace_summaries.mean_split(trace))]
    total = sum(each.total_microseconds for each in splits)
    if total <= 0:
        return None
    return sum(each.pull_microseconds + each.push_microseconds for each in splits) / total


def source(case: Case) -> EvidenceSource:
    """Return what the times of operations rest on."""
    traces = case.recording.traces
    at = [trace.at for trace in traces]
    return EvidenceSource(
        what="traces",
        field="operations",
        count=sum(len(trace.splits) for trace in traces),
        since=min(at, default=None),
        until=max(at, default=None),
    )
