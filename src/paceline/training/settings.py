"""The `training:` block of a job file, as frozen values.

The engine passes it as JSON in `PACELINE_TRAINING`; missing keys take the defaults below. The dataclasses are
the whole declaration: their fields give the keys, types and defaults, their metadata the bounds of a value,
and their method `conflict` says which values do not go together. A key or a value that does not fit is an
error that names its place; nothing is guessed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from paceline.model.variables import (
    conflicts,
    consistencies,
    optimizers,
    row_layouts,
    saved_plans,
    schedules,
    variable_plans,
)
from paceline.training import errors

VARIABLE = "PACELINE_TRAINING"
#: Settings that change scripts that do not use this library (`paceline.model.variables.cures`).
_FOR_OTHERS = (
    "recovery_wait_seconds",
    "unplaced_variables",
    "unique_ids",
    "device_filters",
    "lean_servers",
    "steps_per_execution",
    "prefetch_batches",
    "parallel_calls",
)
_CONSTANT = schedules.LearningRateSchedule()
_ASYNCHRONOUS = consistencies.Consistency()


def _at_least(least: float, default: Any) -> Any:
    return field(default=default, metadata={"least": least})


def _above(bound: float, default: Any) -> Any:
    return field(default=default, metadata={"above": bound})


@dataclass(frozen=True)
class Optimizer:
    """An optimizer and its learning rate, which the schedule may change during training."""

    name: optimizers.OptimizerName = optimizers.DEEP_DEFAULT
    learning_rate: float = _above(0, 0.05)
    schedule: schedules.LearningRateSchedule = _CONSTANT

    def conflict(self) -> str | None:
        """Return what is wrong with the combination of values, or None."""
        return conflicts.of_schedule(self.name, self.schedule)


@dataclass(frozen=True)
class PartitioningSettings:
    """How variables are partitioned along their rows; null `shards` means one for each parameter server."""

    strategy: Literal["none", "fixed", "min-size"] = "min-size"
    rows: Literal["contiguous", "strided", "hashed"] = "hashed"
    shards: int | None = _at_least(1, None)
    min_shard_bytes: int | None = _at_least(1, variable_plans.RowPartitioning().min_shard_bytes)

    def cut(self) -> variable_plans.RowPartitioning:
        """Return the partitioning as a value of the planner."""
        return variable_plans.RowPartitioning(
            strategy=variable_plans.CutStrategy(self.strategy),
            shards=self.shards,
            min_shard_bytes=self.min_shard_bytes,
            order=row_layouts.RowOrder(self.rows),
        )


@dataclass(frozen=True)
class Transfers:
    """What a step sends.

    `packed` sends one tensor of ids, one of values and one of gradients for each server; otherwise these are
    sent for each variable. `precision` is the type of values and gradients on the wire; the variables
    themselves stay float32.
    """

    packed: bool = True
    precision: Literal["float32", "bfloat16", "float16"] = "float32"


@dataclass(frozen=True)
class Checkpoint:
    """How often the chief saves and how many checkpoints stay; with `keep` 0 nothing is saved or restored.

    `mirror` is the URL of a folder to which each checkpoint is copied. If the chief begins anew without its
    folder, the newest copy is used. A run without a checkpoint begins from the newest one in `restore_from`.
    """

    every_seconds: float = _above(0, 60.0)
    keep: int = _at_least(0, 3)
    mirror: str | None = None
    restore_from: str | None = None


@dataclass(frozen=True)
class TraceSettings:
    """How often a trainer traces, and how many steps in a row; at 0 seconds it traces only on request."""

    every_seconds: float = _at_least(0, 60.0)
    steps: int = _at_least(1, 2)


@dataclass(frozen=True)
class InputCache:
    """The folder for copies of remote input files (null: no copies), and how many bytes it may hold."""

    folder: str | None = None
    max_bytes: int | None = _at_least(1, None)


@dataclass(frozen=True)
class Inputs:
    """Where the examples are and how they are decoded.

    `train` and `evaluation` are URLs or patterns that fsspec understands. With a null `format` the suffix of
    each file decides. Files are decoded in `threads` threads; with null the replica's own number of threads
    is used.
    """

    train: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()
    format: Literal["csv", "parquet", "tfrecord"] | None = None
    threads: int | None = _at_least(1, None)
    cache: InputCache = InputCache()


@dataclass(frozen=True)
class Settings:
    """All keys of the `training:` block.

    `optimizer` is that of the deep part and `wide_optimizer` that of the wide part; `clip_norm` bounds the
    norm of a step's gradient. `batch_size` is one trainer's, in examples. A `variable_plan` replaces
    `partitioning` and `variable_placement`. Training ends after `epochs` passes over the data, by all
    trainers together, or at the global step `max_steps` if that comes first. Then the chief writes a
    SavedModel to `export_dir`, if that is given.
    """

    optimizer: Optimizer = Optimizer(optimizers.DEEP_DEFAULT)
    wide_optimizer: Optimizer = Optimizer(optimizers.WIDE_DEFAULT)
    clip_norm: float | None = _above(0, None)
    batch_size: int = _at_least(1, 512)
    epochs: float = _above(0, 1.0)
    embedding_dimension: int = _at_least(1, 16)
    hidden_units: tuple[int, ...] = field(default=(256, 128, 64), metadata={"least": 1})
    partitioning: PartitioningSettings = PartitioningSettings()
    variable_placement: Literal["round-robin", "greedy", "balanced"] = variable_plans.DEFAULT_RULE.value
    variable_plan: variable_plans.Plan | None = None
    fused_tables: bool = True
    compute_precision: Literal["float32", "bfloat16"] = "float32"
    transfers: Transfers = Transfers()
    steps_per_exchange: int = _at_least(1, 1)
    steps_in_flight: int = _at_least(1, 1)
    consistency: consistencies.Consistency = _ASYNCHRONOUS
    checkpoint: Checkpoint = Checkpoint()
    export_dir: str | None = None
    trace: TraceSettings = TraceSettings()
    inputs: Inputs = Inputs()
    seed: int = _at_least(0, 0)
    max_steps: int | None = _at_least(1, None)

    def conflict(self) -> str | None:
        """Return what is wrong with the combination of values, or None."""
        saved = self.checkpoint
        return conflicts.of_export(self.export_dir, saved.keep) or conflicts.of_copies(
            saved.mirror, saved.restore_from, saved.keep
        )

    def optimizer_of(self, part: Literal["deep", "wide"]) -> Optimizer:
        """Return the optimizer of a part of the model."""
        return self.wide_optimizer if part == "wide" else self.optimizer


def read(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from `PACELINE_TRAINING`, of the process if no environment is given.

    Raises:
        SettingsError: the text is not a JSON object, or a key or a value in it is wrong.
    """
    environment = os.environ if environment is None else environment
    text = environment.get(VARIABLE, "")
    if not text.strip():
        return Settings()
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise errors.SettingsError(f"{VARIABLE} is not JSON: {error}") from error
    return parse(raw)


def parse(raw: object) -> Settings:
    """Turn the plain values of a `training:` block into settings.

    Raises:
        SettingsError: a key or a value is wrong; the message names its place.
    """
    settings: Settings = _dataclass(Settings, raw, "training", Settings())
    return settings


def _dataclass(kind: type, raw: object, place: str, default: Any) -> Any:
    """Read one block; missing keys keep the value that they have in `default`."""
    if not isinstance(raw, dict):
        raise errors.SettingsError(f"{place}: expected a block of keys, got {raw!r}")
    fields = {each.name: each for each in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    values = {}
    for key, value in raw.items():
        if key in _FOR_OTHERS:
            raise errors.SettingsError(
                f"{place}.{key}: it is for scripts without the training library; leave it out"
            )
        if key not in fields:
            raise errors.SettingsError(f"{place}: unknown key {key!r}{errors.did_you_mean(str(key), fields)}")
        where = f"{place}.{key}"
        if dataclasses.is_dataclass(hints[key]):
            values[key] = _dataclass(typing.cast(type, hints[key]), value, where, getattr(default, key))
        else:
            values[key] = _value(hints[key], value, where)
            _check_bounds(values[key], fields[key].metadata, where)
    made = dataclasses.replace(default, **values)
    conflict = made.conflict() if hasattr(made, "conflict") else None
    if conflict is not None:
        raise errors.SettingsError(f"{place}: {conflict}")
    return made


def _value(kind: Any, raw: object, place: str) -> Any:
    options = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return None if raw is None else _value(options[0], raw, place)
    if kind is variable_plans.Plan:
        return _plan(raw, place)
    if origin is Literal:
        if raw in options:
            return raw
        raise errors.SettingsError(f"{place}: {raw!r} is not allowed{errors.did_you_mean(str(raw), options)}")
    if origin is tuple:
        if isinstance(raw, str) and options[0] is str:
            return (raw,)
        if isinstance(raw, list):
            return tuple(_value(options[0], each, f"{place}[{i}]") for i, each in enumerate(raw))
        raise errors.SettingsError(f"{place}: expected a list, got {raw!r}")
    if kind is float and isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, kind) and (kind is bool or not isinstance(raw, bool)):
        return raw
    name = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}[kind]
    raise errors.SettingsError(f"{place}: expected {name}, got {raw!r}")


def _plan(raw: object, place: str) -> variable_plans.Plan:
    """Read a variable plan; the platform has already replaced the path in the job file by its contents."""
    try:
        return saved_plans.read(raw)
    except ValueError as error:
        raise errors.SettingsError(f"{place}: {error}") from error


def _check_bounds(value: Any, bounds: Mapping[str, Any], place: str) -> None:
    for each in value if isinstance(value, tuple) else (value,):
        if each is None:
            continue
        if "least" in bounds and each < bounds["least"]:
            raise errors.SettingsError(f"{place}: must be at least {bounds['least']}, got {each}")
        if "most" in bounds and each > bounds["most"]:
            raise errors.SettingsError(f"{place}: must be at most {bounds['most']}, got {each}")
        if "above" in bounds and not each > bounds["above"]:
            raise errors.SettingsError(f"{place}: must be above {bounds['above']}, got {each}")
