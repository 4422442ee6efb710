"""The traced work of parameter servers for each table in a step: on the rows of a batch, or on all rows.

A table is a variable whose rows a step looks up. The operations of an update show its kind, as read in
TensorFlow's optimizers and in traces: kernels named ``SparseApply`` and ``Scatter`` update the rows of some
ids; ``Apply`` without ``Sparse`` applies a gradient of all rows; an update that consists of ``Mul``, ``Sqrt``
and similar operations ends in an ``Assign`` of all rows.
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
#: The class names of Keras optimizers that let the moments of all rows decay in each step (read in tf_keras:
#: the optimizers of 2.11 and later, and the earlier ones, which it calls legacy).
_WHOLE_OPTIMIZERS = frozenset({"Adam", "AdamW", "Nadam"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableWork:
    """The servers' work on all rows of one table in a step.

    Attributes:
        name: the name of the table.
        servers: the servers that hold a part of the table.
        kinds: the kinds of the operations on all rows, the longest first.
        microseconds: the time of these operations.
        gradient: whether a gradient of all rows is applied; if not, only the update takes all rows.
    """

    name: str
    servers: tuple[str, ...]
    kinds: tuple[str, ...]
    microseconds: float
    gradient: bool


def of_case(case: Case) -> tuple[TableWork, ...]:
    """Return the tables whose rows are all updated in each step, according to traces, the longest first."""
    times: dict[str, list[ServerTime]] = {}
    for time in trace_summaries.server_time(case.recording.traces):
        if time.variable is not None:
            times.setdefault(time.variable, []).append(time)
    tables = _tables(case)
    table_works = []
    for name, variable_times in times.items():
        if name not in tables and not any(_LOOKUPS.match(operation.kind) for operation in variable_times):
            continue
        work = _work(name, variable_times)
        if work is not None:
            table_works.append(work)
    return tuple(sorted(table_works, key=lambda table_work: (-table_work.microseconds, table_work.name)))


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
    """Return whether a table's updates take all rows, judged by their operations or the Keras optimizer."""
    return any(each in _WHOLE_OPTIMIZERS or _ASSIGN.match(each) for each in updates)


def is_traced(case: Case, variable: str) -> bool:
    """Return whether traces have operations of a variable, and so show how it is updated."""
    return any(each.variable == variable for trace in case.recording.traces for each in trace.operations)


def total_microseconds(case: Case) -> float:
    """Return the total time of the servers' operations in a step, as traced."""
    return sum(each.microseconds for each in trace_summaries.server_time(case.recording.traces))


def waiting_share(case: Case) -> float | None:
    """Return the share of a step that trainers spend pulling and pushing; None: no step was traced."""
    splits = [split for trace in case.recording.traces if (split := trace_summaries.mean_split(trace))]
    total = sum(each.total_microseconds for each in splits)
    if total <= 0:
        return None
    return sum(each.pull_microseconds + each.push_microseconds for each in splits) / total


def source(case: Case) -> EvidenceSource:
    """Return the source of the times of operations: the traces."""
    traces = case.recording.traces
    at = [trace.at for trace in traces]
    return EvidenceSource(
        what="traces",
        field="operations",
        count=sum(len(trace.splits) for trace in traces),
        since=min(at, default=None),
        until=max(at, default=None),
    )
