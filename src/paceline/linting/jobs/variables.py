"""Rules on the optimizer, partitioning and memory of big tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from paceline.linting.rules import LintHit, counted, rule
from paceline.model import imbalances, quantities
from paceline.model.explanations.findings import Severity
from paceline.model.roles import Role
from paceline.model.variables import optimizers
from paceline.model.variables.optimizers import OptimizerName
from paceline.model.variables.variable_plans import RowPartitioning
from paceline.specs import JobFile
from paceline.specs.yaml_text import documents

#: From this many rows on, updating all rows in each step costs more than the step itself.
GIANT_ROWS = 100_000
#: A variable of at most this many bytes can hardly make a PS hot.
SMALL_BYTES = 64 * 2**20

_TRAINING: documents.Path = ("spec", "training")


@dataclasses.dataclass(frozen=True, slots=True)
class _Tables:
    """The settings of the ``training`` section that concern variables."""

    optimizer: OptimizerName
    partitioning: str
    variables: tuple[dict[str, Any], ...]
    ps: int

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(variable["rows"] * variable["dimension"] * 4 for variable in self.variables)


def _tables(job: JobFile) -> _Tables | None:
    training = job.spec.training
    if training is None:
        return None
    ps = job.spec.role(Role.PS)
    return _Tables(
        optimizer=(training.get("optimizer") or {}).get("name", "adagrad"),
        partitioning=(training.get("partitioning") or {}).get("strategy", RowPartitioning().strategy),
        variables=tuple(training.get("variables") or ()),
        ps=ps.replicas if ps else 0,
    )


def _rows(rows: int) -> str:
    return f"{rows:,}".replace(",", " ")


@rule(
    "JOB601",
    "Adam on a partitioned table",
    Severity.WARNING,
    why="Adam updates every row of a table in each step, not only the rows of the batch. Partitioning "
    "spreads that work over the PS but does not remove it: measured with 10 000, 100 000 and 1 000 "
    "000 rows, Adam ran 1.3, 1.8 and 10.7 times slower than an update of only the used rows.",
    fix="Use optimizer adagrad or lazy-adam (check the AUC: lazy-adam differs slightly from adam).",
)
def adam_on_partitioned_table(job: JobFile) -> Iterator[LintHit]:
    """Adam and partitioning together hint at giant tables."""
    tables = _tables(job)
    if tables is None or tables.optimizer != "adam" or tables.partitioning == "none":
        return
    path = (*_TRAINING, "optimizer", "name")
    giant = [variable for variable in tables.variables if variable["rows"] >= GIANT_ROWS]
    for variable in giant:
        message = f"adam updates all {_rows(variable['rows'])} rows of {variable['name']} in every step"
        yield LintHit(job.document, path, message)
    if not tables.variables and "partitioning" in (job.spec.training or {}):
        message = (
            "the tables are partitioned, so they are probably big, and adam updates all rows in every step"
        )
        yield LintHit(job.document, path, message, severity=Severity.INFO)


@rule(
    "JOB602",
    "Adam on a giant table",
    Severity.WARNING,
    why="Adam updates every row of a table in each step, and without partitioning a single PS does all of "
    "it: measured with 1 000 000 rows, 10.7 times slower than an update of only the used rows, with 3 "
    "000 000 rows 63 times.",
    fix="Use optimizer adagrad or lazy-adam (check the AUC: lazy-adam differs slightly from adam).",
)
def adam_on_giant_table(job: JobFile) -> Iterator[LintHit]:
    """Adam touches every row."""
    tables = _tables(job)
    if tables is None or tables.optimizer != "adam" or tables.partitioning != "none":
        return
    for variable in tables.variables:
        if variable["rows"] >= GIANT_ROWS:
            rows = f"all {_rows(variable['rows'])} rows of {variable['name']}"
            message = f"adam updates {rows} in every step, on one PS"
            yield LintHit(job.document, (*_TRAINING, "optimizer", "name"), message)


@rule(
    "JOB603",
    "One giant variable on one parameter server",
    Severity.WARNING,
    why="An unpartitioned variable lies on one PS. When it is most of the model, that PS is hot and the "
    "others are idle; adding PS or placing them elsewhere changes nothing, and neither does greedy "
    "placement, which cannot split a variable. Five PS with one table of 100 million rows: 4.96 times "
    "the mean load on one.",
    fix="Leave partitioning: {strategy: none} out, or write {strategy: fixed, rows: hashed}.",
)
def giant_variable(job: JobFile) -> Iterator[LintHit]:
    """A variable bigger than all others together must be partitioned."""
    tables = _tables(job)
    if tables is None or tables.partitioning != "none" or tables.ps < 2:
        return
    sizes = tables.sizes
    for index, variable in enumerate(tables.variables):
        if sizes[index] <= SMALL_BYTES or sizes[index] * 2 <= sum(sizes):
            continue
        loads = [0.0] * tables.ps
        for turn, size in enumerate(sizes):
            loads[turn % tables.ps] += size
        ratio = imbalances.max_over_mean(loads) or 1.0
        share = f"{quantities.format_bytes(sizes[index])} of {quantities.format_bytes(sum(sizes))}"
        hot = f"round-robin gives one of {tables.ps} PS {ratio:.2f} times the mean"
        message = f"{variable['name']} is {share}; {hot}"
        yield LintHit(job.document, (*_TRAINING, "variables", index), message)


@rule(
    "JOB604",
    "Parameter servers with too little memory for the variables",
    Severity.ERROR,
    why="Each PS holds its part of the variables, and the optimizer keeps copies of them: one with "
    "adagrad, two with ftrl and adam. A PS that is short of memory is killed while the variables are "
    "created.",
    fix="Give ps more memory or more replicas, or use an optimizer with fewer copies.",
)
def too_little_memory(job: JobFile) -> Iterator[LintHit]:
    """PS memory must hold variables and slots."""
    tables, ps = _tables(job), job.spec.role(Role.PS)
    if tables is None or ps is None or ps.memory_bytes is None or not tables.variables:
        return
    copies = 1 + optimizers.SLOTS[tables.optimizer]
    needed = -(-sum(tables.sizes) * copies // ps.replicas)
    slots = f"{counted(copies - 1, 'slot')} of {tables.optimizer}"
    what = f"the variables with {slots}, evenly over {ps.replicas} PS"
    if tables.partitioning == "none":
        biggest = max(tables.sizes) * copies
        if biggest > needed:
            needed, what = biggest, f"the biggest variable with {slots}"
    if needed > ps.memory_bytes:
        have, want = quantities.format_bytes(ps.memory_bytes), quantities.format_bytes(needed)
        message = f"each PS has {have}, but {what} take {want}"
        yield LintHit(job.document, ("spec", "roles", "ps", "memory"), message)


@rule(
    "JOB605",
    "Fewer shards than parameter servers",
    Severity.INFO,
    why="A table cut into fewer parts than there are PS leaves some PS without a part of it.",
    fix="Leave shards out: then there is one for each PS.",
)
def few_shards(job: JobFile) -> Iterator[LintHit]:
    """Each PS should have a shard."""
    tables = _tables(job)
    shards = ((job.spec.training or {}).get("partitioning") or {}).get("shards")
    if tables is not None and tables.partitioning != "none" and shards is not None and shards < tables.ps:
        message = f"{counted(shards, 'shard')} for {tables.ps} PS"
        yield LintHit(job.document, (*_TRAINING, "partitioning", "shards"), message)


RULES = (adam_on_partitioned_table, adam_on_giant_table, giant_variable, too_little_memory, few_shards)
