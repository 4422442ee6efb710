"""The optimizer's slots take most of the memory of parameter servers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from paceline.diagnosing import needs, trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.roles import Role
from paceline.model.variables.variable_plans import Plan
from paceline.model.variables.variables import Shard, Variable

LEAST_SHARE = Threshold(
    "slot-memories.least-share", 0.5, Unit.SHARE,
    means="The slots of the optimizer fill the memory of a server if they are at least this share of what "
    "the server uses. They are most of it then, as TensorFlow itself takes a few hundred MiB.",
)  # fmt: skip
NEAR_LIMIT = Threshold(
    "slot-memories.near-limit", 0.8, Unit.SHARE,
    means="A server is near its memory limit if it uses at least this share of the limit.",
    source="DLRover gives a parameter server more memory from 0.8 on",
)  # fmt: skip
LARGE_BYTES = Threshold(
    "slot-memories.large-bytes", 4 * 2**30, Unit.BYTES,
    means="Slots of a server are worth knowing of from this size on, even if there is room for them.",
)  # fmt: skip
TARGET = Threshold(
    "slot-memories.target", 0.7, Unit.SHARE,
    means="The rule advises so much memory that the server uses this share of it. The rest is for copies of "
    "rows and messages, which are there beside the variables.",
)  # fmt: skip
#: An optimizer with one slot, of those that touch only the rows that are used.
_LEAN, _LEAN_SLOTS = "adagrad", 1
_MIB = 2**20

TOPIC = Topic(
    code="OPT003",
    name="slots-memory",
    title="The optimizer's slots fill the memory of parameter servers",
    severity=Severity.WARNING,
    why="An optimizer keeps values beside each value of a variable: adagrad and momentum one, adam, ftrl and "
    "adadelta two. With two slots a table takes three times its own size.",
    fix="Use adagrad, which keeps one; or give servers more memory, or have more of them.",
    risk="Another optimizer learns otherwise and wants another learning rate: look at the AUC. It cannot go "
    "on from the slots of the checkpoints that there are.",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Filled:
    """A server whose memory is mostly slots; sizes are in bytes.

    Attributes:
        server: the server.
        slots: the size of the slots.
        memory: the memory that the server uses.
        limit: the server's memory limit; None: there is none.
        is_near: whether the server is near its memory limit.
    """

    server: ReplicaSnapshot
    slots: int
    memory: int
    limit: int | None
    is_near: bool


@rule(TOPIC, needs=(needs.PLAN, needs.MEMORY), explains=("memory-near-limit",))
def slots_memory(case: Case) -> Iterator[Hit]:
    """Servers whose memory is mostly slots and is near its limit, or whose slots take many GiB."""
    plan, large = case.placed, case.value(LARGE_BYTES)
    filled = [server for server in _filled(case, plan) if server.is_near or server.slots >= large]
    if plan is None or not filled:
        return
    near = [server for server in filled if server.is_near]
    reported = near or filled
    worst = max(reported, key=lambda each: each.memory / each.limit if near and each.limit else each.slots)
    table = max(plan.on(worst.server.replica.index), key=_slot_bytes).variable
    name = str(worst.server.replica)
    of = "" if worst.limit is None else f", of a limit of {quantities.format_bytes(worst.limit)}"
    yield Hit(
        what=f"{worst.slots / worst.memory:.0%} of the memory of {name} are slots of the optimizer: "
        f"{quantities.format_bytes(worst.slots)}.",
        subjects=(*(str(server.server.replica) for server in reported), table.name),
        evidence=(
            Evidence(
                text=f"{name} uses {quantities.format_bytes(worst.memory)}{of}",
                sources=(case.source("memory_bytes", (worst.server,)),),
            ),
            Evidence(
                text=f"of {table.name} there are {quantities.format_bytes(_whole_slot_bytes(table))} of "
                f"slots, {table.slots} for each value",
                sources=(EvidenceSource(what="variables", field="slots", count=1),),
            ),
        ),
        changes=_changes(case, table) if near else (),
        next_steps=tuple(_more_memory(case, worst)) if near else (),
        severity=None if near else Severity.INFO,
    )


def _filled(case: Case, plan: Plan | None) -> Iterator[_Filled]:
    least, near = case.value(LEAST_SHARE), case.value(NEAR_LIMIT)
    for each in case.servers:
        role = case.role(each)
        shards = plan.on(each.replica.index) if plan else ()
        slots = sum(map(_slot_bytes, shards))
        if each.memory_bytes and slots >= least * each.memory_bytes:
            limit = each.memory_limit_bytes or each.row.memory_bytes or (role.memory_bytes if role else None)
            is_near = limit is not None and each.memory_bytes >= near * limit
            yield _Filled(server=each, slots=slots, memory=each.memory_bytes, limit=limit, is_near=is_near)


def _slot_bytes(shard: Shard) -> int:
    return shard.rows * shard.variable.row_bytes * shard.variable.slots


def _whole_slot_bytes(variable: Variable) -> int:
    return variable.rows * variable.row_bytes * variable.slots


def _changes(case: Case, table: Variable) -> tuple[FieldChange, ...]:
    """Return the change to an optimizer with one slot, if the job file's optimizer has more."""
    key = "wide_optimizer" if table.name.startswith("wide/") else "optimizer"
    if table.slots <= _LEAN_SLOTS or trainings.optimizer(case, key) in (None, _LEAN):
        return ()
    return (FieldChange(path=("spec", "training", key, "name"), value=_LEAN),)


def _more_memory(case: Case, filled: _Filled) -> Iterator[str]:
    planned = int(filled.memory / case.value(TARGET))
    needed = quantities.quantity_bytes(-(-planned // (256 * _MIB)) * 256 * _MIB)
    yield f"or spec.roles.{Role.PS}.memory: {needed}, or more PS"
