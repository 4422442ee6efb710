"""Cures: changes that the ``training:`` block of a job file makes in a script that was not written for it.

The instrumentation makes them while the script builds its graph (its package ``cures``), and reports for each
where it was applied, or why it was refused. A script that uses the training library obeys the block by
itself, and no cure touches it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """A cure, with its description for users.

    Attributes:
        name: its name, also in the instrumentation.
        version: the version of what it does to a graph.
        path: the key of the job file that asks for it, below ``training``.
        values: the values of the key that ask for it; empty: any value but null.
        also: another key below ``training`` that asks for it with any value but null; None: there is none.
        with_it: further keys below ``training`` that the cure reads.
        example: a value that asks for it.
        title: its purpose, in a few words.
        does: what it does to the graph.
        fits: which scripts it fits, and when it is refused.
        risk: what may be different with it.
        undo: how to undo it.
    """

    name: str
    version: int
    path: tuple[str, ...]
    values: tuple[Any, ...] = ()
    also: tuple[str, ...] | None = None
    with_it: tuple[tuple[str, ...], ...] = ()
    example: Any
    title: str
    does: str
    fits: str
    risk: str
    undo: str = "Take the key out of the job file. The next run begins without it."

    @property
    def key(self) -> str:
        """Return the key of the job file."""
        return ".".join(("spec", "training", *self.path))

    def is_asked(self, training: Mapping[str, Any]) -> bool:
        """Whether a ``training`` section asks for it."""
        found = _value(training, self.path)
        is_chosen = found in self.values if self.values else found is not None
        return is_chosen or (self.also is not None and _value(training, self.also) is not None)

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Return all keys below ``training`` that concern it."""
        return (self.path, *(() if self.also is None else (self.also,)), *self.with_it)


def _value(training: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value of a key in a ``training`` section; None: there is none."""
    found: Any = training
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


LAZY_ADAM = Cure(
    name="lazy-adam",
    version=1,
    path=("optimizer", "name"),
    values=("lazy-adam",),
    example="lazy-adam",
    title="Adam moves only the rows that a batch uses",
    does="TensorFlow's Adam reads and writes every row of a table and of its two moments in each step, "
    "although a batch uses few of them. The sparse path of the script's own Adam is replaced by one "
    "that computes the same formula for the rows of the batch alone. Dense layers go through "
    "TensorFlow's own code.",
    fits="Scripts that train tables with `tf.train.AdamOptimizer` (TensorFlow 1.4 and later) or with Adam "
    "of Keras 2 (up to TensorFlow 2.15, and `tf_keras`). It is refused for amsgrad and for Keras 3.",
    risk="The moments of a row decay only in steps that use it, so rare rows learn a little otherwise. "
    "Compare the loss or the AUC after the same number of examples.",
    undo="Set `optimizer.name` back, or take it out. Variables and slots have the same names and shapes, "
    "so a checkpoint of one is read by the other.",
)
PLACEMENT = Cure(
    name="variable-placement",
    version=1,
    path=("variable_placement",),
    values=("greedy", "balanced"),
    also=("variable_plan",),
    example="greedy",
    title="Each variable goes to the parameter server with the least load",
    does="`tf.train.replica_device_setter` gives variables to the parameter servers in turn, whatever "
    "their sizes are. Its strategy is replaced: a variable goes to the server that holds the fewest "
    "bytes so far, or where `variable_plan` says, which `paceline plan` makes of measured traffic. "
    "Slots stay with their variables.",
    fits="Scripts that use `tf.train.replica_device_setter` with its default strategy, and "
    "`ParameterServerStrategy` of TensorFlow 2. It is refused where the script has a strategy of its "
    "own.",
    risk="None for the model. All replicas have to start with the same job file.",
    undo="Take the key out. A checkpoint does not say where variables are, so it is read as before.",
)
PARTITIONING = Cure(
    name="partitioning",
    version=1,
    path=("partitioning", "strategy"),
    values=("fixed", "min-size"),
    with_it=(("partitioning", "rows"), ("partitioning", "shards"), ("partitioning", "min_shard_bytes")),
    example="fixed",
    title="A large table is cut over the parameter servers",
    does="`tf.get_variable` gets a partitioner for tables that are large: their rows lie in ranges, a "
    "range on each parameter server. Lookups go to the range that has the row, and `tf.gather` of "
    "such a table becomes a lookup.",
    fits="Tables that a script makes by `tf.get_variable` without a partitioner, of at least 16 times as "
    "many rows as columns; and tables that layers of Keras make under a `ParameterServerStrategy` "
    "without a partitioner. It is refused for any other order of rows than `contiguous`, as "
    "TensorFlow could not save the table as one.",
    risk="A script that asks a table for what only a whole variable has, such as `table.op`, fails. A "
    "script that multiplies with the whole table pays for putting it together.",
    undo="Take the key out. The table is saved under its own name, in one piece, so a checkpoint is read "
    "as before. Optimizers of Keras before 2.11 are the exception: they save the slots of a cut table part "
    "by part.",
)
RECOVERY_WAIT = Cure(
    name="recovery-wait",
    version=1,
    path=("recovery_wait_seconds",),
    example=1,
    title="Workers see sooner that the chief is ready",
    does="TensorFlow's session manager looks each 30 seconds whether the chief has made the variables. "
    "That wait is replaced by the given one.",
    fits="Scripts with `MonitoredTrainingSession`, `Supervisor` or `SessionManager`. It is refused where "
    "the script has chosen a wait.",
    risk="None for the model.",
)
UNPLACED = Cure(
    name="unplaced-variables",
    version=1,
    path=("unplaced_variables",),
    values=("ps",),
    example="ps",
    title="Variables without a place go to the parameter servers",
    does="A variable that the script gives no place lies on the worker that runs the session, so parameter"
    " servers idle and each worker trains a model of its own. Such variables are made under "
    "`tf.train.replica_device_setter`.",
    fits="Scripts of sessions with `tf.train.Server`, from TensorFlow 1.8 on. A variable that has a place,"
    " and a local one, stay where they are.",
    risk="All workers train one model then, as the script was surely meant to do. Its learning rate may "
    "have been chosen for one worker.",
)
UNIQUE_IDS = Cure(
    name="unique-ids",
    version=1,
    path=("unique_ids",),
    values=(True,),
    example=True,
    title="A lookup pulls each row once",
    does="`tf.nn.embedding_lookup` pulls a row, and pushes a gradient, for each id of a batch. Its ids are"
    " made unique first, and the rows are spread over the batch on the worker.",
    fits="Scripts of sessions that use `tf.nn.embedding_lookup`. Lookups whose ids are unique already stay.",
    risk="Gradients of a row are summed on the worker instead of on the server, so sums are rounded in "
    "another order. TensorFlow 1 takes seeds from the number of operations that a graph has, so there a "
    "script that has a seed of the graph and none of its operations begins with other random numbers.",
)
DEVICE_FILTERS = Cure(
    name="device-filters",
    version=1,
    path=("device_filters",),
    values=(True,),
    example=True,
    title="A trainer that is away does not hold up the others",
    does="Without filters a session begins when every task of the cluster answers. Sessions get filters "
    "for the parameter servers and the trainer's own task.",
    fits="Scripts with `tf.train.Server`. It is refused where the script has filters, or a graph that has "
    "operations on other trainers.",
    risk="A script that reaches other trainers through queues or shared variables does not find them.",
)
LEAN_SERVERS = Cure(
    name="lean-servers",
    version=1,
    path=("lean_servers",),
    values=(True,),
    example=True,
    title="A parameter server has no Python",
    does="A parameter server computes in C++ alone, and yet keeps all of TensorFlow's Python in its memory. "
    "When the script joins its server, the process goes on as TensorFlow's C server and nothing else: with "
    "the same process id, address and definition.",
    fits="Scripts with `tf.train.Server` or `tf.distribute.Server`, from TensorFlow 1.15 on. It is "
    "refused where the script asks for the server's target, has threads or other servers beside it, or does "
    "not join it within 10 s.",
    risk="What the script would do after the server has ended, it does not do. Python's handlers of signals "
    "are gone.",
)

STEPS_PER_EXECUTION = Cure(
    name="steps-per-execution",
    version=1,
    path=("steps_per_execution",),
    example=10,
    title="Keras makes several steps in one call",
    does="`Model.compile` gets `steps_per_execution`, so `Model.fit` makes several steps in one call of "
    "its function. The steps are the same, on the same batches in the same order.",
    fits="Scripts with `Model.fit`, from TensorFlow 2.4 on, and Keras 3. A model that the script has "
    "compiled with a number of its own keeps it. A fit with a callback of the script that wants each "
    "batch makes single steps, and that is said.",
    risk="None for the model. Callbacks hear of a batch once for several steps, and a log has fewer lines.",
)
PREFETCH = Cure(
    name="prefetch",
    version=1,
    path=("inputs", "prefetch_batches"),
    example=2,
    title="Batches are made while a step computes",
    does="A pipeline of `tf.data` that a script iterates over, or hands to `fit`, gets a `prefetch` at its"
    " end if it has none there. Its elements and their order stay.",
    fits="Scripts with `tf.data`, from TensorFlow 1.4 on. A pipeline that ends in a prefetch stays as it is.",
    risk="It takes the memory of that many batches. In a graph it is one operation more, so a script that "
    "has a seed of the graph and none of its operations begins with other random numbers.",
)
PARALLEL_MAP = Cure(
    name="parallel-map",
    version=1,
    path=("inputs", "parallel_calls"),
    example="auto",
    title="Several examples are decoded at once",
    does="`Dataset.map` without `num_parallel_calls` gets it. Elements leave in the order in which they "
    "came, so their values stay.",
    fits="Scripts with `tf.data`. It is refused for a function that has a state: random numbers, Python "
    "code, a variable that it reads.",
    risk="It takes the memory of that many elements, and cores that other work may need.",
)
TRANSFER_PRECISION = Cure(
    name="transfer-precision",
    version=1,
    path=("transfers", "precision"),
    values=("bfloat16", "float16"),
    example="bfloat16",
    title="Rows and their gradients cross the network in half the bytes",
    does="Rows that a lookup gathers on a parameter server are cast to 16 bits there, and back on the "
    "worker; so are their gradients, the other way round. The servers keep float32, and the optimizer"
    " computes in it.",
    fits="Scripts of sessions whose float32 tables are on another job's device and are read by "
    "`tf.nn.embedding_lookup`.",
    risk="Rows and gradients are rounded: bfloat16 keeps the range of float32 and 8 bits of a number; "
    "float16 keeps 11 bits and loses what is smaller than 6e-8 or larger than 65504. Compare the loss"
    " or the AUC.",
)

#: All cures, in the order in which they are listed.
CURES = (
    LAZY_ADAM,
    PLACEMENT,
    PARTITIONING,
    UNPLACED,
    UNIQUE_IDS,
    TRANSFER_PRECISION,
    STEPS_PER_EXECUTION,
    PREFETCH,
    PARALLEL_MAP,
    RECOVERY_WAIT,
    DEVICE_FILTERS,
    LEAN_SERVERS,
)
#: Keys that are no settings of a script: they are for lint and plans, or say how often steps are traced.
_NO_SETTINGS = (("variables",), ("measured_variables",), ("trace",))
_TEXT = re.compile(
    r"(?P<cure>[a-z-]+) (?P<version>\d+) (?:applied to (?P<count>\d+): |refused: )(?P<detail>.*)"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CureOutcome:
    """The outcome of a cure in a replica.

    Attributes:
        cure: the name of the cure.
        version: the version of the cure in the replica.
        is_applied: whether it was applied; if not, it was refused.
        count: the number of places it was applied to; for a refusal, the number of reasons so far, which its
            text leaves out.
        detail: the places, or the reason.
    """

    cure: str
    version: int
    is_applied: bool
    count: int = 0
    detail: str = ""

    def __str__(self) -> str:
        """Return the outcome in one line, which ``parse`` reads."""
        what = f"applied to {self.count}" if self.is_applied else "refused"
        return f"{self.cure} {self.version} {what}: {self.detail}"


def parse(text: str) -> CureOutcome | None:
    """Return the outcome that a line describes; None: the line describes none."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    count = found["count"]
    return CureOutcome(
        cure=found["cure"],
        version=int(found["version"]),
        is_applied=count is not None,
        count=int(count or 0),
        detail=found["detail"],
    )


def asked(training: Mapping[str, Any] | None) -> tuple[Cure, ...]:
    """Return the cures that a ``training`` section asks for."""
    return tuple(cure for cure in CURES if cure.is_asked(training or {}))


def unmet(training: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the keys of a ``training`` section that only a script with the training library obeys."""
    known = {path for cure in CURES for path in cure.keys} | set(_NO_SETTINGS)
    return tuple(".".join(path) for path in _paths(training or {}, known))


def _paths(
    section: Mapping[str, Any], known: Container[tuple[str, ...]], head: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    for key, value in section.items():
        path = (*head, key)
        if path in known:
            continue
        if isinstance(value, Mapping):
            yield from _paths(value, known, path)
        else:
            yield path


def silent(training: Mapping[str, Any] | None, outcomes: Iterable[CureOutcome]) -> tuple[Cure, ...]:
    """Return the cures that are asked for but have no outcome: the script has nothing that they apply to."""
    said = {each.cure for each in outcomes}
    return tuple(cure for cure in asked(training) if cure.name not in said)
