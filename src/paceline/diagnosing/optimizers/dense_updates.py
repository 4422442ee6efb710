"""The optimizer updates every row of a table in each step, though a batch uses few of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs, trainings, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.optimizers import reliefs, table_works
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.roles import ReplicaId, Role
from paceline.model.variables import cures
from paceline.model.variables.variables import Variable
from paceline.model.words import listed
from paceline.modelling import costs

LEAST_SHARE = Threshold(
    "dense-updates.least-share", 0.2, Unit.SHARE,
    means="Updates of all rows make servers slow if they are at least this share of the servers' work.",
    source='TensorFlow\'s profiler calls a fifth of a step "highly"',
)  # fmt: skip
LEAST_BYTES = Threshold(
    "dense-updates.least-bytes", 1_000_000, Unit.BYTES,
    means="Without a trace, the rule judges tables from this size on: its estimate is for long tables.",
)  # fmt: skip
_KINDS_SHOWN = 4
#: The only optimizer of the job file that updates all rows.
_DENSE = "adam"
_OPTIMIZER = "optimizer"
#: What Adam keeps of each value of a variable: two moments.
_ADAM_SLOTS = 2

TOPIC = Topic(
    code="OPT001",
    name="dense-update",
    title="The optimizer updates all rows of a table in each step",
    severity=Severity.WARNING,
    why="Adam lets the moments of every row decay and moves every row, in each step of each worker, though a "
    "batch uses few of them. The servers then spend their time on reading and writing the whole table and "
    "its moments, and the more so the larger the table is.",
    fix="Use an optimizer that touches only the rows of the batch: lazy-adam, adagrad or ftrl.",
    risk="With lazy-adam the moments of a row decay only in steps that use it, so rare rows learn a little "
    "otherwise. Look at the AUC.",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Dense:
    """Tables whose rows are all updated in each step.

    Attributes:
        names: the names of the tables, the costliest first.
        servers: the servers that hold the tables.
        share: the updates' share of the servers' work, between 0 and 1.
        seen: the evidence.
        paths: the keys of the job file that set the optimizer.
    """

    names: tuple[str, ...]
    servers: tuple[str, ...]
    share: float
    seen: Evidence
    paths: tuple[str, ...]


@rule(
    TOPIC,
    needs=(needs.CPU, needs.STEPS, needs.PLAN_OR_TRACE),
    explains=("ps-cpu-bound", "too-few-ps", "too-many-workers", "hot-ps", "waiting-for-ps"),
)
def dense_update(case: Case) -> Iterator[Hit]:
    """Tables whose updates take all rows and are a large part of the servers' work."""
    dense = _traced(case) or _asked(case)
    if dense is None or dense.share < case.value(LEAST_SHARE):
        return
    gain = reliefs.gain(case, dense.share)
    if not headrooms.matters(gain, case):
        return
    by_hand = "in your script: an optimizer that touches only rows that are used, such as Adagrad or FTRL"
    yield Hit(
        what=_what(case, dense),
        subjects=(*dense.names, *dense.servers),
        evidence=(dense.seen, _load(case), *_sizes(case, dense.names[0])),
        changes=tuple(
            FieldChange(path=("spec", "training", key, "name"), value="lazy-adam") for key in dense.paths
        ),
        next_steps=() if dense.paths else (by_hand,),
        gain=gain,
    )


def _what(case: Case, dense: _Dense) -> str:
    who = _DENSE if dense.paths else "The optimizer"
    variable = _variable(case, dense.names[0])
    rows = "all rows" if variable is None else f"all {variable.rows:,} rows"
    others = f" and of {len(dense.names) - 1} other tables" if len(dense.names) > 1 else ""
    used = _used_rows(variable)
    batch = "" if used is None else f"; a batch uses {used:,.0f} of them"
    return f"{who[0].upper()}{who[1:]} updates {rows} of {dense.names[0]}{others} in each step{batch}."


def _used_rows(variable: Variable | None) -> float | None:
    """Return how many rows of a table a batch uses, from the bytes of ids and rows that a step moves."""
    if variable is None or variable.step_bytes is None:
        return None
    return variable.step_bytes / variable.looked_up_bytes


def _variable(case: Case, name: str) -> Variable | None:
    planned = case.recording.plan.variables if case.recording.plan else ()
    return next((each for each in planned if each.name == name), None)


def _traced(case: Case) -> _Dense | None:
    """Return the tables whose rows are all updated from gradients of some rows, according to traces."""
    works = [each for each in table_works.of_case(case) if not each.gradient]
    total = table_works.total_microseconds(case)
    if not works or total <= 0:
        return None
    share = sum(each.microseconds for each in works) / total
    names = tuple(each.name for each in works)
    return _Dense(
        names=names,
        servers=tuple(sorted({server for each in works for server in each.servers})),
        share=share,
        seen=Evidence(
            text=f"{share:.0%} of the time of operations on PS is for whole tables: "
            f"{listed(works[0].kinds[:_KINDS_SHOWN])} of {names[0]}",
            sources=(table_works.source(case),),
        ),
        paths=(
            (_OPTIMIZER,)
            if _is_seen_adam(case, names[0])
            else tuple(key for key in (_OPTIMIZER, "wide_optimizer") if _is_asked(case, key, names))
        ),
    )


def _is_seen_adam(case: Case, name: str) -> bool:
    """Return whether a table of a script without the training library uses Adam, which a cure can change."""
    variable = _variable(case, name)
    return bool(trainings.cured(case, cures.LAZY_ADAM)) and variable is not None and is_adam(variable)


def whole_tables(case: Case) -> tuple[Variable, ...]:
    """Return the tables of an instrumented script whose updates take all rows, judged by their operations."""
    plan = case.recording.plan
    return tuple(
        each
        for each in (plan.variables if plan else ())
        if each.updates and each.sparse and _is_whole(case, each)
    )


def is_adam(variable: Variable) -> bool:
    """Return whether Adam updates all rows of a table, judged by its operations and slots."""
    return variable.slots == _ADAM_SLOTS and table_works.are_whole(variable.updates)


def _is_asked(case: Case, key: str, names: tuple[str, ...]) -> bool:
    return trainings.optimizer(case, key) == _DENSE and any(_key(name) == key for name in names)


def _key(name: str) -> str:
    """Return the job file's key of the optimizer of a table; names in the wide part begin with ``wide/``."""
    return "wide_optimizer" if name.startswith("wide/") else _OPTIMIZER


def _asked(case: Case) -> _Dense | None:
    """Return the untraced tables whose rows are all updated, according to the script or the job file."""
    plan, placed, least = case.recording.plan, case.placed, case.value(LEAST_BYTES)
    tables = [
        table
        for table in (plan.variables if plan else ())
        if table.sparse
        and table.rows * table.row_bytes >= least
        and _is_whole(case, table)
        and not table_works.is_traced(case, table.name)
    ]
    updates, used = _updates_per_second(case), rates.total(server.cpu_cores for server in case.servers)
    if placed is None or not tables or not updates or not used:
        return None
    tables.sort(key=lambda table: -table.rows * table.row_bytes)
    size = sum(table.rows * table.row_bytes for table in tables)
    cores = costs.WHOLE_BYTE_SECONDS * size * updates
    keys = tuple(dict.fromkeys(_key(table.name) for table in tables if not table.updates))
    names = tuple(table.name for table in tables)
    servers = sorted({shard.server for name in names for shard in placed.of(name)})
    first = tables[0]
    by = f"spec.training.{keys[0]}.name is {_DENSE}" if keys else f"{first.name}: {listed(first.updates)}"
    return _Dense(
        names=names,
        servers=tuple(str(ReplicaId(Role.PS, server)) for server in servers),
        share=min(1.0, cores / used),
        seen=Evidence(
            text=f"{by}: {updates:.1f} updates a second of {quantities.format_bytes(size)} take about "
            f"{min(cores, used):.2f} of the {used:.2f} cores that PS use",
            sources=(
                EvidenceSource(what="job file", field=f"training.{keys[0]}.name", count=1)
                if keys
                else EvidenceSource(what="variables", field="updates", count=len(tables)),
            ),
        ),
        paths=keys or ((_OPTIMIZER,) if _is_seen_adam(case, first.name) else ()),
    )


def _is_whole(case: Case, table: Variable) -> bool:
    """Return whether an update takes all rows of a table, judged by its operations or the job file."""
    if table.updates:
        # For Keras only the optimizer's name is known, not whether a cure has changed the optimizer.
        return table_works.are_whole(table.updates) and not trainings.is_applied(case, cures.LAZY_ADAM)
    return trainings.optimizer(case, _key(table.name)) == _DENSE


def _updates_per_second(case: Case) -> float | None:
    """Return how often a table is updated: once in each exchange; if synchronous, once for all trainers."""
    steps = rates.total(each.steps_per_second for each in case.trainers)
    shared = trainings.section(case).get("steps_per_exchange")
    per_exchange = shared if isinstance(shared, int) and shared > 0 else 1
    together = trainings.section(case, "consistency").get("mode") == "synchronous"
    return None if steps is None else steps / per_exchange / (len(case.trainers) if together else 1)


def _load(case: Case) -> Evidence:
    used = mean(case.servers, lambda each: each.cpu_cores) or 0.0
    limit = mean(case.servers, lambda each: usages.cores(case, each))
    of = "" if limit is None else f" of {limit:.2f}"
    return Evidence(
        text=f"PS use {used:.2f}{of} cores each", sources=(case.source("cpu_cores", case.servers),)
    )


def _sizes(case: Case, name: str) -> Iterator[Evidence]:
    variable = _variable(case, name)
    if variable is None:
        return
    whole = variable.rows * variable.row_bytes
    moved = variable.step_bytes
    text = f"{name} has {quantities.format_bytes(whole)} without slots"
    text += "" if moved is None else f"; a step of a trainer moves {quantities.format_bytes(moved)} of it"
    yield Evidence(text=text, sources=(EvidenceSource(what="variables", field="step_bytes", count=1),))
