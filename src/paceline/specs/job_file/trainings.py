"""The ``training`` section with the settings of the training library: checked here, stored as written."""

from __future__ import annotations

import typing
from typing import Annotated, Any

from pydantic import Field

from paceline.model.variables import consistencies, optimizers, saved_plans, schedules
from paceline.model.variables.row_layouts import RowOrder
from paceline.model.variables.variable_plans import CutStrategy, PlacementRule
from paceline.specs.job_file import fields, plan_files
from paceline.specs.job_file.sections import Section
from paceline.specs.yaml_text import documents

PARTITIONING = tuple(strategy.value for strategy in CutStrategy)
ROW_ORDERS = tuple(order.value for order in RowOrder)
PRECISIONS = ("float32", "bfloat16", "float16")
COMPUTE_PRECISIONS = ("float32", "bfloat16")
VARIABLE_PLACEMENTS = tuple(rule.value for rule in PlacementRule)
UNPLACED_VARIABLES = ("ps",)
DECAYS = typing.get_args(schedules.Decay)
CONSISTENCY_MODES = typing.get_args(consistencies.Mode)
FORMATS = ("csv", "parquet", "tfrecord")


def _plan(value: object) -> str | dict[str, Any]:
    """Return the path of a saved plan, or the plan itself if the section contains it."""
    if isinstance(value, documents.Scalar):
        return fields.text(value, "the path of a saved plan")
    plain: dict[str, Any] = plan_files.plain(value)
    try:
        saved_plans.read(plain)
    except ValueError as error:
        raise fields.wrong(str(error)) from error
    return plain


def _parallel_calls(value: object) -> int | str:
    """Return the number of parallel calls, or ``auto``."""
    return fields.auto_or_count(value) or "auto"


_Optimizer = Annotated[str, fields.choice(optimizers.OPTIMIZERS)]
_RowOrder = Annotated[str, fields.choice(ROW_ORDERS)]
_Precision = Annotated[str, fields.choice(PRECISIONS)]
_ComputePrecision = Annotated[str, fields.choice(COMPUTE_PRECISIONS)]
_PerExchange = Annotated[int, fields.whole(1, 100)]
_PerExecution = Annotated[int, fields.whole(2, 1000)]
_InFlight = Annotated[int, fields.whole(1, 100)]
_Partitioning = Annotated[str, fields.choice(PARTITIONING)]
_UnplacedVariables = Annotated[str, fields.choice(UNPLACED_VARIABLES)]
_VariablePlacement = Annotated[str, fields.choice(VARIABLE_PLACEMENTS)]
_VariablePlan = Annotated[
    str | dict[str, Any], fields.Leaf(_plan, {"anyOf": [{"type": "string"}, {"type": "object"}]})
]
_Prefetched = Annotated[int, fields.whole(1, 10_000)]
_ParallelCalls = Annotated[int | str, fields.Leaf(_parallel_calls, fields.AUTO_OR_COUNT)]
_Format = Annotated[str, fields.choice(FORMATS)]
_Decay = Annotated[str, fields.choice(DECAYS)]
_ConsistencyMode = Annotated[str, fields.choice(CONSISTENCY_MODES)]
_Steps = Annotated[int, fields.whole(0, 10**15)]
_Backups = Annotated[int, fields.whole(0, 10_000)]
_Small = Annotated[int, fields.whole(1, 10_000)]
_SmallOrNone = Annotated[int, fields.whole(0, 10_000)]
_Width = Annotated[int, fields.whole(1, 1_000_000)]
_Count = Annotated[int, fields.whole(1, 10**15)]
_Seed = Annotated[int, fields.whole(0, 2**31 - 1)]
_Rate = Annotated[
    float,
    fields.Leaf(fields.number(0, 100, above=True), {"type": "number", "exclusiveMinimum": 0, "maximum": 100}),
]
_Factor = Annotated[float, fields.Leaf(fields.number(0, 1), {"type": "number", "minimum": 0, "maximum": 1})]
_Power = Annotated[
    float,
    fields.Leaf(fields.number(0, 100, above=True), {"type": "number", "exclusiveMinimum": 0, "maximum": 100}),
]
_Norm = Annotated[
    float,
    fields.Leaf(fields.number(0, 1e9, above=True), {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}),
]
_Interval = Annotated[
    float,
    fields.Leaf(fields.number(0, 315_360_000, above=True), {"type": "number", "exclusiveMinimum": 0}),
]
_IntervalOrNever = Annotated[
    float,
    fields.Leaf(fields.number(0, 315_360_000), {"type": "number", "minimum": 0, "maximum": 315_360_000}),
]

_Epochs = Annotated[
    float,
    fields.Leaf(fields.number(0, 1e6, above=True), {"type": "number", "exclusiveMinimum": 0, "maximum": 1e6}),
]


class ScheduleSection(Section):
    """How a learning rate changes over the global steps."""

    decay: _Decay | None = Field(
        None, description="constant, exponential, polynomial (a line, if power is 1) or cosine"
    )
    warmup_steps: _Steps | None = Field(None, description="steps in which the rate grows in a line at first")
    decay_steps: _Count | None = Field(
        None,
        description="steps of the decay after that; exponential: in which it is multiplied by end_factor",
    )
    end_factor: _Factor | None = Field(None, description="share of the rate that the decay leads to")
    power: _Power | None = Field(None, description="of the decay polynomial")


class OptimizerSection(Section):
    """How gradients are applied."""

    name: _Optimizer | None = Field(
        None, description="adagrad, ftrl, lazy-adam, adadelta, momentum; adam touches all rows of a table"
    )
    learning_rate: _Rate | None = Field(None, description="step size, above 0; default: the optimizer's own")
    schedule: ScheduleSection | None = Field(None, description="how it changes; default: not at all")


class PartitioningSection(Section):
    """Whether big tables are cut into parts that lie on several PS."""

    strategy: _Partitioning = Field(
        description="none; fixed: into `shards` parts; min-size: parts of at least `min_shard_bytes`"
    )
    rows: _RowOrder | None = Field(
        None,
        description="which rows a part holds: contiguous, strided or hashed; the hot ones are often first",
    )
    shards: _Small | None = Field(None, description="parts of a table; default: one for each PS")
    min_shard_bytes: fields.Bytes | None = Field(None, description="smallest part, such as 64Ki")


class TransfersSection(Section):
    """What a step sends between workers and PS."""

    packed: fields.Boolean | None = Field(
        None, description="one message for each PS and direction, else one for each variable"
    )
    precision: _Precision | None = Field(
        None, description="of values on the wire: float32, bfloat16 or float16; the PS keep float32"
    )


class ConsistencySection(Section):
    """How far workers may be apart."""

    mode: _ConsistencyMode | None = Field(
        None, description="asynchronous: no worker waits; bounded-staleness; synchronous"
    )
    staleness: _Steps | None = Field(
        None, description="bounded-staleness: steps that a worker may be ahead of the slowest"
    )
    backup_workers: _Backups | None = Field(
        None, description="synchronous: workers that a step does not wait for; what comes late is dropped"
    )


class CheckpointSection(Section):
    """How often the model is saved, and how many of these are kept."""

    every_seconds: _Interval | None = Field(None, description="seconds between checkpoints")
    keep: _SmallOrNone | None = Field(
        None, description="checkpoints that are kept, newest first; 0: nothing is saved"
    )
    mirror: fields.Text | None = Field(
        None,
        description="URL of a folder to which each checkpoint is copied; a chief that begins anew without "
        "its checkpoint folder goes on from there",
    )
    restore_from: fields.Text | None = Field(
        None, description="URL of a folder with checkpoints, from the newest of which a new run begins"
    )


class TraceSection(Section):
    """How often steps are traced; on demand they are in any case."""

    every_seconds: _IntervalOrNever | None = Field(
        None, description="seconds from trace to trace, default 60; 0: on demand alone"
    )
    steps: _Small | None = Field(None, description="steps in a row that each worker traces")


class InputCacheSection(Section):
    """Copies of remote input files on this machine."""

    folder: fields.Text | None = Field(None, description="where they are kept; default: none are")
    max_bytes: fields.Bytes | None = Field(
        None, description="what the folder may hold, such as 50Gi; the least recently used go"
    )


class InputsSection(Section):
    """Where the examples are."""

    train: fields.Texts | None = Field(
        None, description="path or pattern of the training examples, or a list of them"
    )
    evaluation: fields.Texts | None = Field(
        None, description="path or pattern of the evaluation examples, or a list of them"
    )
    format: _Format | None = Field(None, description="csv, parquet or tfrecord")
    threads: _Small | None = Field(
        None, description="that decode the examples of a worker; default: the replica's threads"
    )
    prefetch_batches: _Prefetched | None = Field(None, description="of tf.data: batches that are made ahead")
    parallel_calls: _ParallelCalls | None = Field(
        None, description="of tf.data: examples that are decoded at once, or auto"
    )
    cache: InputCacheSection | None = Field(None, description="copies of remote files on this machine")


class VariableSection(Section):
    """A big table that is known beforehand; lint computes memory and balance from it."""

    name: fields.Text = Field(description="its name in the model")
    rows: _Count = Field(description="number of rows, that is of ids")
    dimension: _Width = Field(description="floats (4 bytes) in each row")


class TrainingSection(Section):
    """What the training library is to do; other scripts obey what a cure can change in them."""

    optimizer: OptimizerSection | None = Field(
        None, description="optimizer of the embeddings and dense layers"
    )
    wide_optimizer: OptimizerSection | None = Field(None, description="optimizer of the wide part")
    clip_norm: _Norm | None = Field(
        None, description="largest norm of a step's gradient over all parameters; larger ones are scaled down"
    )
    batch_size: _Count | None = Field(None, description="examples in a step of one worker")
    epochs: _Epochs | None = Field(None, description="passes over the training examples")
    max_steps: _Count | None = Field(None, description="global steps after which training ends")
    embedding_dimension: _Width | None = Field(None, description="floats for each id")
    hidden_units: list[_Width] | None = Field(None, description="widths of the dense layers")
    partitioning: PartitioningSection | None = Field(None, description="big tables cut over several PS")
    variable_placement: _VariablePlacement | None = Field(
        None,
        description="which PS holds a part: balanced by what a step moves, greedy by size, round-robin, "
        "or by the traffic in `measured_variables`",
    )
    measured_variables: fields.Text | None = Field(
        None, description="the variables.json that an earlier run left in its folder"
    )
    variable_plan: _VariablePlan | None = Field(
        None, description="a saved plan: the path of its file, or the plan itself; it is obeyed exactly"
    )
    recovery_wait_seconds: _Interval | None = Field(
        None, description="seconds between a worker's looks whether the chief is ready; TensorFlow's are 30"
    )
    unplaced_variables: _UnplacedVariables | None = Field(
        None, description="ps: variables that the script gives no place go to the parameter servers"
    )
    steps_per_execution: _PerExecution | None = Field(
        None, description="of Model.fit: steps that it makes in one call of its function"
    )
    unique_ids: fields.Boolean | None = Field(None, description="a lookup pulls each row of a batch once")
    device_filters: fields.Boolean | None = Field(
        None, description="a trainer's session waits for the parameter servers, not for other trainers"
    )
    lean_servers: fields.Boolean | None = Field(
        None, description="a parameter server leaves its script behind and is TensorFlow's C server alone"
    )
    fused_tables: fields.Boolean | None = Field(None, description="one table for all categorical features")
    compute_precision: _ComputePrecision | None = Field(
        None, description="of dense layers: float32 or bfloat16; parameters and the loss are float32"
    )
    transfers: TransfersSection | None = Field(None, description="what a step sends")
    steps_per_exchange: _PerExchange | None = Field(
        None, description="steps of a worker that share their messages: parameters pulled once for all"
    )
    steps_in_flight: _InFlight | None = Field(
        None, description="exchanges of a worker that overlap: one pulls while another computes"
    )
    consistency: ConsistencySection | None = Field(None, description="how far workers may be apart")
    checkpoint: CheckpointSection | None = Field(None, description="saving the model")
    export_dir: fields.Text | None = Field(
        None,
        description="folder to which the trained model is written as a SavedModel, replaced if it exists",
    )
    trace: TraceSection | None = Field(None, description="tracing steps, for diagnosis")
    inputs: InputsSection | None = Field(None, description="where the examples are")
    seed: _Seed | None = Field(None, description="of all random numbers")
    variables: list[VariableSection] | None = Field(None, description="big tables known beforehand, for lint")
